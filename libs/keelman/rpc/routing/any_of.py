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

from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.rpc.routing.choosing import ChoosingChannel
from keelman.runtime.supervise import first_of

RECONNECT_SECONDS = 0.25
"""The interval at which lost channels are told to connect again."""
HEALTH_SECONDS = 1.0
"""The pause before a health watch is started again after the server reported NOT_SERVING or the stream ended."""
PROBE_SECONDS, PROBE_PAUSE_SECONDS, PROBES = 0.8, 0.3, 2
"""How long a probe waits for an answer, the pause between two, and how many without an answer make a server silent."""
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LOST = (ChannelConnectivity.TRANSIENT_FAILURE, ChannelConnectivity.SHUTDOWN)


class AnyOf(ChoosingChannel):
    """A channel over several channels. `async with` closes all of them; within the block it keeps checking which are
    reachable.

    `probed`: it also calls the health check of each connected server continually, and leaves a server that does not
    answer while another does. Without probes, a process that is stopped or hangs would keep its calls, since its
    connections stay open.
    """

    def __init__(self, channels: Sequence[grpc.aio.Channel], *, probed: bool = False) -> None:
        self._channels = channels
        self._probed = probed
        self._unanswered = dict.fromkeys(channels, 0)
        self._present = channels[0]
        self._not_serving: set[grpc.aio.Channel] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> AnyOf:
        probes = map(self._probe, self._channels) if self._probed else ()
        self._tasks = [
            asyncio.ensure_future(task) for task in (self._reconnect(), *map(self._follow, self._channels), *probes)
        ]
        return self

    async def close(self, grace: float | None = None) -> None:
        """Closes all channels."""
        try:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for channel in self._channels:
                await channel.close(grace)

    async def _reconnect(self) -> None:
        """Makes lost channels connect again; runs until it is canceled."""
        while True:
            for channel in self._channels:
                channel.get_state(try_to_connect=True)
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _follow(self, channel: grpc.aio.Channel) -> None:
        """Keeps `_not_serving` up to date with the health that a channel's server reports."""
        stub: Any = health_pb2_grpc.HealthStub(channel)
        while True:
            call = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True)
            try:
                async for answer in call:
                    if answer.status == NOT_SERVING:
                        self._not_serving.add(channel)
                        break  # a server that is ending waits for its calls to end
                    self._not_serving.discard(channel)
            except grpc.aio.AioRpcError:  # the server is gone, or does not report its health
                self._not_serving.discard(channel)
            finally:
                call.cancel()
            await asyncio.sleep(HEALTH_SECONDS)

    async def _probe(self, channel: grpc.aio.Channel) -> None:
        """Counts the probes in a row that a server has not answered."""
        stub: Any = health_pb2_grpc.HealthStub(channel)
        while True:
            try:
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=PROBE_SECONDS)
            except (grpc.aio.AioRpcError, KeelmanError) as error:
                code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
                is_silent = isinstance(error, DeadlineExceeded) or code is grpc.StatusCode.DEADLINE_EXCEEDED
                self._unanswered[channel] = self._unanswered[channel] + 1 if is_silent else 0
            else:
                self._unanswered[channel] = 0
            await asyncio.sleep(PROBE_PAUSE_SECONDS)

    def _serves(self, channel: grpc.aio.Channel) -> bool:
        if channel in self._not_serving or self._unanswered[channel] >= PROBES:
            return False
        return channel.get_state(try_to_connect=True) is ChannelConnectivity.READY

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
