"""Makes a worker's metrics on request: in slices, so that other work continues with 10,000 connectors."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable

import psutil

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_BYTES, LAG_UNIT_RECORDS, OwnMetric
from keelman.model.work import Work
from keelman.rpc.times import from_duration
from keelman.runtime.exposition import UNTYPED, Exposition, Family, escaped, labels_of
from keelman.runtime.version import version
from keelman.worker.connector_facts import connector_type
from keelman.worker.group.herder import Herder
from keelman.worker.metrics import connector_figures as figures
from keelman.worker.metrics import metric_names as names
from keelman.worker.metrics.connector_figures import ConnectorFigures, CpuUsage, MayUse
from keelman.worker.storage import status_state as states
from keelman.worker.storage.status_state import Status
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.meters import Meter

SLICE = 200
FRESH_SECONDS = 1.0
NO_LIMIT = MayUse()
UNKNOWN = Status(states.UNASSIGNED, "", -1)
OWN_PREFIX = "kafka_connect_plugins_"
OWN_HELP = "Counted by the connector itself."
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


class Metrics:
    """Called by the REST API. Callers at the same time, or within a second, get the same text."""

    def __init__(
        self, herder: Herder, link: SparkLink, *, worker: str, cluster: str, may_use: MayUse = NO_LIMIT
    ) -> None:
        """`may_use`: the limits of the worker with its slots."""
        self._herder = herder
        self._link = link
        self._worker = worker
        self._cluster = cluster
        self._process = psutil.Process()
        self._may_use = may_use
        self._cpu_share = CpuUsage(time.monotonic() - (time.time() - self._process.create_time()))
        self._figures = ConnectorFigures(worker)
        self._own = TaskMetrics()
        self._alone = asyncio.Lock()
        self._types: dict[str, str] = {}
        self._made: list[bytes] = []
        self._made_at = -FRESH_SECONDS

    async def text(self, clock: Callable[[], float] = time.monotonic) -> list[bytes]:
        """Returns the exposition, in pieces."""
        async with self._alone:
            if clock() - self._made_at >= FRESH_SECONDS:
                out = Exposition()
                self._types.clear()  # plugins come and go
                self._figures, self._own = ConnectorFigures(self._worker), TaskMetrics()
                self._of_the_worker(out, clock())
                await self._of_works(out, clock())
                await self._of_connectors(out)
                pieces = []
                for piece in out.families():
                    pieces.append(piece)
                    await asyncio.sleep(0)
                self._made, self._made_at = pieces, clock()
            return self._made

    def knows(self, connector: str) -> bool:
        """Returns whether there is such a connector."""
        return connector in self._herder.store.config.connectors

    def _of_the_worker(self, out: Exposition, now: float) -> None:
        herder, membership = self._herder, self._herder.membership
        properties, works = herder.store.properties, herder.owned.works
        labels = {
            "worker": self._worker,
            "worker_cluster": self._cluster,
            "group": properties.group_id,
            "version": version(),
        }
        out.add(names.INFO, 1, labels_of(labels))
        usage, own = self._link.usage, self._process.cpu_times()
        if (cores := self._link.cores) is not None:
            out.add(names.SPARK_CORES, cores.have)
            out.add(names.SPARK_CORES_WANTED, cores.wanted)
        tasks = sum(work.is_task for work in works)
        for family, value in (
            (names.START, self._process.create_time()),
            (names.CPU, own.user + own.system),
            (names.MEMORY, self._process.memory_info().rss),
            (names.SLOTS, usage.slots),
            (names.SLOT_CPU, from_duration(usage.cpu_time)),
            (names.SLOT_MEMORY, usage.memory_bytes),
            (names.JOINED, int(membership.healthy)),
            (names.LEADER, int(membership.place is not None and membership.place.leader)),
            (names.LOSSES, membership.losses),
            (names.LINK, int(self._link.up.is_set())),
            (names.TAKES_TASKS, int(not self._link.unfit)),
            (names.CONFIG_OFFSET, herder.store.config.offset),
            (names.PARKED, len(herder.owned.tasks.parking)),
            (names.CONNECTOR_COUNT, len(works) - tasks),
            (names.TASK_COUNT, tasks),
            (names.ASSIGNED_CONNECTORS, len(works) - tasks),
            (names.ASSIGNED_TASKS, tasks),
            (names.REBALANCES, membership.rebalances),
            (names.EPOCH, membership.generation),
            (names.REBALANCING, int(membership.place is None or membership.lost)),
        ):
            out.add(family, value)
        if membership.rebalances:
            out.add(names.SINCE_REBALANCE, round((now - membership.rebalanced_at) * 1000))
        if membership.place is not None:
            out.add(names.LEADER_NAME, 1, labels_of({"leader_name": membership.place.assignment.leader_url}))
        self._as_managed(out, now)
        meters = herder.owned.tasks.meters
        for is_task in (False, True):
            started, failed = meters.started[is_task], meters.failed[is_task]
            for what, count in (("attempts", started + failed), ("success", started), ("failure", failed)):
                out.add(names.STARTS[is_task, what], count)

    def _as_managed(self, out: Exposition, now: float) -> None:
        """Adds the worker's measures, under the names of managed services."""
        herder = self._herder
        membership, meters, connectors = herder.membership, herder.owned.tasks.meters, herder.store.config
        only = next(iter(connectors.connectors)) if len(connectors.connectors) == 1 else ""
        labels, own, usage = self._figures.labels(only), self._process.cpu_times(), self._link.usage
        cpus = self._cpu_share.of(own.user + own.system + from_duration(usage.cpu_time), now)
        memory = self._process.memory_info().rss + usage.memory_bytes
        out.add(figures.CPU, round(100 * cpus / self._may_use.some_cpus, 3), labels)
        out.add(figures.MEMORY, round(100 * memory / self._may_use.some_memory, 3), labels)
        if membership.leads and membership.members:
            out.add(figures.WORKERS, membership.members, labels)
        out.add(figures.REBALANCES, membership.rebalances, labels)
        if membership.rebalances:
            average = membership.rebalance_seconds / membership.rebalances
            out.add(figures.REBALANCE_AVG, round(average * 1000, 3), labels)
            out.add(figures.REBALANCE_MAX, round(membership.longest_rebalance * 1000, 3), labels)
            out.add(figures.REBALANCE_SINCE, round((now - membership.rebalanced_at) * 1000), labels)
        started = meters.started[True]
        attempts = started + meters.failed[True]
        out.add(figures.STARTS, attempts, labels)
        if attempts:
            out.add(figures.STARTS_GOOD, round(100 * started / attempts, 3), labels)

    async def _of_connectors(self, out: Exposition) -> None:
        for number, connector in enumerate(self._figures.connectors):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            self._figures.write(out, connector)

    async def _of_works(self, out: Exposition, now: float) -> None:
        herder = self._herder
        meters, statuses = herder.owned.tasks.meters, herder.store.statuses
        works = herder.owned.works.union(statuses.lost)
        meters.keep(works)
        by_state: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        of_connector: dict[str, Counter[str]] = {}
        for number, work in enumerate(works):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            status = statuses.shown(work) or UNKNOWN
            by_state[work.is_task][status.state] += 1
            if work.is_task:
                of_connector.setdefault(work.connector, Counter())[status.state.lower()] += 1
                total = self._figures.add_connector(work.connector, self._type(work.connector))
                total.add(status.state, meters.find(work))
                self._task(out, work, status, meters.find(work), now)
            else:
                self._figures.add_connector(work.connector, self._type(work.connector))
                self._connector(out, work, status)
        for number, (connector, counted) in enumerate(of_connector.items()):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            labels = f'connector="{escaped(connector)}"'
            out.add(names.TASKS_OF["total"], counted.total(), labels)
            for state, count in counted.items():
                if state in names.TASKS_OF:
                    out.add(names.TASKS_OF[state], count, labels)
        for is_task, family in ((False, names.CONNECTORS), (True, names.TASKS)):
            for state in (states.RUNNING, states.PAUSED, states.FAILED, states.UNASSIGNED, states.RESTARTING):
                out.add(family, by_state[is_task].pop(state, 0), f'state="{state}"')
            for state, count in by_state[is_task].items():
                out.add(family, count, f'state="{escaped(state)}"')

    def _connector(self, out: Exposition, work: Work, status: Status) -> None:
        labels = f'connector="{escaped(work.connector)}"'
        out.add(names.CONNECTOR_STATE, 1, f'{labels},state="{escaped(status.state)}"')
        config = self._herder.store.config.connectors.get(work.connector, {})
        name = escaped(config.get("connector.class", ""))
        more = f'connector_class="{name}",connector_type="{self._type(work.connector)}"'
        more += f',connector_version="{escaped(status.version or "")}"'
        out.add(names.CONNECTOR, 1, f'{labels},{more},status="{escaped(status.state.lower())}"')

    def _type(self, connector: str) -> str:
        config = self._herder.store.config.connectors.get(connector, {})
        name = config.get("connector.class", "")
        if name not in self._types:
            self._types[name] = connector_type(config)
        return self._types[name]

    @staticmethod
    def _set_aside(out: Exposition, labels: str, meter: Meter) -> None:
        for topic, partitions in meter.set_aside().items():
            out.add(names.SET_ASIDE, partitions, f'{labels},topic="{escaped(topic)}"')

    def _task(self, out: Exposition, work: Work, status: Status, meter: Meter | None, now: float) -> None:
        labels = f'connector="{escaped(work.connector)}",task="{work.task}"'
        out.add(names.TASK_STATE, 1, f'{labels},state="{escaped(status.state)}"')
        out.add(names.TASK, 1, f'{labels},status="{escaped(status.state.lower())}"')
        if "stalled" in status.more:
            out.add(names.STALLED, 1, labels)
        if meter is None:
            return
        out.add(names.RUNS, meter.runs, labels)
        out.add(names.FAILURES, meter.failures, labels)
        out.add(names.BYTES, meter.bytes, labels)
        out.add(names.ROLLBACKS, meter.rollbacks, labels)
        out.add(names.TAKEN_BACK, meter.taken_back, labels)
        self._set_aside(out, labels, meter)
        kind = self._type(work.connector)
        source = kind == "source"
        lag = meter.lag(LAG_UNIT_RECORDS)
        if meter.commit_ms:
            out.add(names.COMMITTED, meter.commit_ms / 1000, labels)
        if meter.measured:
            out.add(names.LAG_SECONDS, round(meter.lag_seconds(now), 3), labels)
            if meter.lag(LAG_UNIT_BYTES):
                out.add(names.LAG_BYTES, meter.lag(LAG_UNIT_BYTES), labels)
            else:
                out.add(names.LAG_RECORDS, lag, labels)
        if kind in ("source", "sink"):
            out.add(names.POLLED if source else names.READ, meter.records + meter.errors, labels)
            out.add(names.WRITTEN if source else names.SENT, meter.records, labels)
        if not source and meter.measured:
            out.add(names.LAG_MAX, lag, labels)
        self._own.add(out, labels, meter.own_metrics())
        if meter.bad.failures:
            out.add(names.SKIPPED, meter.errors, labels)
            for count, family in names.BAD_RECORDS.items():
                out.add(family, getattr(meter.bad, count), labels)
            out.add(names.LAST_ERROR, meter.bad.last_time.ToMilliseconds(), labels)
        if meter.live:
            records, size = meter.rates()
            out.add(names.BYTES_RATE, size, labels)
            out.add(names.POLL_RATE if source else names.READ_RATE, records, labels)
            out.add(names.WRITE_RATE if source else names.SEND_RATE, records, labels)
            if (left := meter.seconds_left()) >= 0:
                out.add(names.SECONDS_LEFT, left, labels)


class TaskMetrics:
    """The tasks' own metrics of one scrape, under the names that jmx_exporter gives the beans of Kafka Connect's
    PluginMetrics without rules: `kafka_connect_plugins_` before the connector's own."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def add(self, out: Exposition, labels: str, metrics: Iterable[OwnMetric]) -> None:
        """Adds those of one task, with these labels. Of two with equal names and tags, the first stays."""
        there: set[tuple[str, str]] = set()
        for metric in metrics:
            name = OWN_PREFIX + _ILLEGAL.sub("_", metric.name)
            tags = {_label(key): escaped(value) for key, value in sorted(metric.tags.items())}
            more = "".join(f',{key}="{value}"' for key, value in tags.items())
            if (name, more) not in there:
                there.add((name, more))
                family = self._families.setdefault(name, Family(name, UNTYPED, metric.description or OWN_HELP))
                out.add(family, metric.value, labels + more)


def _label(key: str) -> str:
    """Returns a tag's name as a legal label, which is neither the task's nor Prometheus' own."""
    label = _ILLEGAL.sub("_", key)
    return f"tag_{label}" if label in ("", "connector", "task") or label[0].isdigit() or label[0] == "_" else label
