"""Limits the bytes that a copy run has under way to the brokers, to what they take in about a second. Pure.

A transaction ends within its time-out only if all that it holds is delivered by then, so on a slow target (a quota, a
thin link, many tasks that share one) little may wait at a time. A broker with a quota takes a burst of ten seconds'
worth at full speed before it throttles (`quota.window.num` times `quota.window.size.seconds`,
https://kafka.apache.org/documentation/#quotas); so the rate is that of the last ten seconds, not that of the moment.

A broker throttles by muting the connection behind each answer, for as long as all that it took is over the quota
(KIP-219): a transaction of several requests waits for that several times, one of a single request not at all. So where
the target is known to be slow a transaction should end as soon as it is worth a request.
"""

from __future__ import annotations

import math

FIRST_BYTES = 1 << 15
"""What is allowed before anything is known: out within the shortest transaction at 4 KB/s."""
MEMORY_SECONDS = 10.0
OUT_SECONDS = 1.0
REQUEST_BYTES = 1 << 17
"""What is worth a request, and a transaction, on a slow target."""

SURE_BYTES = 1 << 18
"""With a smaller window a target that many tasks share may be about to throttle for longer than a transaction lives."""


class SendWindow:
    """The send window of one producer. Times are seconds of any one clock that does not go back; sizes are bytes.

    It begins small with each copy run: a run that ended at its delivery deadline is not followed by one that begins as
    large. It grows by a tenth of each byte that is delivered, so that on a fast target it is open after a quarter of a
    second, and shrinks with time. One thread may call `delivered` while another calls the rest.
    """

    def __init__(self, most: int) -> None:
        """`most` is never exceeded."""
        self._most = most
        self._recent = (0.0, -math.inf)
        self._slow_until = -math.inf

    def delivered(self, size: int, now: float) -> None:
        """So much more has arrived."""
        self._recent = (self._faded(now) + size, now)

    def held_back(self, now: float) -> None:
        """The target made the copy run wait until now, or will until then: it is slow for a while."""
        self._slow_until = max(self._slow_until, now + MEMORY_SECONDS)

    def most_bytes(self, now: float) -> int:
        """Returns the bytes that may be queued or in flight now."""
        return min(self._most, max(FIRST_BYTES, int(self._faded(now) * OUT_SECONDS / MEMORY_SECONDS)))

    def is_slow(self, now: float) -> bool:
        """Returns whether the target was slow lately, and the window is not fully open in spite of it; or may be slow
        for all that is known."""
        most = self.most_bytes(now)
        return most < SURE_BYTES or (now < self._slow_until and most < self._most)

    def enough_bytes(self, now: float) -> int:
        """Returns the bytes that are enough for a transaction while the target is slow."""
        return min(self.most_bytes(now), REQUEST_BYTES)

    def read_bytes(self, now: float) -> int | None:
        """How much to read at a time, so that one read does not fill several transactions; None while the window is
        fully open."""
        if self.is_slow(now):
            return self.enough_bytes(now)
        most = self.most_bytes(now)
        return None if most >= self._most else max(1, most // 2)

    def _faded(self, now: float) -> float:
        recent, at = self._recent
        return recent * math.exp((at - now) / MEMORY_SECONDS) if recent else 0.0
