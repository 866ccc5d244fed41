"""Decides where a source's transactions end: `transaction.boundary` poll, interval or connector, as in Connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from keelman.connect.errors import ConfigValueError
from keelman.connect.records import SourceBatch
from keelman.engine.commit_interval import DEFAULT_INTERVAL_MS, FLUSH_KEY, commit_interval_seconds

Act: TypeAlias = Literal["commit", "abort"]

KINDS = ("poll", "interval", "connector")
INTERVAL_KEY = "transaction.boundary.interval.ms"
MARGIN_SECONDS = 10.0
CONNECTOR_SECONDS = 60.0
"""The default transaction.timeout.ms of Java's producer; connectors that define their own boundaries, or whose polls
may be of any size, rely on it."""


class Boundary:
    """Decides after each read whether the open transaction ends. Only the run's thread uses it."""

    def __init__(
        self, kind: str, seconds: float, clock: Callable[[], float], *, margin_seconds: float = MARGIN_SECONDS
    ) -> None:
        """`seconds`: the longest that a transaction may stay open (poll) or the time between commits (interval); within
        the margin after it all records read by then are sent and committed."""
        self.kind = kind
        self.seconds = seconds
        self._clock, self._margin = clock, margin_seconds
        self._begun_at = self._committed_at = clock()

    @property
    def timeout_seconds(self) -> float:
        """`transaction.timeout.ms` where the producer's configuration sets none: readers of an orphan wait so long."""
        return self._seconds_with(self._margin)

    @property
    def delivery_seconds(self) -> float:
        """The delivery time-out of a batch where the configuration sets none: after it a broker counts as lost."""
        return self._seconds_with(MARGIN_SECONDS)

    @property
    def age(self) -> float:
        """The seconds since the last transaction was opened."""
        return self._clock() - self._begun_at

    def _seconds_with(self, margin: float) -> float:
        if self.kind == "connector":
            return CONNECTOR_SECONDS
        return margin if self.kind == "poll" and self.seconds <= 1 else self.seconds + margin

    def begun(self) -> None:
        """Notes that a transaction was opened."""
        self._begun_at = self._clock()

    def committed(self) -> None:
        """Notes that a transaction was committed."""
        self._committed_at = self._clock()

    def after(self, batch: SourceBatch | None) -> Act | None:
        """Returns how to end the transaction after this read, None to keep it open; `batch` is None for an empty
        read."""
        if self.kind == "connector":
            return None if batch is None else batch.boundary
        if self.kind == "interval":
            return "commit" if self._clock() - self._committed_at >= self.seconds else None
        due = batch is None or batch.short or self._clock() - self._begun_at >= self.seconds
        return "commit" if due else None

    @property
    def rests_inside(self) -> bool:
        """Whether a run may wait for its limits while a transaction is open: not if the connector defines boundaries,
        for then the transaction could outlive its time-out."""
        return self.kind != "connector"

    @property
    def at_end(self) -> Act:
        """The end of an open transaction when the run is drained; a transaction that its connector has not ended is
        incomplete."""
        return "abort" if self.kind == "connector" else "commit"


def boundary_for(
    config: Mapping[str, str],
    worker: Mapping[str, str],
    clock: Callable[[], float],
    *,
    transactional: bool,
    large_polls: bool = False,
) -> Boundary:
    """Returns a connector's boundary; with `large_polls` its reads may be of any size. Without transactions
    it is always poll, as in Connect. Raises ConfigValueError."""
    margin = CONNECTOR_SECONDS if large_polls else MARGIN_SECONDS
    kind = config.get("transaction.boundary", "poll").strip().lower() if transactional else "poll"
    if kind == "interval":
        text = config.get(INTERVAL_KEY, worker.get(FLUSH_KEY, DEFAULT_INTERVAL_MS)).strip()
        if not text.isdigit():
            raise ConfigValueError(INTERVAL_KEY, text, "Not a number of type LONG")
        return Boundary(kind, int(text) / 1000, clock, margin_seconds=margin)
    if kind not in KINDS:
        raise ConfigValueError("transaction.boundary", kind, f"String must be one of: {', '.join(KINDS)}")
    return Boundary(kind, commit_interval_seconds(worker, config), clock, margin_seconds=margin)
