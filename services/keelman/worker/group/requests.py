"""Queues requests for the herder, and changes of the config topic, which are written together."""

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
class DecidedChange(Generic[T]):
    """A leader's records for a request (none for a read-only one), and then its answer."""

    records: Sequence[Record]
    answer: Callable[[], T]


@dataclass(slots=True, eq=False)
class Request:
    """A waiting request. Either `operation` is done for it, or it concerns one connector and `decide` returns its
    records.

    `decide` is called with the config topic read to its end, perhaps twice, and raises the error that refuses the
    request.
    """

    until: float
    operation: Callable[[], Awaitable[Any]] | None = None
    connector: str = ""
    decide: Callable[[], DecidedChange[Any]] | None = None
    since: float = field(default_factory=time.monotonic)
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def over(self) -> bool:
        """Whether no caller waits for it any more, or its time is up: it must not begin."""
        return self.result.done() or time.monotonic() > self.until

    def settle(self, answer: Callable[[], Any]) -> None:
        """Hands the result or the error of `answer` to the waiting caller."""
        if self.result.done():
            return
        try:
            self.result.set_result(answer())
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Raises the reason of the failure in the waiting caller."""
        if not isinstance(error, KeelmanError | RestError | Elsewhere):
            log.error("request_failed", trace="".join(traceback.format_exception(error)))
        if not self.result.done():
            self.result.set_exception(error)


class WaitingRequests:
    """The waiting requests, in the order in which they came, and those that are being served."""

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
        """Announces, for the block, a request that is being prepared and about to be queued here."""
        me = object()
        self._coming[me] = time.monotonic() + COMING_SECONDS
        try:
            yield
        finally:
            del self._coming[me]
            self._moved.set()

    async def more(self) -> bool:
        """Returns whether a request waits. While one is being prepared that may come soon, waits for it a moment."""
        while not self._waiting:
            seconds = max(self._coming.values(), default=0.0) - time.monotonic()
            if seconds <= 0:
                return False
            self._moved.clear()
            await wait_or_stop(self._moved, seconds)
        return True

    async def done(self, request: Request) -> Any:
        """Queues the request and returns its result. Raises DeadlineExceeded when it did not begin in time: then it
        never begins. Waits for a request that has begun."""
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
        """Raises this in all waiting callers."""
        while self._waiting:
            self._waiting.popleft().fail(problem())

    def require_time(self) -> None:
        """Raises DeadlineExceeded when the request being served has no time left: nothing is written after it."""
        if any(time.monotonic() > request.until for request in self._serving):
            raise DeadlineExceeded(TIMED_OUT)

    async def serve(self) -> None:
        """Serves the next requests that can be served together; raises nothing."""
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
        """Decides all of them, then writes their records in one write.

        A leader that has claimed the topic and read it since knows all that is in it, unless another has claimed after
        it: then its write fails. So only requests that are refused, or write nothing, are decided after a new read.
        """
        self._require_leader()
        decided = [_decided(request) for request in requests] if self._topic.is_current else []
        if not all(isinstance(decision, DecidedChange) and decision.records for decision in decided) or not decided:
            await self._topic.read(since=max(request.since for request in requests))  # a read before may do
            decided = [_decided(request) for request in requests]
        waiting = list(zip(requests, decided, strict=True))
        try:
            await self._write(waiting)
        except Exhausted:
            waiting = [entry for entry in waiting if not entry[0].result.done()]
            if len(waiting) == 1:
                raise
            for entry in waiting:  # the topic refuses one record among these
                try:
                    await self._write([entry])
                except Exhausted as error:
                    entry[0].fail(error)

    async def _write(self, decided: Sequence[tuple[Request, DecidedChange[Any] | Exception]]) -> None:
        """Answers the refused requests, writes the others in one write.

        Where the claim has to be made first, another leader may have written since: all is decided again after it.
        """
        if (
            any(isinstance(decision, DecidedChange) and decision.records for _, decision in decided)
            and await self._topic.claim_if_lost()
        ):
            await self._topic.read()
            decided = [(request, _decided(request)) for request, _ in decided]
        changes: list[tuple[Request, DecidedChange[Any]]] = []
        for request, decision in decided:
            if isinstance(decision, DecidedChange):
                changes.append((request, decision))
            else:
                request.fail(decision)
        written = [record for _, change in changes for record in change.records]
        if written:
            await self._topic.write(written)
        for request, change in changes:
            request.settle(change.answer)


def _decided(request: Request) -> DecidedChange[Any] | Exception:
    """Returns the request's change, or the error that refuses it."""
    assert request.decide is not None
    if request.over:
        return DeadlineExceeded(TIMED_OUT)
    try:
        return request.decide()
    except Exception as error:
        return error


def taken(waiting: deque[Request]) -> tuple[Request, ...]:
    """Takes the next requests from the queue: one operation, or changes of different connectors.

    No two changes of the same connector: the second depends on the result of the first. No request is served before an
    earlier one. Requests that are over are removed from the queue and left out.
    """
    requests: dict[str, Request] = {}
    while waiting and len(requests) < MAX_TOGETHER:
        request = waiting[0]
        if not request.over:
            if requests and (request.decide is None or request.connector in requests):
                break
            requests[request.connector] = request
        waiting.popleft()
        if request.decide is None and requests:
            break
    return tuple(requests.values())
