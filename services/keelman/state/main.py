"""`keelman state`: run the service, print its settings, or change the key of its database's secrets."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.main import add_flags, service_main
from keelman.runtime.settings import load
from keelman.state.settings import Settings


def main(words: Sequence[str]) -> int:
    """Runs the command given by the words after `keelman state`; returns the exit code."""
    return _rekey(words[1:]) if words[:1] == ["rekey"] else service_main("state", words)


def _rekey(words: Sequence[str]) -> int:
    text = "seal the secrets in the database with a new key, which replaces the old one; state services may run"
    parser = argparse.ArgumentParser(prog="keelman state rekey", description=text, allow_abbrev=False)
    add_flags(parser, Settings)
    flags = vars(parser.parse_args(words))
    try:
        settings = load(Settings, "state", file=flags.pop("file"), flags=flags, environment=os.environ).settings
        from keelman.state.secrets.rekey import rekey  # noqa: PLC0415  (what is wrong with the flags is said at once)

        said = asyncio.run(rekey(settings.database or str(settings.folder.database), settings.secrets_key))
    except KeelmanError as error:
        print(f"keelman state: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1
    print(said)
    return 0
