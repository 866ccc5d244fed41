"""Client properties from a file, as Java's tools read them."""

from __future__ import annotations

from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument


def read_client_properties(setting: str, file: Path | None) -> dict[str, str]:
    """The properties of a .properties file that a setting names; none without one. Raises InvalidArgument."""
    if file is None:
        return {}
    try:
        with file.open(encoding="latin-1") as stream:
            return dict(javaproperties.load(stream))
    except (OSError, ValueError) as error:
        raise InvalidArgument.of(setting, str(file), f"a readable .properties file ({error})") from None
