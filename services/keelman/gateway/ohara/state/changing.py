"""Waits for operations that users do not see: Ohara's calls are done when they answer, ours go on behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from keelman.api.connect.v1 import operation_service_pb2 as pb
from keelman.gateway.ohara.state.control import Control
from keelman.gateway.ohara.wire.errors import illegal_state
from keelman.model.errors import FailedPrecondition, NotFound

T = TypeVar("T")
PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 5.0
"""Users wait 20 s for an answer."""
CANCEL_SECONDS = 3.0


async def settled(
    read: Callable[[], Awaitable[T]], is_changing: Callable[[T], bool], *, seconds: float = SETTLE_SECONDS
) -> T:
    """What there is once nothing changes it, or after the time. Answers at once where nothing does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    found = await read()
    while is_changing(found) and loop.time() < end:
        await asyncio.sleep(PAUSE_SECONDS)
        found = await read()
    return found


async def undisturbed(
    control: Control,
    read: Callable[[], Awaitable[T]],
    is_changing: Callable[[T], bool],
    operation: Callable[[T], str],
    what: str,
) -> T:
    """What there is, with nothing that changes it: an operation that takes too long is canceled. Raises OharaError for
    one that does not end even so."""
    found = await settled(read, is_changing)
    if not is_changing(found):
        return found
    request = pb.CancelOperationRequest(name=operation(found), reason="something else was asked for")
    with suppress(NotFound, FailedPrecondition):  # it ended meanwhile
        await control.ask(request)
    found = await settled(read, is_changing, seconds=CANCEL_SECONDS)
    if is_changing(found):
        raise illegal_state(f"{what} is being changed by operation {operation(found)}: try again")
    return found
