"""Adds up each connector's work on this worker, under the names of managed Connect services: label ConnectorName.

Measures of the whole worker, such as its processors, are its connector's where the cluster has just one; where it has
several, those samples have no ConnectorName.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from keelman.runtime.exposition import GAUGE, UNTYPED, Exposition, Family, escaped
from keelman.runtime.processes.processors import processor_time
from keelman.worker.storage import status_state as states
from keelman.worker.tasks.meters import Meter

CPU = Family("CpuUtilization", GAUGE, "Processors in use by the worker and its slots, in percent of what it may use.")
MEMORY = Family("MemoryUtilization", GAUGE, "Memory of the worker and its slots, in percent of what it may use.")
WORKERS = Family("WorkerCount", GAUGE, "Workers of the group, reported by its leader only.")
REBALANCES = Family("RebalanceCompletedTotal", UNTYPED, "Places that the group gave this worker.")
REBALANCE_AVG = Family("RebalanceTimeAvg", GAUGE, "How long the worker waited for a place on average, in ms.")
REBALANCE_MAX = Family("RebalanceTimeMax", GAUGE, "How long it waited for one at most, in ms.")
REBALANCE_SINCE = Family("RebalanceTimeSinceLast", GAUGE, "Time since it got the last one, in ms.")
STARTS = Family("TaskStartupAttemptsTotal", UNTYPED, "Starts of tasks on this worker.")
STARTS_GOOD = Family("TaskStartupSuccessPercentage", GAUGE, "Of these, those that came to run, in percent.")
RUNNING = Family("RunningTaskCount", GAUGE, "Tasks of the connector on this worker that are RUNNING.")
ERRORED = Family("ErroredTaskCount", GAUGE, "Tasks of the connector on this worker that are FAILED.")
POLLED = Family("SourceRecordPollRate", GAUGE, "Records that the connector's tasks here read in a second.")
WRITTEN = Family("SourceRecordWriteRate", GAUGE, "Records that they write and commit in a second.")
READ = Family("SinkRecordReadRate", GAUGE, "Records that the connector's tasks here read in a second.")
SENT = Family("SinkRecordSendRate", GAUGE, "Records that they put and commit in a second.")
BYTES_IN = Family("BytesInPerSec", GAUGE, "Bytes of keys and values that a sink's tasks here take from topics.")
BYTES_OUT = Family("BytesOutPerSec", GAUGE, "Bytes of keys and values that a source's tasks here write to topics.")
FAMILIES = (
    CPU, MEMORY, WORKERS, REBALANCES, REBALANCE_AVG, REBALANCE_MAX, REBALANCE_SINCE, STARTS, STARTS_GOOD, RUNNING,
    ERRORED, POLLED, WRITTEN, READ, SENT, BYTES_IN, BYTES_OUT,
)  # fmt: skip
OLDEST_SECONDS, NEWEST_SECONDS = 60.0, 5.0


@dataclass(frozen=True, slots=True)
class MayUse:
    """The processors and memory that a worker may use with its slots; 0: as much as its host has."""

    cpus: float = 0.0
    memory_bytes: int = 0

    @property
    def some_cpus(self) -> float:
        """As a number to divide by."""
        return self.cpus or processor_time()

    @property
    def some_memory(self) -> int:
        """As a number to divide by."""
        return self.memory_bytes or int(psutil.virtual_memory().total)


class CpuUsage:
    """Processors in use, from totals of processor time: over some seconds before each call.

    The first answer is over all the time since the process began.
    """

    def __init__(self, began: float) -> None:
        """`began`: by the monotonic clock."""
        self._seen = deque([(began, 0.0)])

    def of(self, seconds: float, now: float) -> float:
        """Returns the processors in use, given the total `seconds` of processor time until now."""
        if seconds < self._seen[-1][1]:  # slots ended and took their share with them
            self._seen = deque([(now, seconds)])
            return 0.0
        while (
            len(self._seen) > 1 and now - self._seen[1][0] >= NEWEST_SECONDS and now - self._seen[0][0] > OLDEST_SECONDS
        ):
            self._seen.popleft()
        at, before = next(
            (sample for sample in reversed(self._seen) if now - sample[0] >= NEWEST_SECONDS), self._seen[0]
        )
        if now - self._seen[-1][0] >= 1.0:
            self._seen.append((now, seconds))
        return (seconds - before) / (now - at) if now > at else 0.0


@dataclass(slots=True)
class Sum:
    """The work of one connector's tasks on this worker, added up."""

    source: bool | None = None  # None: its class is not known
    running: int = 0
    errored: int = 0
    records: float = 0.0
    bytes: float = 0.0

    def add(self, status: str, meter: Meter | None) -> None:
        """Adds a task."""
        self.running += status == states.RUNNING
        self.errored += status == states.FAILED
        if meter is not None and meter.live:
            records, size = meter.rates()
            self.records, self.bytes = self.records + records, self.bytes + size

    def samples(self) -> Iterator[tuple[Family, float]]:
        """Yields the metrics of the connector."""
        yield RUNNING, self.running
        yield ERRORED, self.errored
        if self.source is not None:
            yield (POLLED if self.source else READ), self.records
            yield (WRITTEN if self.source else SENT), self.records
            yield (BYTES_OUT if self.source else BYTES_IN), self.bytes


class ConnectorFigures:
    """The figures of one scrape. `worker` is a label of all."""

    def __init__(self, worker: str) -> None:
        self._worker = f'worker="{escaped(worker)}"'
        self._sums: dict[str, Sum] = {}

    def add_connector(self, connector: str, kind: str) -> Sum:
        """Returns the sum for a connector's tasks; `kind` is source or sink, or neither."""
        if connector not in self._sums:
            self._sums[connector] = Sum({"source": True, "sink": False}.get(kind))
        return self._sums[connector]

    def labels(self, connector: str) -> str:
        """Returns the labels of a connector's samples; "" for samples of no connector."""
        return f'ConnectorName="{escaped(connector)}",{self._worker}' if connector else self._worker

    def write(self, out: Exposition, connector: str) -> None:
        """Writes one connector's work."""
        labels = self.labels(connector)
        for family, value in self._sums[connector].samples():
            out.add(family, value, labels)

    @property
    def connectors(self) -> list[str]:
        """The connectors with work here."""
        return list(self._sums)
