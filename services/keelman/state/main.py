"""`keelman state`: run the service, print its settings, change the key of its database's secrets, or create the secrets
of an installation in Kubernetes."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.main import add_flags, service_main
from keelman.runtime.settings import load
from keelman.state.settings import Settings


def main(words: Sequence[str]) -> int:
    """Runs the command given by the words after `keelman state`; returns the exit code."""
    command = COMMANDS.get(words[0]) if words else None
    return command(words[1:]) if command else service_main("state", words)


def _rekey(words: Sequence[str]) -> int:
    text = "seal the secrets in the database with a new key, which replaces the old one; state services may run"
    parser = argparse.ArgumentParser(prog="keelman state rekey", description=text, allow_abbrev=False)
    add_flags(parser, Settings)
    flags = vars(parser.parse_args(words))

    def rekeyed() -> Sequence[str]:
        settings = load(Settings, "state", file=flags.pop("file"), flags=flags, environment=os.environ).settings
        from keelman.state.secrets.rekey import rekey  # noqa: PLC0415  (what is wrong with the flags is said at once)

        return [asyncio.run(rekey(settings.database or str(settings.folder.database), settings.secrets_key))]

    return _printed(rekeyed)


def _kubernetes_secrets(words: Sequence[str]) -> int:
    text = "create the secrets of an installation in Kubernetes, from a pod; existing ones are not changed"
    parser = argparse.ArgumentParser(prog="keelman state kubernetes-secrets", description=text, allow_abbrev=False)
    parser.add_argument("--release", required=True, help="name of the installation, for labels")
    parser.add_argument("--key", default="", help="name of the Secret with the key that seals secrets; empty: none")
    parser.add_argument("--database", default="", help="name of the Secret with the database's password; empty: none")
    parser.add_argument("--database-host", default="", help="host of the database, for its URL")
    flags = vars(parser.parse_args(words))

    def created() -> Sequence[str]:
        from keelman.state.secrets.kubernetes_secrets import SecretApi, Wanted, create_secrets  # noqa: PLC0415

        return create_secrets(SecretApi.of_pod(os.environ), Wanted(**flags))

    return _printed(created)


def _printed(work: Callable[[], Sequence[str]]) -> int:
    try:
        lines = work()
    except KeelmanError as error:
        print(f"keelman state: {error.message}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1
    print(*lines, sep="\n")
    return 0


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "rekey": _rekey,
    "kubernetes-secrets": _kubernetes_secrets,
}
