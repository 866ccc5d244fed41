"""A channel whose certificate may be renewed: each call uses a connection that was opened with the newest one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from keelman.rpc.credentials import Newest, Pems
from keelman.rpc.routing.choosing import ChoosingChannel

CLOSING_SECONDS = 300.0
"""The time that calls with an older certificate get to end."""


class RenewingChannel(ChoosingChannel):
    """`async with` closes it. `make` opens a channel with credentials."""

    def __init__(self, make: Callable[[Pems], grpc.aio.Channel], newest: Newest) -> None:
        self._make, self._newest = make, newest
        self._pems = newest()
        self._present = make(self._pems)
        self._closing: set[asyncio.Task[None]] = set()
        self._entered = False

    async def __aenter__(self) -> RenewingChannel:
        await self._present.__aenter__()
        self._entered = True
        return self

    async def close(self, grace: float | None = None) -> None:
        """Closes the channel and the remaining connections with older certificates."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._present.close(grace)

    def _chosen(self) -> grpc.aio.Channel:
        pems = self._newest()
        if pems != self._pems:
            old, self._present, self._pems = self._present, self._make(pems), pems
            for work in (self._enter(self._present), old.close(CLOSING_SECONDS)):
                task = asyncio.ensure_future(work)
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        return self._present

    async def _enter(self, channel: grpc.aio.Channel) -> None:
        if self._entered:
            await channel.__aenter__()

    def _method(self, kind: str, *arguments: Any, **named: Any) -> Callable[..., Any]:
        entry: list[Any] = [None, None]  # a channel, and the function that calls the method on it

        def call(*args: Any, **options: Any) -> Any:
            chosen = self._chosen()
            if entry[0] is not chosen:
                entry[:] = chosen, getattr(chosen, kind)(*arguments, **named)
            return entry[1](*args, **options)

        return call

    async def channel_ready(self) -> None:
        """Returns once the channel of the next call is ready."""
        await self._chosen().channel_ready()
