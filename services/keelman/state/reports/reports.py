"""Keeps in memory the reports of workers and Spark services through Kafka: copy runs, memberships, usage, connectors.

The topics are read from their beginning at each start, so the reports come back with them; outdated ones are dropped
with a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from google.protobuf.message import DecodeError

from keelman.api.connect.v1 import plugin_pb2, worker_pb2
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.connector_problem_pb2 import ConnectorProblem, ConnectorProblemState
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterStatus
from keelman.api.event.v1 import report_pb2
from keelman.kafka.feed import CONNECTOR_REPORTS, COPY_RUN_REPORTS, Fact
from keelman.model.workload import ProcessState, Workload
from keelman.rpc.enums import word
from keelman.rpc.times import from_duration, from_timestamp
from keelman.runtime.logs.logging import get_logger
from keelman.state.reports.connector_reports import SILENT_SECONDS, ConnectorReports
from keelman.state.reports.copy_runs import ALIVE, CopyRuns
from keelman.state.resources.hub import Hub

log = get_logger()
NAMED = 3  # in a verdict
RECENT_SECONDS = 15.0  # a worker reports every 5 s
SHORTEST_SECONDS = 1.0  # between two reports of a worker's use


@dataclass(slots=True)
class MeasuredUsage:
    """A worker's use of processors and memory, from its last two reports."""

    last: report_pb2.WorkerUsage = field(default_factory=report_pb2.WorkerUsage)
    time: float = 0.0
    cpus: float = 0.0
    clock: Callable[[], float] = monotonic
    _heard: float | None = None
    _known: float | None = None
    """The time when `cpus` last came; old reports, which are read again all at once, tell nothing of the present
    use."""

    def note(self, reported: report_pb2.WorkerUsage, now: float) -> None:
        """Stores the newest report. Less processor time than before means a new process."""
        more = from_duration(reported.cpu_time) - from_duration(self.last.cpu_time)
        if self.time and more >= 0 and now - self.time >= SHORTEST_SECONDS:
            self.cpus = more / (now - self.time)
            heard = self.clock()
            if self._heard is not None and heard - self._heard >= SHORTEST_SECONDS:
                self._known = heard
        elif self.time and more >= 0:
            return
        else:
            self._known = None
        self._heard = self.clock()
        self.last, self.time = reported, now

    @property
    def is_recent(self) -> bool:
        """True if this is the worker's present use."""
        return self._known is not None and self.clock() - self._known <= RECENT_SECONDS

    def message(self) -> worker_pb2.WorkerUsage:
        """Returns the use as users see it."""
        return worker_pb2.WorkerUsage(
            cpus=round(self.cpus, 3),
            memory_bytes=self.last.memory_bytes,
            slots=self.last.slots,
            lag_records=self.last.lag_records,
            lag_bytes=self.last.lag_bytes,
            records_per_second=round(self.last.records_per_second, 1),
            waiting_tasks=self.last.waiting_tasks,
            running_tasks=self.last.running_tasks,
        )


