"""Queues what the herder is to do, and changes of the config topic, which are written together."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from keelman.kafka.writer import Record
from keelman.model.errors import DeadlineExceeded, Exhausted, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop
from keelman.worker.deadlines import TIMED_OUT
from keelman.worker.errors import Elsewhere, RestError
from keelman.worker.storage.config_topic import ConfigTopic

T = TypeVar("T")
log = get_logger()
MAX_TOGETHER = 100
COMING_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A leader's records for a request, none where it only asks, and then its answer."""

    records: Sequence[Record]
    answer: Callable[[], T]


@dataclass(slots=True, eq=False)
class Request:
    """One that waits. Either `operation` is done for it, or it is about one connector and `decide` says what to write.

    `decide` is called with all that the config topic has, perhaps twice, and raises what the request is refused with.
    """

    until: float
    operation: Callable[[], Awaitable[Any]] | None = None
    connector: str = ""
    decide: Callable[[], Change[Any]] | None = None
    since: float = field(default_factory=time.monotonic)
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more, or its time is up: it is not to begin."""
        return self.result.done() or time.monotonic() > self.until

    def settle(self, answer: Callable[[], Any]) -> None:
        """Hands what `answer` returns or raises to whoever waits."""
        if self.result.done():
            return
        try:
            self.result.set_result(answer())
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Raises, at whoever waits, why it was not done."""
        if not isinstance(error, KeelmanError | RestError | Elsewhere):
            log.error("request_failed", trace="".join(traceback.format_exception(error)))
        if not self.result.done():
            self.result.set_exception(error)


class Requests:
    """The requests that wait, in the order in which they came, and those that are being served."""

    def __init__(self, topic: ConfigTopic, require_leader: Callable[[], None]) -> None:
        self._topic = topic
        self._require_leader = require_leader
        self._waiting: deque[Request] = deque()
        self._serving: tuple[Request, ...] = ()
        self._coming: dict[object, float] = {}
        self._moved = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @contextlib.contextmanager
    def coming(self) -> Iterator[None]:
        """For the block in which a request is made ready that will wait here any moment."""
        me = object()
        self._coming[me] = time.monotonic() + COMING_SECONDS
        try:
            yield
        finally:
            del self._coming[me]
            self._moved.set()

    async def more(self) -> bool:
        """Whether one waits. While one is made ready that may come soon, it is waited for a moment."""
        while not self._waiting:
            seconds = max(self._coming.values(), default=0.0) - time.monotonic()
            if seconds <= 0:
                return False
            self._moved.clear()
            await wait_or_stop(self._moved, seconds)
        return True

    async def done(self, request: Request) -> Any:
        """Has it wait its turn; what came of it. Raises DeadlineExceeded when it did not begin in time: then it never
        does. One that has begun is waited for."""
        self._waiting.append(request)
        self._moved.set()
        try:
            async with asyncio.timeout(request.until - time.monotonic()):
                return await asyncio.shield(request.result)
        except TimeoutError:
            if request not in self._serving and not request.result.done():
                request.result.cancel()
                raise DeadlineExceeded(TIMED_OUT) from None
        return await request.result

    def refuse_all(self, problem: Callable[[], Exception]) -> None:
        """Returns this to whoever waits."""
        while self._waiting:
            self._waiting.popleft().fail(problem())

    def require_time(self) -> None:
        """Raises DeadlineExceeded when the request that is being served has none left: nothing is written after it."""
        if any(time.monotonic() > request.until for request in self._serving):
            raise DeadlineExceeded(TIMED_OUT)

    async def serve(self) -> None:
        """Serves the next ones that can be served together; raises nothing."""
        self._serving = taken(self._waiting)
        try:
            if not self._serving:
                return
            first = self._serving[0]
            if first.operation is None:
                await self._change(self._serving)
                return
            result = await first.operation()
            first.settle(lambda: result)
        except Exception as error:
            for request in self._serving:
                request.fail(error)
        finally:
            self._serving = ()

    async def _change(self, requests: Sequence[Request]) -> None:
        """Decides all of them, then has what they change written in one write.

        A leader that has claimed the topic and read it since knows all that is in it, unless another has claimed after
        it: then its write fails. So only who is refused, or writes nothing, is decided by what is read now.
        """
        self._require_leader()
        decided = [_decided(request) for request in requests] if self._topic.is_current else []
        if not all(isinstance(one, Change) and one.records for one in decided) or not decided:
            await self._topic.read(since=max(request.since for request in requests))  # a read before may do
            decided = [_decided(request) for request in requests]
        waiting = list(zip(requests, decided, strict=True))
        try:
            await self._write(waiting)
        except Exhausted:
            waiting = [one for one in waiting if not one[0].result.done()]
            if len(waiting) == 1:
                raise
            for one in waiting:  # it is one of them that the topic does not take
                try:
                    await self._write([one])
                except Exhausted as error:
                    one[0].fail(error)

    async def _write(self, decided: Sequence[tuple[Request, Change[Any] | Exception]]) -> None:
        """Answers those that are refused, writes the others in one write.

        Where the claim has to be made first, another leader may have written since: all is decided again behind it.
        """
        if any(isinstance(one, Change) and one.records for _, one in decided) and await self._topic.claim_if_lost():
            await self._topic.read()
            decided = [(request, _decided(request)) for request, _ in decided]
        changes: list[tuple[Request, Change[Any]]] = []
        for request, one in decided:
            if isinstance(one, Change):
                changes.append((request, one))
            else:
                request.fail(one)
        written = [record for _, change in changes for record in change.records]
        if written:
            await self._topic.write(written)
        for request, change in changes:
            request.settle(change.answer)


def _decided(request: Request) -> Change[Any] | Exception:
    """What is to be written for it, or why nothing is."""
    assert request.decide is not None
    if request.over:
        return DeadlineExceeded(TIMED_OUT)
    try:
        return request.decide()
    except Exception as error:
        return error


def taken(waiting: deque[Request]) -> tuple[Request, ...]:
    """Takes from the queue what comes next: one thing to be done, or changes about different connectors.

    No two about the same one: the second is to be decided by what the first has come to. None is served before one
    that came earlier. Those that are over are taken and left out.
    """
    found: dict[str, Request] = {}
    while waiting and len(found) < MAX_TOGETHER:
        request = waiting[0]
        if not request.over:
            if found and (request.decide is None or request.connector in found):
                break
            found[request.connector] = request
        waiting.popleft()
        if request.decide is None and found:
            break
    return tuple(found.values())
