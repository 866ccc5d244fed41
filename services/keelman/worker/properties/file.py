"""A file of properties, a worker's or a connector's."""

from __future__ import annotations

import codecs
from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument


def file_properties(file: Path) -> dict[str, str]:
    """The file's properties as Java reads them, values trimmed, a byte order mark passed over. Raises
    InvalidArgument."""
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InvalidArgument(f"{file}: it cannot be read: {error.strerror}") from None
    if b"\0" in content:
        raise InvalidArgument(
            f"{file}: it is not a .properties file: there are NUL bytes in it; save it as ASCII or UTF-8"
        )
    try:
        return {k: v.strip() for k, v in javaproperties.loads(content).items()}
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument(f"{file}: it is not a .properties file: {error}") from None
