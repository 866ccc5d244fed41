"""Measures the use of workers and begins the operations that scale."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from keelman.api.connect.v1.worker_pb2 import WorkerUsage
from keelman.model.autoscale import COOL_DOWN_SECONDS
from keelman.model.cluster import WorkerCluster
from keelman.model.connectors.dedicated_connector import DedicatedConnector, DedicatedGoal
from keelman.model.errors import Unavailable
from keelman.model.operation import OperationKind
from keelman.model.workload import Workload
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.reconciler import Reconciler
from keelman.state.autoscaling.decision import NO_TREND, Trend, followed, next_workers, reason
from keelman.state.autoscaling.measuring import is_settled, measured
from keelman.state.autoscaling.room import Room
from keelman.state.autoscaling.steps import TASKS_FOLLOW, plan_of, target_of
from keelman.state.dedicated.composition import configured_by, tasks_max_of
from keelman.state.operations.begin import begin
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore

log = get_logger()
LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Autoscaler:
    """Scales while this process leads, with a store that is fenced by the lease. `usage`: a worker's recent report,
    None if there is none."""

    store: ResourceStore
    usage: Callable[[Workload], WorkerUsage | None]
    room: Room
    clock: Callable[[], float] = time.monotonic
    _trends: dict[str, Trend] = field(default_factory=dict)
    """By the uid of the worker cluster."""
    _tried: dict[str, float] = field(default_factory=dict)
    """The time when tasks were last made to follow, by the same uid."""

    async def run(self) -> None:
        """Runs until cancelled."""
        self._trends.clear()
        await Reconciler("autoscaler", self.look, LOOK_SECONDS).run()

    async def look(self) -> None:
        """Measures each autoscaled worker cluster once."""
        snapshot, trends = self.store.snapshot, self._trends
        self._trends = {}
        for cluster in list(snapshot.worker_clusters.values()):
            connector = snapshot.dedicated_connectors.get(cluster.name)
            if cluster.spec.autoscale is None and (connector is None or not connector.tasks_max):
                continue
            if not is_settled(cluster) or _is_busy(snapshot, cluster, connector):
                continue
            await self._look_at(cluster, connector, trends.get(cluster.uid, NO_TREND))
        self._tried = {uid: at for uid, at in self._tried.items() if self.clock() - at < COOL_DOWN_SECONDS}

    async def _look_at(self, cluster: WorkerCluster, connector: DedicatedConnector | None, trend: Trend) -> None:
        """Follows the cluster's use, and begins a step if one is due."""
        workers, cause = cluster.wanted_workers, TASKS_FOLLOW
        if (autoscale := cluster.spec.autoscale) is not None:
            seen = measured(cluster, self.store.snapshot, self.usage)
            now = self.clock()
            self._trends[cluster.uid] = trend = followed(trend, autoscale, seen, workers, now)
            at = cluster.scaling.time
            since = None if at is None else (self.store.database.clock() - at).total_seconds()
            workers = next_workers(trend, autoscale, seen, workers, now=now, since_step=since)
            cause = reason(autoscale, seen) if workers != cluster.wanted_workers else cause
        if workers > cluster.wanted_workers:
            workers = min(workers, await self._useful(cluster, connector, workers))
            cause = cause if workers > cluster.wanted_workers else TASKS_FOLLOW
        tasks = await self._tasks(cluster, connector, workers)
        if workers != cluster.wanted_workers:
            await self._begin(cluster, workers, tasks, cause)
            self._trends.pop(cluster.uid, None)
        elif cluster.uid not in self._tried and connector is not None and tasks != connector.tasks_max:
            self._tried[cluster.uid] = self.clock()
            await self._begin(cluster, workers, tasks, cause)

    async def _useful(self, cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int) -> int:
        """Returns how many of so many workers can have something to do; no fewer than there are."""
        tasks_follow = connector is not None and bool(connector.tasks_max)
        busy = await self.room.of(cluster, tasks_follow=tasks_follow)
        return workers if busy is None else max(busy, cluster.wanted_workers)

    async def _tasks(self, cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int) -> int:
        """Returns `tasks.max` for so many workers; 0: that of the configuration."""
        if connector is None:
            return 0
        autoscale, partitions = connector.spec.capacity.autoscale, 0
        if autoscale is not None and autoscale.tasks_up_to_partitions:
            try:
                partitions = await self.room.partitions(cluster)
            except Unavailable:
                partitions = connector.tasks_max  # no more than its present number, until the useful number is known
        return tasks_max_of(connector.spec, workers, partitions)

    async def _begin(self, seen: WorkerCluster, workers: int, tasks: int, cause: str) -> None:
        """Begins the operation, unless anything has changed since."""
        async with self.store.write() as tx:
            cluster = tx.snapshot.worker_clusters.get(seen.name)
            connector = tx.snapshot.dedicated_connectors.get(seen.name)
            if cluster is None or cluster.etag != seen.etag or _is_busy(tx.snapshot, cluster, connector):
                return
            configured = None if connector is None else configured_by(connector.spec, tx.snapshot)
            steps, facts = plan_of(cluster, connector, workers, tasks, cause, configured=configured)
            if steps:
                target = target_of(cluster, connector, workers)
                begin(tx, OperationKind.SCALE, target, steps, facts)
        log.info("scaling", worker_cluster=seen.name, workers=workers, former=seen.wanted_workers, reason=cause)


def _is_busy(snapshot: Snapshot, cluster: WorkerCluster, connector: DedicatedConnector | None) -> bool:
    """Returns whether another operation is under way on it."""
    if connector is None:
        return snapshot.unfinished_operation(cluster.NOUN, cluster.name) is not None
    under_way = snapshot.unfinished_operation(connector.NOUN, connector.name)
    return under_way is not None or connector.goal is DedicatedGoal.ABSENT
