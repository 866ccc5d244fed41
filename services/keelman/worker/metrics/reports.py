"""Reports this worker's place, usage, lags and problems to the control plane: on every change, and now and then."""

from __future__ import annotations

import os
import time
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_BYTES, LAG_UNIT_RECORDS
from keelman.api.event.v1.report_pb2 import ConnectorLag, LagReport, Report, WorkerReport, WorkerUsage
from keelman.kafka.feed import WORKER_REPORTS, ReportPublisher
from keelman.model.work import Work
from keelman.rpc.times import from_duration, to_duration
from keelman.runtime.ticks import tick
from keelman.worker.group.herder import Herder
from keelman.worker.metrics.problems import Problems, problems_of
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.meters import Meters

LOOK_SECONDS = 1.0
REPORT_SECONDS = 5.0
PROBLEMS_SECONDS = 2.0
MAX_LAGS = 5_000  # in one report
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Counted:
    """Counts a worker's work, once: for 10,000 connectors a count at every look would cost too much."""

    def __init__(self, works: frozenset[Work] = frozenset()) -> None:
        self.works = works
        self.tasks = sum(work.is_task for work in works)


async def report(
    herder: Herder, link: SparkLink, publisher: ReportPublisher, *, worker_cluster: str, worker: str
) -> None:
    """Runs until cancelled."""
    last: object = None
    reported, looked = 0.0, 0.0
    lags: list[ConnectorLag] | None = None
    problems, counted, seen = Problems(), Counted(), (-1, frozenset[Work]())
    while True:
        works, statuses = herder.owned.works, herder.store.statuses
        changed = statuses.changes != seen[0] or works is not seen[1]
        if changed and time.monotonic() - looked >= PROBLEMS_SECONDS:
            looked, seen = time.monotonic(), (statuses.changes, works)
            problems = problems_of(works, statuses.statuses, worker)
        if works is not counted.works:
            counted = Counted(works)
        now = (herder.place, herder.membership.healthy, herder.membership.generation, counted, problems)
        if now != last or time.monotonic() - reported >= REPORT_SECONDS:
            membership = membership_of(herder, counted, problems)
            herder.owned.tasks.meters.keep(works.union(statuses.lost))
            usage = usage_of(link, herder.owned.tasks.meters)
            about = WorkerReport(worker_cluster=worker_cluster, worker_id=worker, membership=membership, usage=usage)
            publisher.publish(WORKER_REPORTS, worker, _report(worker, worker, worker=about))
            if (left := lags_of(herder.owned.tasks.meters)) != lags:
                lags, key = left, f"{worker}/lag"
                by_connector = LagReport(worker_cluster=worker_cluster, worker_id=worker, connectors=left)
                publisher.publish(WORKER_REPORTS, key, _report(worker, key, lags=by_connector))
            last, reported = now, time.monotonic()
        await tick(LOOK_SECONDS)


def membership_of(herder: Herder, counted: Counted, problems: Problems) -> WorkerMembership:
    """Returns the worker's place, without a time."""
    place = herder.place
    return WorkerMembership(
        joined=herder.membership.healthy,
        leader=place is not None and place.leader,
        group_generation=max(0, herder.membership.generation),
        connectors=len(counted.works) - counted.tasks,
        tasks=counted.tasks,
        problems=problems.named,
        problem_connectors=problems.connectors,
    )


def usage_of(link: SparkLink, meters: Meters) -> WorkerUsage:
    """Returns the present use of this process and its slots, and the lag of its tasks."""
    slots = link.usage
    own = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    return WorkerUsage(
        slots=slots.slots,
        cpu_time=to_duration(time.process_time() + from_duration(slots.cpu_time)),
        memory_bytes=own + slots.memory_bytes,
        lag_records=meters.lag(LAG_UNIT_RECORDS),
        lag_bytes=meters.lag(LAG_UNIT_BYTES),
        records_per_second=meters.rate(),
        waiting_tasks=meters.waiting(),
        running_tasks=meters.live(),
    )


def lags_of(meters: Meters) -> list[ConnectorLag]:
    """Returns the lag of each connector here, where that is measured; those with most first."""
    lags = [
        ConnectorLag(connector=name, records=left.get(LAG_UNIT_RECORDS), bytes=left.get(LAG_UNIT_BYTES))
        for name, left in meters.lags().items()
    ]
    return sorted(lags, key=lambda lag: (-max(lag.records, lag.bytes), lag.connector))[:MAX_LAGS]


def _report(reporter: str, name: str, **subject: WorkerReport | LagReport) -> bytes:
    now = Timestamp()
    now.GetCurrentTime()
    if isinstance(about := subject.get("worker"), WorkerReport):
        about.membership.report_time.CopyFrom(now)
    return Report(time=now, reporter=reporter, name=name, **subject).SerializeToString()  # type: ignore[arg-type]
