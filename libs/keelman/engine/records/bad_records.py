"""Handles a task's bad records by its policy: retries, passes over, logs, keeps dead letters, or fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from keelman.connect.bad_records.dead_letter import RecordOrigin, Why, context_headers
from keelman.connect.bad_records.tolerance import Budget, Policy, RecordFailure, RecordTooLarge, refused, shortened
from keelman.connect.errors import RetriableConnectError, in_one_line
from keelman.connect.failed_record import Format
from keelman.connect.records import Headers
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import RunFailure, trace
from keelman.runtime.logs.logging import get_logger

T = TypeVar("T")
SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.01, 0.5
MAX_TEXT = 10_000

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Original:
    """A record as it was read, as far as a dead letter can hold it."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None
    key_format: Format = "bytes"
    value_format: Format = "bytes"
    partition: int | None = None
    """The target partition of a source's record, if it names one."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter to write; `size` is that of a record that was too large."""

    original: Original
    whence: RecordOrigin
    why: Why
    size: int | None = None


@dataclass(slots=True)
class Counts:
    """Counts of failures in this run, named as Connect's task-error-metrics."""

    failures: int = 0
    """Times that a step could not take a record, retried ones included."""
    errors: int = 0
    """Records that some step could not take."""
    skipped: int = 0
    """Bad records that were passed over."""
    retries: int = 0
    logged: int = 0
    letters: int = 0
    letters_failed: int = 0
    last_ms: int = 0
    """The time of the last bad record, in ms since 1970; 0 for none."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """Bad records that do not count at the moment."""

    letters: list[Letter]
    skipped: int


class BadRecords:
    """Handles the bad records of one copy run; its thread alone uses it."""

    def __init__(
        self,
        connector: str,
        task: int,
        policy: Policy,
        control: Control | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """`on_wait` is called at each step of a wait before a retry; it may raise GaveUp."""
        self.policy = policy
        self.counts = Counts()
        self._connector, self._task = connector, task
        self._control = control or Control()
        self._budget = Budget(policy)
        self.beat = self._control.beat
        """Call it between records and pieces of a batch, and at each request to another system."""
        self._on_wait = on_wait
        self._letters: list[Letter] = []
        self._before = 0, 0

    @classmethod
    def of(cls, config: Mapping[str, str], *, sink: bool) -> BadRecords:
        """Returns the handler for a connector's configuration, for conversions outside a run. Raises
        ConfigValueError."""
        return cls(config.get("name", ""), 0, Policy.of(config, sink=sink))

    def took(self, records: int) -> None:
        """Notes the size of a batch that was read."""
        self._before = len(self._letters), self.counts.skipped
        self._budget.took(records, time.monotonic() * 1000)

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`; retries it after retriable errors for as long as the policy allows.

        Raises GaveUp when the run is ordered to drain before that is over, and CutShort.
        """
        attempt, started = 0, time.monotonic()
        while True:
            self.beat()
            attempt += 1
            try:
                return work()
            except RetriableConnectError:
                pause = self.policy.pause_ms(attempt, (time.monotonic() - started) * 1000)
                if pause is None:
                    raise
            self.counts.failures += 1
            self._wait(pause / 1000)
            if self._control.draining:
                raise GaveUp
            self.counts.retries += 1

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + max(seconds, SHORTEST_WAIT_SECONDS)
        while not self._control.draining and (left := until - time.monotonic()) > 0:
            self._control.wait(min(left, LONGEST_WAIT_SECONDS))
            if self._on_wait is not None:
                self._on_wait()

    def pass_over(self, failure: RecordFailure, original: Callable[[], Original]) -> None:
        """Passes a record over, or raises RecordRefused or, once that happened too often, RunFailure."""
        counts = self.counts
        counts.failures += 1
        counts.errors += 1
        counts.last_ms = time.time_ns() // 1_000_000
        tolerated = self.policy.tolerant and failure.error.tolerable
        self._report(failure, tolerated=tolerated)
        if not tolerated:
            raise refused(failure)
        reason = self._budget.spend(time.monotonic() * 1000)
        if reason is not None:
            raise RunFailure("ERROR_BUDGET_SPENT", f"{reason}; the last one: {failure}", retriable=False)
        counts.skipped += 1
        if self.policy.dead_letters:
            size = failure.error.size if isinstance(failure.error, RecordTooLarge) else None
            self._letters.append(Letter(original(), failure.whence, why_of(failure), size))

    def give_up(self) -> None:
        """Drops the bad records of the current batch, since the batch will be read again."""
        letters, self.counts.skipped = self._before
        del self._letters[letters:]

    def set_aside(self) -> SetAside:
        """Removes and returns the bad records of the current batch, until `bring_back`: so that the batch can still be
        given up while bad records of the previous batch are reported."""
        letters, skipped = self._before
        aside = SetAside(self._letters[letters:], self.counts.skipped - skipped)
        self.give_up()
        return aside

    def bring_back(self, aside: SetAside) -> None:
        """Counts these as the current batch's bad records again; those reported meanwhile are not of this batch."""
        self._before = len(self._letters), self.counts.skipped
        self._letters += aside.letters
        self.counts.skipped += aside.skipped

    def take_letters(self) -> list[Letter]:
        """Returns the dead letters since the last call."""
        taken, self._letters = self._letters, []
        self.counts.letters += len(taken)
        return taken

    def _report(self, failure: RecordFailure, *, tolerated: bool) -> None:
        if not self.policy.log:
            return
        stage, whence = failure.stage, failure.whence
        # Connect's own words, for people who search logs for them.
        text = f"Error encountered in task {self._connector}-{self._task}. Executing stage '{stage.name}'"
        fields: dict[str, object] = {"class_name": stage.class_name, "why": in_one_line(failure.error)}
        fields["tolerated"] = tolerated
        if self.policy.log_messages:
            fields |= {"topic": whence.topic, "partition": whence.partition, "offset": whence.offset}
            if whence.offset is None:
                fields |= {"source_partition": whence.source_partition, "source_offset": whence.source_offset}
        _log.error("record_error", text=text, **{key: value for key, value in fields.items() if value is not None})
        self.counts.logged += 1

    def context(self, letter: Letter, size: int | None) -> Headers:
        """Returns the headers that describe a dead letter's error. Without `policy.context` there are none, except for
        a record that is too large (`size`), whose letter has little else."""
        if not self.policy.context and size is None:
            return ()
        return context_headers(
            letter.whence,
            letter.why,
            connector=self._connector,
            task=self._task,
            key_format=letter.original.key_format,
            value_format=letter.original.value_format,
            record_bytes=size,
            target_partition=letter.original.partition,
        )


def why_of(failure: RecordFailure) -> Why:
    """Returns a dead letter's description of its error. An error may repeat the record, so long texts are cut."""
    error, stage = failure.error, failure.stage
    message = shortened(str(error), MAX_TEXT)
    return Why(stage.name, stage.class_name, error.java_name, message, shortened(trace(error, message), MAX_TEXT))
