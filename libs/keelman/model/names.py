"""Checks names that users choose."""

from __future__ import annotations

import re

from keelman.model.errors import InvalidArgument

_LEGAL = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
LEGAL_NAME = "1 to 63 lower-case letters, digits, '.', '_' or '-', beginning and ending with a letter or digit"


def checked_name(field: str, name: str) -> str:
    """Returns the name; raises InvalidArgument when it is not legal for a node or a cluster."""
    if not _LEGAL.fullmatch(name):
        raise InvalidArgument.of(field, name, LEGAL_NAME)
    return name
