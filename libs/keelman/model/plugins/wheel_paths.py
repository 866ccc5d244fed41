"""Finds where the entries of a wheel are once it is installed.

https://packaging.python.org/en/latest/specifications/binary-distribution-format/#installing-a-wheel-distribution-1-0-py32-none-any-whl
"""

from __future__ import annotations

from pathlib import PurePosixPath

_DATA_ROOTS = ("purelib", "platlib")


def installed_path(entry: str) -> PurePosixPath | None:
    """Returns the path of an entry below the folder that modules are imported from; None for an entry that is not
    imported."""
    path = PurePosixPath(entry)
    if not path.parts:
        return None
    if not path.parts[0].endswith(".data"):
        return path
    if len(path.parts) > 2 and path.parts[1] in _DATA_ROOTS:
        return PurePosixPath(*path.parts[2:])
    return None
