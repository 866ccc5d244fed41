"""Reads client properties from a file, as Java's tools do: those of the brokers that get the reports."""

from __future__ import annotations

from pathlib import Path

import javaproperties

from keelman.connect.config.secret_keys import literal_secrets
from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.redaction import REDACTOR


def read_client_properties(setting: str, file: Path | None) -> dict[str, str]:
    """Returns the properties of a .properties file that a setting names; none without one. Secrets in them are hidden
    in the log from here on. Raises InvalidArgument."""
    if file is None:
        return {}
    try:
        with file.open(encoding="latin-1") as stream:
            client_properties: dict[str, str] = dict(javaproperties.load(stream))
    except (OSError, ValueError) as error:
        raise InvalidArgument.of(setting, str(file), f"a readable .properties file ({error})") from None
    REDACTOR.add(literal_secrets(client_properties))
    return client_properties
