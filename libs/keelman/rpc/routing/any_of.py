"""A channel to one of several servers: each call goes to the server of the last call while it is reachable and does not
report by its health that it stops serving while another serves. A call is never repeated: after a lost connection the
caller retries, as with one server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from grpc import ChannelConnectivity
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keelman.rpc.routing.choosing import ChoosingChannel
from keelman.runtime.supervise import first_of

LOOK_SECONDS = 0.25
HEALTH_SECONDS = 1.0
"""The pause before a health watch is started again after the server reported NOT_SERVING or the stream ended."""
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LOST = (ChannelConnectivity.TRANSIENT_FAILURE, ChannelConnectivity.SHUTDOWN)


class AnyOf(ChoosingChannel):
    """A channel over several channels. `async with` closes all of them; within the block it keeps checking which are
    reachable."""

    def __init__(self, channels: Sequence[grpc.aio.Channel]) -> None:
        self._channels = channels
        self._present = channels[0]
        self._not_serving: set[grpc.aio.Channel] = set()
        self._looking: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> AnyOf:
        self._looking = [
            asyncio.ensure_future(channel) for channel in (self._look(), *map(self._follow, self._channels))
        ]
        return self

    async def close(self, grace: float | None = None) -> None:
        """Closes all channels."""
        try:
            for task in self._looking:
                task.cancel()
            await asyncio.gather(*self._looking, return_exceptions=True)
        finally:
            for channel in self._channels:
                await channel.close(grace)

    async def _look(self) -> None:
        """Has lost channels connect again."""
        while True:
            for channel in self._channels:
                channel.get_state(try_to_connect=True)
            await asyncio.sleep(LOOK_SECONDS)

    async def _follow(self, channel: grpc.aio.Channel) -> None:
        """Follows the health that a channel's server reports."""
        stub: Any = health_pb2_grpc.HealthStub(channel)
        while True:
            call = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True)
            try:
                async for answer in call:
                    if answer.status == NOT_SERVING:
                        self._not_serving.add(channel)
                        break  # it may be ending, and ends once its calls have ended
                    self._not_serving.discard(channel)
            except grpc.aio.AioRpcError:  # it is gone, or does not report its health
                self._not_serving.discard(channel)
            finally:
                call.cancel()
            await asyncio.sleep(HEALTH_SECONDS)

    def _serves(self, channel: grpc.aio.Channel) -> bool:
        return channel not in self._not_serving and channel.get_state(try_to_connect=True) is ChannelConnectivity.READY

    def _chosen(self) -> grpc.aio.Channel:
        if not self._serves(self._present):
            states = {channel: channel.get_state(try_to_connect=True) for channel in (self._present, *self._channels)}
            serving = [channel for channel in self._channels if self._serves(channel)]
            ready = [channel for channel, state in states.items() if state is ChannelConnectivity.READY]
            hopeful = [channel for channel in self._channels if states[channel] not in LOST]
            self._present = next(iter([*serving, *ready, *hopeful]), self._present)
        return self._present

    def _method(self, kind: str, *arguments: Any, **named: Any) -> Callable[..., Any]:
        calls = {channel: getattr(channel, kind)(*arguments, **named) for channel in self._channels}

        def call(*args: Any, **options: Any) -> Any:
            return calls[self._chosen()](*args, **options)

        return call

    async def channel_ready(self) -> None:
        """Returns once any server can be reached."""
        await first_of(*(channel.channel_ready() for channel in self._channels))
