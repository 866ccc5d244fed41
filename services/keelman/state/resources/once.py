"""Answers a repeated request as it did the first time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeVar

import sqlalchemy as sa
from sqlmodel import col

from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_request_id
from keelman.state.database.failpoints import hit
from keelman.state.database.tables import RequestRow
from keelman.state.database.times import micros
from keelman.state.resources.transaction import Transaction

KEPT = timedelta(days=1)


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...
    def MergeFromString(self, serialized: bytes, /) -> int: ...


M = TypeVar("M", bound=_Message)


async def once(tx: Transaction, request_id: str, method: str, empty: M, make: Callable[[], Awaitable[M]]) -> M:
    """Returns the answer of `make`; for a request id of the last day the stored answer, read into `empty`.

    Raises InvalidArgument for an id that is not legal or was used for another method.
    """
    if await is_answered(tx, request_id, method, empty):
        return empty
    answer = await make()
    await store_answer(tx, request_id, method, answer)
    return answer


async def is_answered(tx: Transaction, request_id: str, method: str, empty: _Message) -> bool:
    """Returns whether a request id of the last day has an answer, and reads that into `empty`. Raises InvalidArgument
    for an id that is not legal or was used for another method."""
    if not request_id:
        return False
    checked_request_id("request_id", request_id)
    row = await tx.session.get(RequestRow, request_id)
    if row is None:
        return False
    if row.method != method:
        raise InvalidArgument.of("request_id", request_id, f"a new id; this one was used for {row.method}")
    empty.MergeFromString(row.answer)
    return True


async def store_answer(tx: Transaction, request_id: str, method: str, answer: _Message) -> None:
    """Stores the answer for a repeated request, if the request has an id."""
    if not request_id:
        return
    hit("change-made")
    connection = await tx.session.connection()
    await connection.execute(sa.delete(RequestRow).where(col(RequestRow.time) < micros(tx.now - KEPT)))
    tx.session.add(
        RequestRow(request_id=request_id, method=method, time=micros(tx.now), answer=answer.SerializeToString())
    )
    await tx.session.flush()
    hit("answer-kept")
