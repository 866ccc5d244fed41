"""Creates that are asked twice: a repeated request id gets the first one's answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeVar

import sqlalchemy as sa
from sqlmodel import col

from keelman.model.errors import InvalidArgument
from keelman.state.database import Transaction, micros
from keelman.state.tables import RequestRow

KEPT = timedelta(days=1)
LONGEST = 128


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...
    def MergeFromString(self, serialized: bytes, /) -> int: ...


M = TypeVar("M", bound=_Message)


async def once(tx: Transaction, request_id: str, method: str, empty: M, make: Callable[[], Awaitable[M]]) -> M:
    """What `make` answers; for a request id of the last day the stored answer, read into `empty`.

    Raises InvalidArgument for an id that is too long or was used for another method.
    """
    if not request_id:
        return await make()
    if len(request_id) > LONGEST:
        raise InvalidArgument.of("request_id", request_id, f"at most {LONGEST} characters")
    row = await tx.session.get(RequestRow, request_id)
    if row is not None:
        if row.method != method:
            raise InvalidArgument.of("request_id", request_id, f"an id of its own; this one was used for {row.method}")
        empty.MergeFromString(row.answer)
        return empty
    answer = await make()
    connection = await tx.session.connection()
    await connection.execute(sa.delete(RequestRow).where(col(RequestRow.time) < micros(tx.now - KEPT)))
    tx.session.add(
        RequestRow(request_id=request_id, method=method, time=micros(tx.now), answer=answer.SerializeToString())
    )
    return answer
