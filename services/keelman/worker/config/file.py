"""Reads a file of properties, a worker's or a connector's."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument

_LINE_END = re.compile(r"\r\n|\r|\n")


def file_properties(file: Path) -> dict[str, str]:
    """Returns the file's properties as Java reads them, values trimmed, a byte order mark passed over. Raises
    InvalidArgument."""
    return {key: value for key, (value, _) in placed_properties(file).items()}


def placed_properties(file: Path) -> dict[str, tuple[str, int]]:
    """Returns the same, each value with the line that its key is on. Raises InvalidArgument."""
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InvalidArgument(f"{file}: it cannot be read: {error.strerror}") from None
    if b"\0" in content:
        raise InvalidArgument(
            f"{file}: it is not a .properties file: there are NUL bytes in it; save it as ASCII or UTF-8"
        )
    placed: dict[str, tuple[str, int]] = {}
    line = 1
    try:
        for element in javaproperties.parse(content):
            if isinstance(element, javaproperties.KeyValue):
                placed[element.key] = (element.value.strip(), line)
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument(f"{file}, line {line}: it is not a .properties file: {error}") from None
    return placed
