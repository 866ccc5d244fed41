"""Checks names and ids that users choose."""

from __future__ import annotations

import re

from keelman.model.errors import InvalidArgument

_LEGAL = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_REQUEST_ID = re.compile(r"[ -~]{0,128}")
LEGAL_NAME = "1 to 63 lower-case letters, digits, '.', '_' or '-', beginning and ending with a letter or digit"


def checked_name(field: str, name: str) -> str:
    """Returns the name; raises InvalidArgument when it is not legal for a node or a cluster."""
    if not _LEGAL.fullmatch(name):
        raise InvalidArgument.of(field, name, LEGAL_NAME)
    return name


def checked_request_id(field: str, request_id: str) -> str:
    """Returns the id that a client gives a request, empty for none; raises InvalidArgument when it is not legal."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidArgument.of(field, request_id, "at most 128 printable characters of ASCII")
    return request_id
