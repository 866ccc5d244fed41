"""Checks names and ids that users choose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from keelman.model.errors import InvalidArgument, NotFound

T = TypeVar("T")
MAX_NAMED = 20  # in an error
_LEGAL = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_REQUEST_ID = re.compile(r"[ -~]{0,128}")
LEGAL_NAME = "1 to 63 lower-case letters, digits, '.', '_' or '-', beginning and ending with a letter or digit"


def checked_name(field: str, name: str) -> str:
    """Returns the name; raises InvalidArgument when it is not legal for a node or a cluster."""
    if not _LEGAL.fullmatch(name):
        raise InvalidArgument.of(field, name, LEGAL_NAME)
    return name


def legal_name(host: str) -> str:
    """Returns a host's name as a legal name of a node or a gateway: lower case, illegal characters become '-', at most
    63 characters."""
    text = re.sub(r"[^a-z0-9._-]", "-", host.lower())[:63].strip("._-")
    return text or "node"


def checked_request_id(field: str, request_id: str) -> str:
    """Returns the id of a client's request, empty for none; raises InvalidArgument if it is not legal."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidArgument.of(field, request_id, "at most 128 printable characters of ASCII")
    return request_id


def found_by_name(noun: str, by_name: Mapping[str, T], name: str) -> T:
    """Returns the resource with this name. Raises NotFound naming the existing ones."""
    if name in by_name:
        return by_name[name]
    names = sorted(by_name)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    there = f"those there are: {', '.join(names[:MAX_NAMED])}{more}" if names else "none exists yet"
    raise NotFound(f"no {noun} is named {name!r}: {there}", metadata={noun.replace(" ", "_"): name})
