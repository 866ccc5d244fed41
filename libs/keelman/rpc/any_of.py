"""A channel to whichever of several servers answers: each call goes to the one that the last went to, while that one
can be reached. A call is never made twice: whoever made one that was cut off asks again, as with one server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc import ChannelConnectivity

from keelman.rpc.choosing import ChoosingChannel
from keelman.runtime.supervise import first_of

LOOK_SECONDS = 0.25
LOST = (ChannelConnectivity.TRANSIENT_FAILURE, ChannelConnectivity.SHUTDOWN)


class AnyOf(ChoosingChannel):
    """`async with` closes all of them; within the block it keeps looking which can be reached."""

    def __init__(self, channels: Sequence[grpc.aio.Channel]) -> None:
        self._channels = channels
        self._present = channels[0]
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AnyOf:
        self._looking = asyncio.ensure_future(self._look())
        return self

    async def close(self, grace: float | None = None) -> None:
        """Closes all of them."""
        try:
            if self._looking is not None:
                self._looking.cancel()
                await asyncio.wait([self._looking])
        finally:
            for one in self._channels:
                await one.close(grace)

    async def _look(self) -> None:
        """Has those that were lost connect again."""
        while True:
            for one in self._channels:
                one.get_state(try_to_connect=True)
            await asyncio.sleep(LOOK_SECONDS)

    def _chosen(self) -> grpc.aio.Channel:
        if self._present.get_state(try_to_connect=True) is not ChannelConnectivity.READY:
            states = {one: one.get_state(try_to_connect=True) for one in self._channels}
            ready = [one for one, state in states.items() if state is ChannelConnectivity.READY]
            hopeful = [one for one, state in states.items() if state not in LOST]
            self._present = next(iter([*ready, *hopeful]), self._present)
        return self._present

    def _method(self, kind: str, *given: Any, **named: Any) -> Callable[..., Any]:
        made = {one: getattr(one, kind)(*given, **named) for one in self._channels}

        def call(*args: Any, **options: Any) -> Any:
            return made[self._chosen()](*args, **options)

        return call

    async def channel_ready(self) -> None:
        """Returns once any can be reached."""
        await first_of(*(one.channel_ready() for one in self._channels))
