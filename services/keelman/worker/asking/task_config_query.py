"""Queries connectors' classes for their task configurations: in threads, with a deadline, and again when that is
due."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import math
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keelman.connect.config.secret_keys import literal_secrets
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Direction
from keelman.connect.topic_creation import TopicCreation, creates_topics
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import Siblings
from keelman.worker.asking.answer_freshness import Freshness, due_at
from keelman.worker.asking.connector_class import NO_PROPERTIES, Kind, kind_of, loaded, tasks_of
from keelman.worker.restart_policy import Attempt, RestartPolicy, Restarts, reason_of

log = get_logger()
ANSWER_SECONDS = 100.0  # for all methods of a query; a third-party method has less
AT_A_TIME = 16  # of one class
SOON_SECONDS = 0.2
PASSING_SECONDS = (1.0, 60.0)
Tasks = list[dict[str, str]]


def _restarts() -> Restarts:
    return Restarts(RestartPolicy(), random.random, passing_seconds=PASSING_SECONDS)


@dataclass(frozen=True, slots=True, eq=False)
class ConnectorAnswer:
    """A connector's answer: the task configurations that it wants, or a trace that tells why there are none.

    `more` holds a status's fields about the next attempt, beside the trace.
    """

    tasks: Tasks | None
    trace: str = ""
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class _Asked:
    """A connector with a query, running or finished."""

    config: Mapping[str, str]
    asking: bool = False
    held: bool = False
    since: float = field(default_factory=time.monotonic)
    answer: ConnectorAnswer | None = None
    due: float | None = None
    refresh: float | None = None  # seconds after which that answer has to be checked again
    tasks: Tasks | None = None  # the tasks that it wanted last and may keep; None: plan again
    thread: threading.Thread | None = None
    logged: str = ""  # the last trace
    at: str = ""  # the method that was called last
    restarts: Restarts = field(
        default_factory=lambda: Restarts(RestartPolicy(), random.random, passing_seconds=PASSING_SECONDS)
    )

    @property
    def stands(self) -> bool:
        """Whether its answer stays valid until something outside has changed."""
        return self.tasks is not None and self.answer is not None and self.answer.tasks is not None

    @property
    def hung(self) -> bool:
        """Whether the called code has not returned yet, though the query has given up waiting for it."""
        return self.thread is not None and self.thread.is_alive()

    @property
    def free(self) -> bool:
        """Whether a query can start now, if it is due."""
        return not (self.asking or self.held or self.hung)


class TaskConfigQuery:
    """The leader's queries. Calls `answered` with the names of connectors that have a new answer, with no names when
    only the time of the next query has changed; nothing here blocks or raises."""

    def __init__(
        self,
        answered: Callable[[Collection[str]], None],
        worker: Mapping[str, str] = NO_PROPERTIES,
        *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """`worker`: the worker's properties."""
        self._answered = answered
        self._seconds = answer_seconds
        self._worker = worker
        self._asked: dict[str, _Asked] = {}
        self._first: dict[str, float] = {}  # start times of connectors' first queries that have no answer yet
        self._dues: list[tuple[float, str]] = []  # a heap; an entry is void if its connector has changed since
        self._together: dict[Kind, dict[str, _Asked]] = {}  # due, until the next check of their class
        self._looking: defaultdict[Kind, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._standing = Freshness(answer_seconds, worker)
        self._siblings: Siblings | None = None
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_A_TIME))

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which the queries run."""
        self._siblings = siblings

    def forget(self, name: str | None = None) -> None:
        """Forgets one connector or all of them."""
        if name is None:
            self._asked.clear()
            self._first.clear()
            self._dues.clear()
        else:
            self._asked.pop(name, None)
            self._first.pop(name, None)

    def hold(self, name: str) -> None:
        """Marks a connector as not ready, for lack of values: it is due again at the next call of `about`."""
        if (query := self._asked.get(name)) is not None:
            query.held = True

    @property
    def names(self) -> set[str]:
        """The connectors that have been queried."""
        return set(self._asked)

    def again(self, name: str) -> None:
        """Queries a connector again though nothing about it has changed, with the whole restart budget."""
        if (query := self._asked.get(name)) is not None:
            self._ask_at(name, query, 0.0)
            query.tasks = None
            query.restarts.healthy()

    def refused(self, name: str, trace: str) -> ConnectorAnswer:
        """Replaces an answer whose tasks cannot be stored, for this reason, until the connector is queried again: the
        part of them that was stored would have the leader try again at once, for ever."""
        answer = ConnectorAnswer(None, trace)
        if (query := self._asked.get(name)) is not None:
            query.answer, query.tasks = answer, None
        return answer

    def about(
        self, name: str, config: Mapping[str, str], policy: RestartPolicy | None = None, *, attempts: int = 0
    ) -> ConnectorAnswer | None:
        """Returns the newest answer for this configuration; starts a query when there is none, or when a new one is
        due.

        `attempts` is the part of its restart budget that it used with another leader.
        """
        query = self._asked.get(name)
        if query is None or query.config != config:
            is_known = query is not None
            query = self._asked[name] = _Asked(config)
            self._first.pop(name, None)
            self._first[name] = query.since
            query.restarts.attempts = 0 if is_known else attempts
        query.held = False
        query.restarts.policy = policy or query.restarts.policy
        due = query.answer is None or (query.due is not None and time.monotonic() >= query.due)
        if due and not query.asking and not query.hung:
            assert self._siblings is not None
            REDACTOR.add(literal_secrets(config))  # another worker may have validated it
            query.asking, query.due = True, None  # a running query is not due: many run at once
            if query.stands:
                self._look_again(name, query)
            else:
                self._siblings.start(self._ask(name, query), name=f"asks {name}")
        return query.answer

    def first_answers_soon(self) -> bool:
        """Returns whether a connector whose first query started a moment ago may answer any moment."""
        newest = next(reversed(self._first.values()), None)
        return newest is not None and time.monotonic() - newest < SOON_SECONDS

    def due_seconds(self) -> float:
        """Returns the seconds until a connector is due for a query."""
        with contextlib.closing(self._upcoming()) as upcoming:
            due = next(upcoming, None)
        return math.inf if due is None else max(0.0, due[0] - time.monotonic())

    def due(self) -> list[str]:
        """Returns the connectors that are due for a query now."""
        now = time.monotonic()
        with contextlib.closing(self._upcoming()) as upcoming:
            return [name for _, name in itertools.takewhile(lambda entry: entry[0] <= now, upcoming)]

    def _ask_at(self, name: str, query: _Asked, due: float | None) -> None:
        query.due = due
        if due is not None and self._asked.get(name) is query:
            heapq.heappush(self._dues, (due, name))

    def _upcoming(self) -> Generator[tuple[float, str]]:
        """Yields times and names of connectors that can be queried again, the earliest first. Reads no more entries
        than the caller takes; the caller closes it."""
        seen: dict[tuple[float, str], None] = {}
        try:
            while self._dues:
                entry = heapq.heappop(self._dues)
                query = self._asked.get(entry[1])
                if query is None or query.due != entry[0] or entry in seen:
                    continue
                seen[entry] = None
                if query.free:
                    yield entry
        finally:
            for entry in seen:
                heapq.heappush(self._dues, entry)

    def _look_again(self, name: str, query: _Asked) -> None:
        """Checks the answer again, together with all others of its class that this turn of the leader finds due."""
        assert self._siblings is not None
        kind = kind_of(query.config)
        if kind not in self._together:
            self._together[kind] = {}
            self._siblings.start(self._ask_those_that_changed(kind), name=f"looks at {kind[0]}")
        self._together[kind][name] = query

    async def _ask_those_that_changed(self, kind: Kind) -> None:
        assert self._siblings is not None
        async with self._looking[kind]:  # one check at a time: connectors that become due meanwhile share the next
            due = self._together.pop(kind)
            stands = await self._standing.of(kind, [(query.config, query.tasks or []) for query in due.values()])
        for (name, query), still in zip(due.items(), stands, strict=True):
            if self._asked.get(name) is not query:
                continue
            if not still:
                self._siblings.start(self._ask(name, query), name=f"asks {name}")
                continue
            query.asking = False
            if query.stands:  # else a new query has been requested
                self._ask_at(name, query, _due(query))
        self._answered(())

    async def _ask(self, name: str, query: _Asked) -> None:
        async with self._places[query.config.get("connector.class", "")]:
            former = query.tasks
            try:
                query.thread, said = in_thread(lambda: _said(query, former, self._worker))
                try:
                    async with asyncio.timeout(self._seconds) as scope:
                        tasks, query.refresh = await said
                    query.thread = None
                except TimeoutError:
                    if not scope.expired():
                        raise
                    late = f"{query.config.get('connector.class')}, {query.at}: no answer in {self._seconds:g} s"
                    raise DeadlineExceeded(late, reason="PLUGIN_HUNG") from None
                query.answer = ConnectorAnswer(tasks)
                if former is None or query.tasks is not None:  # else a new query has been requested
                    query.tasks = tasks
                    self._ask_at(name, query, _due(query))
                query.logged = ""
                query.restarts.healthy()
            except (KeelmanError, ConnectError, ValueError) as error:
                self._failed(name, query, error, trace_of(error))
            except Exception as error:  # a fault of one connector's code must not end the worker
                log.exception("connector_crashed", connector=name)
                self._failed(name, query, error, f"{type(error).__name__}: {error}\n")
        query.asking = False
        if self._asked.get(name) is query:
            self._first.pop(name, None)
        self._answered((name,))

    def _failed(self, name: str, query: _Asked, error: Exception, trace: str) -> None:
        reason, passes = reason_of(error)
        _, delay = query.restarts.failed(reason, retriable=passes, alone=True, healthy_seconds=0.0)
        attempt = Attempt.made(reason, query.restarts, delay, datetime.now(UTC))
        if query.logged != trace:
            log.warning("connector_not_asked", connector=name, error=trace.strip(), next=attempt.next)
        more = {"restart": attempt.value()} if delay is not None or query.restarts.unhealthy else {}
        query.logged, query.answer = trace, ConnectorAnswer(None, attempt.explained(trace), more)
        self._ask_at(name, query, None if delay is None else time.monotonic() + delay)


def _due(query: _Asked) -> float | None:
    return None if query.refresh is None else due_at(time.monotonic(), query.refresh)


def _said(query: _Asked, tasks: Tasks | None, worker: Mapping[str, str]) -> tuple[Tasks, float | None]:
    query.at = "tend" if tasks is None else "tend_again"
    kind = loaded(kind_of(query.config))
    config = kind.completed(query.config, worker)
    if creates_topics(worker) and kind.direction is Direction.SOURCE and (idle := TopicCreation(config).without_effect):
        log.warning("topic_creation_without_effect", connector=config.get("name"), keys=", ".join(idle))
    if tasks is None or not kind.tend_again(config, tasks):
        query.at = "tend"
        kind.tend(config)
        query.at = "task_configs"
        tasks = tasks_of(kind, query.config, worker)
    query.at = "refresh_seconds"
    return tasks, kind.refresh_seconds(config)


def trace_of(error: Exception) -> str:
    """Returns a trace in the shape that Connect's users know; for a Java exception, Java's own trace."""
    if isinstance(error, ConnectError) and error.java_trace:
        return f"{error.java_trace}\n"
    name = getattr(error, "java_name", ConnectError.java_name)
    return f"{name}: {getattr(error, 'message', str(error))}\n"
