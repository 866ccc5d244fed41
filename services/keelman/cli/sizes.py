"""Parses sizes as people type them."""

from __future__ import annotations

import re

from keelman.model.errors import InvalidArgument

_UNITS = {unit: 1024**n for n, unit in enumerate(("", "KIB", "MIB", "GIB", "TIB"))}
_UNITS |= {unit: 1000**n for n, unit in enumerate(("B", "KB", "MB", "GB", "TB"))}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def size_of(option: str, text: str) -> int:
    """Returns the bytes of a text such as 512MiB, 2GB or 1000000. Raises InvalidArgument."""
    match = _SIZE.fullmatch(text.strip())
    unit = match.group(2).upper() if match else ""
    unit = f"{unit}B" if len(unit) > 1 and not unit.endswith("B") else unit
    if match is None or unit not in _UNITS:
        raise InvalidArgument.of(option, text, "a number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, e.g. 512MiB")
    return int(float(match.group(1)) * _UNITS[unit])
