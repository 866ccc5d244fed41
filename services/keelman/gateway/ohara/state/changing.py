"""Waits for operations that users do not see: Ohara's calls have ended when they answer, ours continue after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from keelman.api.connect.v1 import operation_service_pb2 as pb
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.errors import illegal_state
from keelman.model.errors import FailedPrecondition, NotFound

T = TypeVar("T")
PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 5.0
"""The limit of a wait for an operation: users wait 20 s for an answer."""
CANCEL_SECONDS = 3.0


async def settled(
    read: Callable[[], Awaitable[T]], is_changing: Callable[[T], bool], *, seconds: float = SETTLE_SECONDS
) -> T:
    """Reads a resource until no operation changes it, for at most `seconds`; returns the last state."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    state = await read()
    while is_changing(state) and loop.time() < end:
        await asyncio.sleep(PAUSE_SECONDS)
        state = await read()
    return state


async def undisturbed(
    control: OharaControl,
    read: Callable[[], Awaitable[T]],
    is_changing: Callable[[T], bool],
    operation: Callable[[T], str],
    what: str,
) -> T:
    """Returns a resource that no operation changes: cancels an operation that takes too long. Raises OharaError if it
    does not end even then."""
    state = await settled(read, is_changing)
    if not is_changing(state):
        return state
    request = pb.CancelOperationRequest(name=operation(state), reason="another change was requested")
    with suppress(NotFound, FailedPrecondition):  # ended meanwhile
        await control.ask(request)
    state = await settled(read, is_changing, seconds=CANCEL_SECONDS)
    if is_changing(state):
        raise illegal_state(f"{what} is being changed by operation {operation(state)}: try again")
    return state
