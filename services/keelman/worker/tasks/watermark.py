"""Decides by a task's progress whether it is stalled: much to copy, and nothing gets copied. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.connect.config.copying_keys import COMMIT_INTERVAL
from keelman.connect.config.life_keys import STALL_MS
from keelman.workers.properties.reader import setting

# What may rightly hold a commit back for so long.
_INTERVALS = (COMMIT_INTERVAL.name, "transaction.boundary.interval.ms", "offset.flush.interval.ms")


@dataclass(slots=True)
class Watermark:
    """Counts what the copy runs of one task have committed. Counts begin again with each copy run; times are
    monotonic."""

    moved_at: float
    """When anything was committed last, or copying began, or there was more to copy again."""
    commit_ms: int = 0
    """When the last commit was, in milliseconds since 1970; 0 before the first."""
    records: int = 0
    """Committed records of this task since this worker has it."""
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    _left: int = 0
    """What failed copy runs had left, until the next one reports."""

    @property
    def lag(self) -> int:
        """What is left to copy, as far as the copy runs know."""
        return sum(lag for _, lag in self._seen.values()) or self._left

    def begun(self, *, after_failure: bool = False) -> None:
        """There are other copy runs from now on: what the former ones had left is not theirs.

        After a failure it is, and is not copied yet: then the time without progress goes on.
        """
        self._left = self.lag if after_failure else 0
        self._seen.clear()

    def note(self, uid: str, progress: CopyProgress, now: float) -> bool:
        """Takes what a copy run reports; whether it has committed anything since its last report."""
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
        """For how long nothing was committed though there is something; None while that is as it should be."""
        quiet = now - self.moved_at
        return quiet if self.lag > 0 and quiet >= after else None


def stall_seconds(config: Mapping[str, str], worker: Mapping[str, str]) -> float:
    """After how many seconds without progress a task of this configuration is stalled; never for -1.

    Twice any interval that rightly holds commits back, if that is longer. Raises InvalidArgument.
    """
    after: int = setting(STALL_MS, config, worker)
    if after < 0:
        return math.inf
    boundary = config.get("transaction.boundary", "").strip().lower()
    if boundary == "connector":
        return math.inf  # its transactions end when it says so
    known = _INTERVALS if boundary == "interval" else _INTERVALS[:1]
    texts = [config.get(key, "") or worker.get(key, "") for key in known]
    if boundary == "interval" and not any(texts[1:]):
        texts.append("60000")
    return max(after, *(2 * int(text) for text in texts if text.strip().isdecimal()), 0) / 1000
