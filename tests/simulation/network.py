"""The network of a simulated plane: calls and streams that are late, held up, cut, or sent twice.

A stream keeps its order, as TCP does: a delayed message comes later, and after a break the rest never comes; either end
may learn of that long after the other.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from keelman.model.errors import KeelmanError, Unavailable
from support.fake_time import FakeProcess, FakeTimeLoop

RETRY_SECONDS = 0.5


class Network:
    """The delays of messages, and the directions that are cut."""

    def __init__(self, loop: FakeTimeLoop, chance: random.Random) -> None:
        self.loop, self.chance = loop, chance
        self.slow = 0.02
        """The longest delay of a message in seconds."""
        self.streams: list[Stream] = []
        self._cut: dict[tuple[str, str], int] = {}

    def cut(self, source: str, target: str) -> None:
        """Cuts this direction until it is healed as often."""
        self._cut[source, target] = self._cut.get((source, target), 0) + 1

    def heal(self, source: str, target: str) -> None:
        """Heals this direction; delayed messages arrive."""
        self._cut[source, target] -= 1

    def is_cut(self, source: str, target: str) -> bool:
        """Whether this direction is cut."""
        return self._cut.get((source, target), 0) > 0

    def delay(self) -> float:
        """The delay of one message in seconds."""
        return self.chance.random() * self.slow

    async def reach(self, source: str, target: str) -> None:
        """Waits for the delay of one message."""
        await asyncio.sleep(self.delay())
        while self.is_cut(source, target):  # noqa: ASYNC110 - a way is looked at as TCP does, again and again
            await asyncio.sleep(RETRY_SECONDS)

    def forget(self, process: FakeProcess, *, loudly: bool) -> None:
        """Tells the peers of a dead process, if its host lives (`loudly`)."""
        for stream in list(self.streams):
            stream.forget(process, loudly=loudly)


class _Way:
    """One direction of a stream."""

    def __init__(self, network: Network, source: str, target: str, take: Callable[[Any], None]) -> None:
        self._network, self._source, self._target, self._take = network, source, target, take
        self._due = 0.0
        self._waiting: deque[Any] = deque()
        self.is_broken = False

    def send(self, message: Any) -> None:
        """Delivers the message after those sent before."""
        network = self._network
        self._due = max(self._due, network.loop.time() + network.delay())
        self._waiting.append(message)
        network.loop.call_at(self._due, self._arrive)

    def _arrive(self) -> None:
        if self.is_broken or not self._waiting:
            return
        if self._network.is_cut(self._source, self._target):
            self._network.loop.call_later(RETRY_SECONDS, self._arrive)
            return
        self._take(self._waiting.popleft())


class _End:
    """Sent last: how a side ended."""

    def __init__(self, error: KeelmanError | None) -> None:
        self.error = error


class Stream:
    """A call of a session, with the interface of `OpenSession()` for the client: write, iterate, cancel."""

    def __init__(self, network: Network, client: str, server: str) -> None:
        self._network = network
        self.client, self.server = client, server
        self._up = _Way(network, client, server, self._to_server)
        self._down = _Way(network, server, client, self._to_client)
        self._requests: asyncio.Queue[Any] = asyncio.Queue()
        self._responses: asyncio.Queue[Any] = asyncio.Queue()
        self._is_over = self._is_cancelled = False
        self._task: asyncio.Task[None] | None = None
        self._process: FakeProcess | None = None
        self.client_process: FakeProcess | None = None
        self.on_request: Callable[[Any], None] = lambda _: None
        """Called with each request when the server reads it."""
        network.streams.append(self)

    def serve(self, process: FakeProcess, handle: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Starts a handler in a process: `handle` gets the requests and a function that writes."""
        self._process = process
        self._task = process.start(self._handled(handle))

    async def _handled(self, handle: Callable[[Any, Any], Awaitable[None]]) -> None:
        error: KeelmanError | None = None
        try:
            await handle(self._read(), self._answer)
        except KeelmanError as problem:
            error = problem
        self._down.send(_End(error or Unavailable("the call ended")))

    async def _read(self) -> AsyncIterator[Any]:
        while True:
            message = await self._requests.get()
            if isinstance(message, _End):
                return
            self.on_request(message)
            yield message

    async def _answer(self, message: Any) -> None:
        self._down.send(message)

    def _to_server(self, message: Any) -> None:
        if not isinstance(message, _End):
            self._requests.put_nowait(message)
        elif self._task is not None:
            self._task.cancel()

    def _to_client(self, message: Any) -> None:
        self._responses.put_nowait(message)

    async def write(self, message: Any) -> None:
        """The client sends a message. Raises InvalidStateError when the call has ended."""
        if self._is_over or self._is_cancelled:
            raise asyncio.InvalidStateError
        copy = type(message)()
        copy.CopyFrom(message)
        self._up.send(copy)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            message = await self._responses.get()
            if isinstance(message, _End):
                self._is_over = True
                self._leave()
                raise message.error or Unavailable("the call ended")
            yield message

    def cancel(self) -> None:
        """The client cancels the call; the server learns of that once the network allows it."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._up.send(_End(None))
            self._leave()

    def break_off(self, *, client: bool, server: bool) -> None:
        """Breaks the connection, and tells these ends."""
        self._up.is_broken = self._down.is_broken = True
        if client:
            self._responses.put_nowait(_End(Unavailable("the connection is lost", reason="UNREACHABLE")))
        if server and self._task is not None:
            self._task.cancel()

    def forget(self, process: FakeProcess, *, loudly: bool) -> None:
        """Marks one end as dead."""
        if process is self._process:
            self.break_off(client=loudly, server=False)
        elif process is self.client_process:
            self.break_off(client=False, server=loudly)

    def _leave(self) -> None:
        if self in self._network.streams:
            self._network.streams.remove(self)
