"""Counts the progress of a copy run: committed records, rates over the last seconds, the lag."""

from __future__ import annotations

import time
from collections import deque

from google.protobuf.duration_pb2 import Duration

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_UNSPECIFIED, BadRecords, CopyProgress, LagUnit
from keelman.engine.records.bad_records import Counts
from keelman.rpc.times import to_duration

WINDOW_SECONDS = 5.0


class Progress:
    """One run's progress. Only the run's thread uses it."""

    def __init__(self, now: float | None = None, bad: Counts | None = None) -> None:
        """`bad` has the run's counts of bad records."""
        self._bad = Counts() if bad is None else bad
        self._records = 0
        self._bytes = 0
        self._passed = 0
        self._offsets: dict[str, str] = {}
        self._committed_at: float | None = None
        self._marks: deque[tuple[float, int, int, int]] = deque([(time.monotonic() if now is None else now, 0, 0, 0)])
        self.errors = 0
        """Records that were passed over, as `errors.tolerance` allows."""
        self.changed = True
        self._reported: tuple[float, int | None] = (0.0, None)

    @property
    def left(self) -> bool:
        """Whether the last report had a lag."""
        return bool(self._reported[1])

    def news(self, lag: int | None) -> bool:
        """Returns whether to report: after a change, while the rate has not fallen to 0 yet, or for another lag."""
        return self.changed or self._reported[0] > 0 or self._reported[1] != lag

    def commit(
        self, records: int, size: int, offsets: dict[str, str], *, passed: int | None = None, now: float | None = None
    ) -> None:
        """Adds committed records. After a quiet time the rate is counted from zero, not over the quiet.

        `passed` is the reduction of the lag, in the lag's own unit; None for the number of records. A file's
        lag is in bytes of the file, of which a converter may make several times as many.
        """
        self.count(records, size, passed=passed, now=now)
        self._offsets.update(offsets)
        self._committed_at = time.time()

    def count(self, records: int, size: int, *, passed: int | None = None, now: float | None = None) -> None:
        """Adds written records, which are committed with another call or separately."""
        at = time.monotonic() if now is None else now
        if at - self._marks[-1][0] > WINDOW_SECONDS:
            self._marks = deque([(at - 1.0, self._records, self._bytes, self._passed)])
        self._records += records
        self._bytes += size
        self._passed += records if passed is None else passed
        self.errors = self._bad.skipped
        self.changed = True

    def message(self, lag: int | None, unit: LagUnit.ValueType, now: float | None = None) -> CopyProgress:
        """Returns the progress to report; `lag` is in `unit`, None when not known."""
        at = time.monotonic() if now is None else now
        self._marks.append((at, self._records, self._bytes, self._passed))
        while len(self._marks) > 2 and at - self._marks[1][0] >= WINDOW_SECONDS:
            self._marks.popleft()
        since, records, size, passed = self._marks[0]
        seconds = max(at - since, 1e-3)
        per_second = (self._records - records) / seconds, (self._bytes - size) / seconds
        self.changed, self._reported = False, (per_second[0], lag)
        message = CopyProgress(
            records=self._records,
            bytes=self._bytes,
            records_per_second=per_second[0],
            bytes_per_second=per_second[1],
            lag=lag,
            lag_unit=LAG_UNIT_UNSPECIFIED if lag is None else unit,
            remaining_time=_remaining_time(lag, (self._passed - passed) / seconds),
            offsets=self._offsets,
            errors=self.errors,
            bad_records=self._bad_records(),
        )
        if self._committed_at is not None:
            message.commit_time.FromNanoseconds(round(self._committed_at * 1e9))
        return message

    def _bad_records(self) -> BadRecords | None:
        bad = self._bad
        if not bad.failures:
            return None
        message = BadRecords(
            failures=bad.failures,
            errors=bad.errors,
            retries=bad.retries,
            logged=bad.logged,
            dead_letters=bad.letters,
            dead_letter_failures=bad.letters_failed,
        )
        if bad.last_ms:
            message.last_time.FromMilliseconds(bad.last_ms)
        return message


def _remaining_time(lag: int | None, rate: float) -> Duration | None:
    """Returns the time until the lag is copied at this rate; None when not known."""
    if lag is None or (lag and rate <= 0):
        return None
    return to_duration(lag / rate if lag else 0.0)


def payload_bytes(payloads: list[bytes | None]) -> int:
    """Returns the bytes of all payloads; a null has none."""
    try:
        return sum(map(len, payloads))  # type: ignore[arg-type]  # nulls are rare: counted the slow way when they come
    except TypeError:
        return sum(len(p) for p in payloads if p is not None)
