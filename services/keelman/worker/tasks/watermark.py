"""Decides by a task's progress whether it is stalled: much to copy, and nothing gets copied. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.connect.config.copying_keys import COMMIT_INTERVAL
from keelman.connect.config.life_keys import STALL_MS
from keelman.workers.properties.reader import setting

# Intervals that may rightly hold a commit back for so long.
_INTERVALS = (COMMIT_INTERVAL.name, "transaction.boundary.interval.ms", "offset.flush.interval.ms")


@dataclass(slots=True)
class Watermark:
    """Counts the commits of the copy runs of one task. Counts begin again with each copy run; times are monotonic."""

    moved_at: float
    """The time of the last commit, or of the start of copying, or when there was more to copy again."""
    commit_ms: int = 0
    """The time of the last commit, in milliseconds since 1970; 0 before the first."""
    records: int = 0
    """Committed records of this task since this worker has it."""
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    _left: int = 0
    """The lag of failed copy runs, until the next one reports."""

    @property
    def lag(self) -> int:
        """The lag, as far as the copy runs know it."""
        return sum(lag for _, lag in self._seen.values()) or self._left

    def begun(self, *, after_failure: bool = False) -> None:
        """Takes note that other copy runs follow: the lag of the former ones is not theirs.

        After a failure it is, and is not copied yet: then the time without progress continues.
        """
        self._left = self.lag if after_failure else 0
        self._seen.clear()

    def note(self, uid: str, progress: CopyProgress, now: float) -> bool:
        """Takes a copy run's report; returns whether it has committed anything since its last report."""
        (before, _), idle = self._seen.get(uid, (0, 0)), not self.lag
        self._seen[uid] = (progress.records, progress.lag)  # 0 when it is not known
        if progress.HasField("lag"):
            self._left = 0
        self.records += max(0, progress.records - before)
        if progress.records > before or (idle and self.lag):
            self.moved_at = now
        if progress.HasField("commit_time"):
            self.commit_ms = max(self.commit_ms, progress.commit_time.ToMilliseconds())
        return progress.records > before

    def stalled_seconds(self, now: float, after: float) -> float | None:
        """Returns for how long nothing was committed though there is something; None while that is normal."""
        quiet = now - self.moved_at
        return quiet if self.lag > 0 and quiet >= after else None


def stall_seconds(config: Mapping[str, str], worker: Mapping[str, str]) -> float:
    """Returns after how many seconds without progress a task of this configuration is stalled; infinity for -1.

    Twice any interval that rightly holds commits back, if that is longer. Raises InvalidArgument.
    """
    after: int = setting(STALL_MS, config, worker)
    if after < 0:
        return math.inf
    boundary = config.get("transaction.boundary", "").strip().lower()
    if boundary == "connector":
        return math.inf  # the connector ends its transactions
    intervals = _INTERVALS if boundary == "interval" else _INTERVALS[:1]
    texts = [config.get(key, "") or worker.get(key, "") for key in intervals]
    if boundary == "interval" and not any(texts[1:]):
        texts.append("60000")
    return max(after, *(2 * int(text) for text in texts if text.strip().isdecimal()), 0) / 1000