@dataclass(slots=True)
class Reports:
    """The newest report of each copy run, worker and connector."""

    hub: Hub
    runs: CopyRuns = field(default_factory=CopyRuns)
    connectors: ConnectorReports = field(default_factory=ConnectorReports)
    _workers: dict[str, tuple[float, worker_pb2.WorkerMembership]] = field(default_factory=dict)
    _usage: dict[str, MeasuredUsage] = field(default_factory=dict)
    _plugins: dict[str, tuple[float, Sequence[plugin_pb2.WorkerPlugin]]] = field(default_factory=dict)
    _lags: dict[str, dict[str, report_pb2.ConnectorLag]] = field(default_factory=dict)
    """By worker and connector."""
    _heard: dict[str, float] = field(default_factory=dict)
    """The time of each worker's last report, by the clock of `connectors`."""

    def fold(self, fact: Fact) -> list[str]:
        """Stores one record; returns the uids of copy runs dropped for it."""
        if fact.value is None:
            self._forget(fact)
            return []
        try:
            report = report_pb2.Report.FromString(fact.value)
        except DecodeError:
            log.warning("report_not_understood", topic=fact.topic, key=fact.key)
            return []
        seen = report.time.ToNanoseconds() / 1e9
        match report.WhichOneof("subject"):
            case "copy_run":
                dropped = self.runs.fold(report.copy_run, seen)
                if dropped is not None:
                    self.hub.wake()
                    return dropped
            case "worker":
                name = report.worker.worker_id
                if name not in self._workers or self._workers[name][0] <= seen:
                    membership = worker_pb2.WorkerMembership()
                    membership.CopyFrom(report.worker.membership)
                    if not membership.HasField("report_time"):
                        membership.report_time.CopyFrom(report.time)
                    self._workers[name] = (seen, membership)
                    self._usage.setdefault(name, MeasuredUsage()).note(report.worker.usage, seen)
                self._heard[name] = self.connectors.clock()
                self.connectors.hear(report.worker.worker_cluster)
            case "worker_plugins":
                if fact.key not in self._plugins or self._plugins[fact.key][0] <= seen:
                    self._plugins[fact.key] = (seen, report.worker_plugins.plugins)
            case "connector":
                self.connectors.fold(report.connector, fact.key)
            case "connectors":
                self.connectors.close(report.connectors, fact.key)
            case "lags":
                self._lags[report.lags.worker_id] = {
                    connector.connector: connector for connector in report.lags.connectors
                }
        return []

    def _forget(self, fact: Fact) -> None:
        if fact.topic == CONNECTOR_REPORTS:
            self.connectors.drop(fact.key)
        elif fact.topic == COPY_RUN_REPORTS:
            self.runs.drop(fact.key)
        else:
            self._workers.pop(fact.key, None)
            self._heard.pop(fact.key, None)
            self._usage.pop(fact.key, None)
            self._plugins.pop(fact.key, None)
            self._lags.pop(fact.key.removesuffix("/lag"), None)

    def membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns the worker's last report of its place in the group; None when its present process has not reported
        yet."""
        _, membership = self._workers.get(worker.address, (0.0, None))
        status = worker.status
        if membership is None or status is None or status.state is not ProcessState.RUNNING:
            return None
        if status.start_time is not None and from_timestamp(membership.report_time) < status.start_time:
            return None
        return membership

    def recent_membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns as `membership`; None also when the worker has been silent of late."""
        silence = self.connectors.clock() - self._heard.get(worker.address, float("-inf"))
        return None if silence > SILENT_SECONDS else self.membership(worker)

    def usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns the worker's last report of its use; None when its present process has not reported yet."""
        usage = self._usage.get(worker.address)
        return None if usage is None or self.membership(worker) is None else usage.message()

    def recent_usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns as `usage`; None also when the worker has been silent of late."""
        usage = self._usage.get(worker.address)
        return None if usage is None or not usage.is_recent else self.usage(worker)

    def with_lag(self, connector: Connector, workers: Iterable[Workload]) -> Connector:
        """Returns a connector with the lag that its cluster's workers have reported for it."""
        lags_of_workers = [
            self._lags[w.address] for w in workers if w.address in self._lags and self.membership(w) is not None
        ]
        lags = [lags[connector.name] for lags in lags_of_workers if connector.name in lags]
        if not lags:
            return connector
        message = Connector()
        message.CopyFrom(connector)
        for unit in ("records", "bytes"):
            if parts := [getattr(lag, unit) for lag in lags if lag.HasField(unit)]:
                setattr(message, f"lag_{unit}", sum(parts))
        return message

    def plugins(self, worker: Workload) -> Sequence[plugin_pb2.WorkerPlugin]:
        """Returns the report of the worker's process on its plugins; empty before that report, and once the process is
        gone."""
        seen, plugins = self._plugins.get(f"{worker.address}/plugins", (0.0, ()))
        status = worker.status
        if status is None or status.state not in ALIVE:
            return ()
        return () if status.start_time is not None and seen < status.start_time.timestamp() else plugins


def judge(status: WorkerClusterStatus, memberships: Sequence[worker_pb2.WorkerMembership]) -> None:
    """Fills in the problems and the verdict. A problem that two workers report counts once: it moves from one to the
    other."""
    newest: dict[tuple[str, int], ConnectorProblem] = {}  # -1 is the connector itself
    for membership in sorted(memberships, key=lambda m: m.report_time.ToNanoseconds()):
        newest |= {(problem.connector, _task(problem)): problem for problem in membership.problems}
    del status.problems[:]
    status.problems.extend(newest[key] for key in sorted(newest))
    named = {connector for connector, _ in newest}
    status.problem_connectors = len(named) + sum(_unnamed(membership) for membership in memberships)
    status.verdict = verdict(status.problems, status.problem_connectors)


def verdict(problems: Sequence[ConnectorProblem], count: int) -> str:
    """Returns one line; empty when there is no problem."""
    if not count:
        return ""
    named = "; ".join(_problem(problem) for problem in problems[:NAMED])
    more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    return f"{count} connector{'s have' if count > 1 else ' has'} problems: {named}{more}"


def _unnamed(membership: worker_pb2.WorkerMembership) -> int:
    """Returns the number of connectors whose problems the report does not name: it names 20 at most. Another worker may
    report the same ones."""
    return max(0, membership.problem_connectors - len({problem.connector for problem in membership.problems}))


def _task(problem: ConnectorProblem) -> int:
    return problem.task if problem.HasField("task") else -1


def _problem(problem: ConnectorProblem) -> str:
    what = f"{problem.connector} task {problem.task}" if problem.HasField("task") else problem.connector
    return f"{what} {word(ConnectorProblemState, problem.state)}" + (f" ({problem.reason})" if problem.reason else "")
