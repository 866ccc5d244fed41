"""Decides how to treat a record that cannot be copied: Connect's `errors.*` keys, and a budget of ours. Pure.

As Connect's RetryWithToleranceOperator decides (KIP-298): only transient errors are retried, and an error that is not
tolerated fails the task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.connect.bad_records.dead_letter import RecordOrigin
from keelman.connect.config.connector_keys import DEAD_LETTERS, common_keys
from keelman.connect.config.error_keys import BUDGET, BUDGET_PERCENT, BUDGET_WINDOW, budget_keys, dead_letter_keys
from keelman.connect.errors import ConnectError, DataError, RetriableConnectError, in_one_line
from keelman.connect.failed_record import Stage
from keelman.connect.offsets import in_json

FIRST_DELAY_MS = 300
MAX_LINE = 2_000
MIN_FOR_PERCENT = 10
"""With fewer bad records a share of them means nothing."""


class RecordTooLarge(ConnectError):
    """A record exceeds the size limit of its producer or its topic."""

    java_name = "org.apache.kafka.common.errors.RecordTooLargeException"

    def __init__(self, size: int, text: str) -> None:
        super().__init__(text)
        self.size = size


class RecordFailure(ConnectError):
    """One record could not be taken at one stage; raised with the error as its cause."""

    def __init__(self, stage: Stage, error: Exception, whence: RecordOrigin) -> None:
        self.stage = stage
        self.error = known(error)
        self.whence = whence
        self.java_name = self.error.java_name
        text = shortened(in_one_line(self.error), MAX_LINE)
        super().__init__(f"{text} ({place_of(whence)}; {stage.text})")
        self.__cause__ = error


class RecordRefused(ConnectError):
    """Ends a task because of one record. `head` is Connect's own first line for it; the cause is a RecordFailure."""

    def __init__(self, head: str, failure: RecordFailure) -> None:
        super().__init__(f"{head}: {failure}")
        self.head = head
        self.failure = failure
        self.retriable = isinstance(failure.error, RetriableConnectError)
        self.__cause__ = failure


def refused(failure: RecordFailure) -> RecordRefused:
    """Returns the error that ends the task, with Connect's text for the stage."""
    if failure.stage.name == "KAFKA_PRODUCE":
        return RecordRefused("Unrecoverable exception from producer send callback", failure)
    return RecordRefused("Tolerance exceeded in error handler", failure)


def known(error: Exception) -> ConnectError:
    """Returns the error as one of Connect's: an error that Python itself raises about data is a fault of the data."""
    if isinstance(error, ConnectError):
        return error
    return DataError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)


def place_of(whence: RecordOrigin) -> str:
    """Returns a record's origin, for people."""
    if whence.offset is not None:
        return f"topic {whence.topic}, partition {whence.partition}, offset {whence.offset}"
    if whence.source_partition is None:
        return f"for topic {whence.topic}"
    place = f"source partition {in_json(whence.source_partition)}, for topic {whence.topic}"
    return place if whence.source_offset is None else f"source offset {in_json(whence.source_offset)}, {place}"


def shortened(text: str, most: int) -> str:
    """Returns the text, cut to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


@dataclass(frozen=True, slots=True)
class Policy:
    """A connector's parsed `errors.*` keys. Times are in milliseconds."""

    tolerant: bool = False
    retry_ms: int = 0
    """-1: without a limit."""
    delay_ms: int = 60_000
    log: bool = False
    log_messages: bool = False
    dead_letters: str = ""
    """The topic of dead letters; empty for none."""
    context: bool = False
    budget: int = -1
    budget_percent: float = 100.0
    window_ms: int = 3_600_000

    @classmethod
    def of(cls, config: Mapping[str, str], *, sink: bool) -> Policy:
        """Parses the keys. Raises ConfigValueError."""
        keys = common_keys() + dead_letter_keys(sink=sink) + budget_keys()
        values = {name: key.parse(config) for name, key in keys.keys.items() if "errors." in name}
        return cls(
            tolerant=values["errors.tolerance"] == "all",
            retry_ms=values["errors.retry.timeout"],
            delay_ms=values["errors.retry.delay.max.ms"],
            log=values["errors.log.enable"],
            log_messages=values["errors.log.include.messages"],
            dead_letters=(values[DEAD_LETTERS] or "").strip(),
            context=values["errors.deadletterqueue.context.headers.enable"],
            budget=values[BUDGET.name],
            budget_percent=values[BUDGET_PERCENT.name],
            window_ms=values[BUDGET_WINDOW.name],
        )

    @property
    def keeps_dead_letters(self) -> bool:
        """Whether skipped records go into a topic."""
        return self.tolerant and bool(self.dead_letters)

    def pause_ms(self, attempt: int, elapsed_ms: float) -> float | None:
        """Returns the pause after a failed attempt, counted from 1, before the next; None for no next attempt."""
        pause = min(FIRST_DELAY_MS << min(attempt - 1, 32), max(self.delay_ms, 0))
        if self.retry_ms < 0:
            return pause
        left = self.retry_ms - elapsed_ms
        return None if left <= 0 else min(pause, left)


@dataclass(slots=True)
class _Slice:
    """A sixtieth of the window, or a little more."""

    since_ms: float
    records: int = 0
    bad: int = 0


@dataclass(slots=True)
class Budget:
    """Counts the records skipped recently; all times are in milliseconds.

    A budget in records keeps a time for each: there are at most that many. A share is counted in slices of the window.
    """

    policy: Policy
    _times: deque[float] = field(default_factory=deque)
    _slices: deque[_Slice] = field(default_factory=deque)
    _records: int = 0
    _bad: int = 0

    def took(self, records: int, now_ms: float) -> None:
        """Counts records that were read, including bad ones."""
        if self.policy.budget_percent < 100:
            self._count(now_ms, records=records)

    def spend(self, now_ms: float) -> str | None:
        """Counts one more skipped record; returns why that exceeds the budget, None if it does not."""
        policy, within = self.policy, f"within {self.policy.window_ms} ms"
        if policy.budget >= 0:
            self._times.append(now_ms)
            while now_ms - self._times[0] > policy.window_ms:
                self._times.popleft()
            bad = len(self._times)
            if bad > policy.budget:
                return f"{bad} records could not be copied {within}, {BUDGET.name} allows {policy.budget}"
        if policy.budget_percent < 100:
            self._count(now_ms, bad=1)
            bad, records = self._bad, max(self._records, self._bad)
            if bad >= MIN_FOR_PERCENT and bad * 100 > policy.budget_percent * records:
                text = f"{bad} of {records} records could not be copied {within}"
                return f"{text}, {BUDGET_PERCENT.name} allows {policy.budget_percent:g} of 100"
        return None

    def _count(self, now_ms: float, *, records: int = 0, bad: int = 0) -> None:
        slices, window_ms = self._slices, self.policy.window_ms
        if not slices or now_ms - slices[-1].since_ms > window_ms / 60:
            slices.append(_Slice(now_ms))
        slices[-1].records += records
        slices[-1].bad += bad
        self._records += records
        self._bad += bad
        while now_ms - slices[0].since_ms > window_ms:
            gone = slices.popleft()
            self._records -= gone.records
            self._bad -= gone.bad
