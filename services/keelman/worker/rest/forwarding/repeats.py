"""Repeats requests that a leader left before it answered: it may have done them.

That is then no reason to refuse them: a record that has been written since they came, with the content that they want,
is theirs. Requests without a record are known by a name that they keep wherever they are sent. A client that repeats
its request gives it an id of its own, which is stored with its result.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextvars import ContextVar

from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_request_id
from keelman.worker.errors import RestError

HEADER = "x-keelman-since"
NAME_HEADER = "x-keelman-request"
ID_HEADER = "keelman-request-id"
_name: ContextVar[str] = ContextVar("name")
_since: ContextVar[int | None] = ContextVar("since", default=None)


def begin(headers: Mapping[str, str]) -> None:
    """Begins a request; the headers tell whether it is a repeated one, and which."""
    name = headers.get(NAME_HEADER, "")
    _name.set(name if 0 < len(name) <= len(_new_name()) else _new_name())
    identifier = headers.get(HEADER, "")
    _since.set(int(identifier) if identifier.isascii() and identifier.isdigit() and len(identifier) < 20 else None)


def repeat(since: int) -> None:
    """Marks the request as repeated from here on, by any worker. `since`: how far the config topic was read when it
    came."""
    if _since.get() is None:
        _since.set(since)


def since() -> int | None:
    """Returns how far the config topic was read when the request came; None for a request done for the first time."""
    return _since.get()


def name() -> str:
    """Returns the request's name: no other has it."""
    return _name.get("") or _new_name()


def id_in(headers: Mapping[str, str]) -> str:
    """Returns the id that the client gave its request; empty for none. Raises 400 for an illegal one."""
    try:
        return checked_request_id(ID_HEADER, headers.get(ID_HEADER, ""))
    except InvalidArgument as error:
        raise RestError(400, error.message) from None


def _new_name() -> str:
    return uuid.uuid4().hex
