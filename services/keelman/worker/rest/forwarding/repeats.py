"""Repeats requests that a leader left before it answered: it may have done what they ask for.

That is then no reason to refuse them: what has been written since they came, and is what they want, they have written.
What is done without a record of it is known by the name that a request keeps wherever it is sent. A client that repeats
its request gives it an id of its own, which is stored with what it made.
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
    """A request has come; the headers say that it is a repeated one, and which."""
    name = headers.get(NAME_HEADER, "")
    _name.set(name if 0 < len(name) <= len(_new_name()) else _new_name())
    given = headers.get(HEADER, "")
    _since.set(int(given) if given.isascii() and given.isdigit() and len(given) < 20 else None)


def repeat(since: int) -> None:
    """The request is done again from here on, by whomever. It came when the config topic was read as far as `since`."""
    if _since.get() is None:
        _since.set(since)


def since() -> int | None:
    """How far the config topic was read when the request came; None for one that is done for the first time."""
    return _since.get()


def name() -> str:
    """The request's name: no other has it."""
    return _name.get("") or _new_name()


def id_in(headers: Mapping[str, str]) -> str:
    """The id that the client gave its request; empty for none. Raises 400 for one that is not legal."""
    try:
        return checked_request_id(ID_HEADER, headers.get(ID_HEADER, ""))
    except InvalidArgument as error:
        raise RestError(400, error.message) from None


def _new_name() -> str:
    return uuid.uuid4().hex
