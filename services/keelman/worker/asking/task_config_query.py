"""Asks connectors' classes which tasks they want: in threads, with a deadline, and again when that is due."""

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
from keelman.connect.topic_creation import TopicCreation
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import Siblings
from keelman.worker.asking.answer_freshness import Freshness, due_at
from keelman.worker.asking.connector_class import Kind, kind_of, loaded, tasks_of
from keelman.worker.restart_policy import Attempt, RestartPolicy, Restarts, reason_of

log = get_logger()
ANSWER_SECONDS = 100.0  # for all its methods; one of a third party's has less
AT_A_TIME = 16  # of one class
SOON_SECONDS = 0.2
PASSING_SECONDS = (1.0, 60.0)
Tasks = list[dict[str, str]]


def _restarts() -> Restarts:
    return Restarts(RestartPolicy(), random.random, passing_seconds=PASSING_SECONDS)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A connector's answer: the task configurations that it wants, or why there are none, as a trace.

    `more` is what a status says of the next attempt beside the trace.
    """

    tasks: Tasks | None
    trace: str = ""
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class _Asked:
    """A connector that is asked, or was."""

    config: Mapping[str, str]
    asking: bool = False
    held: bool = False
    since: float = field(default_factory=time.monotonic)
    answer: Answer | None = None
    due: float | None = None
    refresh: float | None = None  # seconds after which that answer is to be looked at again
    tasks: Tasks | None = None  # what it wanted last and may keep; None when it is to plan again
    thread: threading.Thread | None = None
    logged: str = ""  # the last trace
    at: str = ""  # the method that it was asked last
    restarts: Restarts = field(
        default_factory=lambda: Restarts(RestartPolicy(), random.random, passing_seconds=PASSING_SECONDS)
    )

    @property
    def stands(self) -> bool:
        """Whether its answer does until something outside has changed."""
        return self.tasks is not None and self.answer is not None and self.answer.tasks is not None

    @property
    def hung(self) -> bool:
        """Whether the code that was asked has not come back yet, though nobody waits for it any more."""
        return self.thread is not None and self.thread.is_alive()

    @property
    def free(self) -> bool:
        """Whether it can be asked now, when that is due."""
        return not (self.asking or self.held or self.hung)


class TaskConfigQuery:
    """The leader's. `answered` is called with the names of connectors that have a new answer, with none when only the
    time of the next question has changed; nothing here blocks or raises."""

    def __init__(
        self,
        answered: Callable[[Collection[str]], None],
        *,
        answer_seconds: float = ANSWER_SECONDS,
        creates_topics: bool = True,
    ) -> None:
        """`creates_topics`: whether this worker heeds `topic.creation.*` of its sources."""
        self._answered = answered
        self._seconds = answer_seconds
        self._creates_topics = creates_topics
        self._asked: dict[str, _Asked] = {}
        self._first: dict[str, float] = {}  # since when those are asked that have not answered yet
        self._dues: list[tuple[float, str]] = []  # a heap; of what has changed since the former entry is void
        self._together: dict[Kind, dict[str, _Asked]] = {}  # due, until their class has its next look
        self._looking: defaultdict[Kind, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._standing = Freshness(answer_seconds)
        self._siblings: Siblings | None = None
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_A_TIME))

    def begin(self, siblings: Siblings) -> None:
        """Where the asking runs."""
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
        """A connector that cannot be asked now, for lack of values: it is due again when it is asked `about`."""
        if (asked := self._asked.get(name)) is not None:
            asked.held = True

    @property
    def names(self) -> set[str]:
        """The connectors that were asked."""
        return set(self._asked)

    def again(self, name: str) -> None:
        """Asks a connector again though nothing about it has changed, with the whole restart budget."""
        if (asked := self._asked.get(name)) is not None:
            self._ask_at(name, asked, 0.0)
            asked.tasks = None
            asked.restarts.healthy()

    def refused(self, name: str, trace: str) -> Answer:
        """The answer instead of the one whose tasks cannot be stored for this reason, until the connector is asked
        again: what was stored of them would have the leader try again at once, for ever."""
        answer = Answer(None, trace)
        if (asked := self._asked.get(name)) is not None:
            asked.answer, asked.tasks = answer, None
        return answer

    def about(
        self, name: str, config: Mapping[str, str], policy: RestartPolicy | None = None, *, attempts: int = 0
    ) -> Answer | None:
        """The newest answer for this configuration; asks when there is none, or when it is due to ask again.

        `attempts` are those of its restart budget that it used with another leader.
        """
        asked = self._asked.get(name)
        if asked is None or asked.config != config:
            known = asked is not None
            asked = self._asked[name] = _Asked(config)
            self._first.pop(name, None)
            self._first[name] = asked.since
            asked.restarts.attempts = 0 if known else attempts
        asked.held = False
        asked.restarts.policy = policy or asked.restarts.policy
        due = asked.answer is None or (asked.due is not None and time.monotonic() >= asked.due)
        if due and not asked.asking and not asked.hung:
            assert self._siblings is not None
            REDACTOR.add(literal_secrets(config))  # another worker may have validated it
            asked.asking, asked.due = True, None  # what is being asked is not due: many are, at once
            if asked.stands:
                self._look_again(name, asked)
            else:
                self._siblings.start(self._ask(name, asked), name=f"asks {name}")
        return asked.answer

    def first_answers_soon(self) -> bool:
        """Whether a connector that was asked a moment ago for the first time may answer any moment."""
        newest = next(reversed(self._first.values()), None)
        return newest is not None and time.monotonic() - newest < SOON_SECONDS

    def due_seconds(self) -> float:
        """Seconds until a connector is to be asked again."""
        with contextlib.closing(self._upcoming()) as upcoming:
            due = next(upcoming, None)
        return math.inf if due is None else max(0.0, due[0] - time.monotonic())

    def due(self) -> list[str]:
        """The connectors that are to be asked again now."""
        now = time.monotonic()
        with contextlib.closing(self._upcoming()) as upcoming:
            return [name for _, name in itertools.takewhile(lambda one: one[0] <= now, upcoming)]

    def _ask_at(self, name: str, asked: _Asked, due: float | None) -> None:
        asked.due = due
        if due is not None and self._asked.get(name) is asked:
            heapq.heappush(self._dues, (due, name))

    def _upcoming(self) -> Generator[tuple[float, str]]:
        """Who can be asked again and when, the first first: looks at no more than the caller takes, who closes it."""
        seen: dict[tuple[float, str], None] = {}
        try:
            while self._dues:
                entry = heapq.heappop(self._dues)
                asked = self._asked.get(entry[1])
                if asked is None or asked.due != entry[0] or entry in seen:
                    continue
                seen[entry] = None
                if asked.free:
                    yield entry
        finally:
            for entry in seen:
                heapq.heappush(self._dues, entry)

    def _look_again(self, name: str, asked: _Asked) -> None:
        """With all others of its class that this turn of the leader finds due."""
        assert self._siblings is not None
        kind = kind_of(asked.config)
        if kind not in self._together:
            self._together[kind] = {}
            self._siblings.start(self._ask_those_that_changed(kind), name=f"looks at {kind[0]}")
        self._together[kind][name] = asked

    async def _ask_those_that_changed(self, kind: Kind) -> None:
        assert self._siblings is not None
        async with self._looking[kind]:  # by one look after the other: those that are due meanwhile share the next
            due = self._together.pop(kind)
            stands = await self._standing.of(kind, [(one.config, one.tasks or []) for one in due.values()])
        for (name, asked), still in zip(due.items(), stands, strict=True):
            if self._asked.get(name) is not asked:
                continue
            if not still:
                self._siblings.start(self._ask(name, asked), name=f"asks {name}")
                continue
            asked.asking = False
            if asked.stands:  # else somebody wants it asked again
                self._ask_at(name, asked, _due(asked))
        self._answered(())

    async def _ask(self, name: str, asked: _Asked) -> None:
        async with self._places[asked.config.get("connector.class", "")]:
            former = asked.tasks
            try:
                asked.thread, said = in_thread(lambda: _said(asked, former, creates_topics=self._creates_topics))
                try:
                    async with asyncio.timeout(self._seconds) as scope:
                        tasks, asked.refresh = await said
                    asked.thread = None
                except TimeoutError:
                    if not scope.expired():
                        raise
                    late = f"{asked.config.get('connector.class')}, {asked.at}: no answer in {self._seconds:g} s"
                    raise DeadlineExceeded(late, reason="PLUGIN_HUNG") from None
                asked.answer = Answer(tasks)
                if former is None or asked.tasks is not None:  # else somebody wants it asked again
                    asked.tasks = tasks
                    self._ask_at(name, asked, _due(asked))
                asked.logged = ""
                asked.restarts.healthy()
            except (KeelmanError, ConnectError, ValueError) as error:
                self._failed(name, asked, error, trace_of(error))
            except Exception as error:  # a fault of one connector's code must not end the worker
                log.exception("connector_crashed", connector=name)
                self._failed(name, asked, error, f"{type(error).__name__}: {error}\n")
        asked.asking = False
        if self._asked.get(name) is asked:
            self._first.pop(name, None)
        self._answered((name,))

    def _failed(self, name: str, asked: _Asked, error: Exception, trace: str) -> None:
        reason, passes = reason_of(error)
        _, delay = asked.restarts.failed(reason, retriable=passes, alone=True, healthy_seconds=0.0)
        attempt = Attempt.made(reason, asked.restarts, delay, datetime.now(UTC))
        if asked.logged != trace:
            log.warning("connector_not_asked", connector=name, error=trace.strip(), next=attempt.next)
        more = {"restart": attempt.value()} if delay is not None or asked.restarts.unhealthy else {}
        asked.logged, asked.answer = trace, Answer(None, attempt.explained(trace), more)
        self._ask_at(name, asked, None if delay is None else time.monotonic() + delay)


def _due(asked: _Asked) -> float | None:
    return None if asked.refresh is None else due_at(time.monotonic(), asked.refresh)


def _said(one: _Asked, tasks: Tasks | None, *, creates_topics: bool) -> tuple[Tasks, float | None]:
    config, one.at = one.config, "tend" if tasks is None else "tend_again"
    kind = loaded(kind_of(config))
    if creates_topics and kind.direction is Direction.SOURCE and (idle := TopicCreation(config).without_effect):
        log.warning("topic_creation_without_effect", connector=config.get("name"), keys=", ".join(idle))
    if tasks is None or not kind.tend_again(config, tasks):
        one.at = "tend"
        kind.tend(config)
        one.at = "task_configs"
        tasks = tasks_of(kind, config)
    one.at = "refresh_seconds"
    return tasks, kind.refresh_seconds(config)


def trace_of(error: Exception) -> str:
    """A trace in the shape that Connect's users know; of what a Java class has thrown the one that Java prints."""
    if isinstance(error, ConnectError) and error.java_trace:
        return f"{error.java_trace}\n"
    name = getattr(error, "java_name", ConnectError.java_name)
    return f"{name}: {getattr(error, 'message', str(error))}\n"
