"""Checks whether all partitions of managed clusters are in sync: before that no running broker is changed."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.kafka.cluster_state import partitions_of
from keelman.model.cluster import BrokerCluster, ClusterGoal
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.state.planning.kept_brokers import brokers_of, running_mark
from keelman.state.resources.store import ResourceStore

log = get_logger()
ASK_SECONDS = 5.0
AGAIN_SECONDS = 10.0
WAITED_SECONDS = 1.0  # if a change waits for the answer


@dataclass(slots=True)
class InSyncProbe:
    """A reconciler calls `reconcile` after each commit and by its timer."""

    store: ResourceStore
    clock: Callable[[], float] = time.monotonic
    _asked: dict[tuple[str, str], float] = field(default_factory=dict)

    async def reconcile(self) -> None:
        """Queries the brokers if the last answer is about former processes, or is old; stores an answer that
        differs."""
        snapshot = self.store.snapshot
        due = []
        for cluster in snapshot.broker_clusters.values():
            brokers = brokers_of(snapshot, cluster)
            mark = running_mark(cluster, brokers)
            if cluster.goal is not ClusterGoal.RUNNING or len(brokers) < 2 or not mark:
                continue
            waited = cluster.seen.in_sync != mark and cluster.note
            last_asked = self._asked.get((cluster.uid, mark))
            if last_asked is None or self.clock() - last_asked >= (WAITED_SECONDS if waited else AGAIN_SECONDS):
                due.append((cluster, mark, ",".join(b.address for b in brokers)))
        now = self.clock()
        fresh = {k: t for k, t in self._asked.items() if now - t < AGAIN_SECONDS}
        self._asked = fresh | {(cluster.uid, mark): now for cluster, mark, _ in due}
        async with asyncio.TaskGroup() as asking:
            for arguments in due:
                asking.create_task(self._ask(*arguments))

    async def _ask(self, cluster: BrokerCluster, mark: str, bootstrap: str) -> None:
        in_sync_mark = mark if await _in_sync(cluster.name, cluster.asked_at(bootstrap)) else ""
        if in_sync_mark == cluster.seen.in_sync:
            return
        async with self.store.write() as tx:
            present = tx.snapshot.broker_clusters.get(cluster.name)
            if present is not None and present.uid == cluster.uid:
                seen = dataclasses.replace(present.seen, in_sync=in_sync_mark)
                tx.put(dataclasses.replace(present, seen=seen))


async def _in_sync(name: str, client: Mapping[str, str]) -> bool:
    try:
        partitions = await partitions_of(client, seconds=ASK_SECONDS)
    except KeelmanError as error:
        log.info("brokers_not_asked", broker_cluster=name, error=error.message)
        return False
    behind = [p.name for p in partitions if not p.is_whole]
    if behind:
        log.info("partitions_behind", broker_cluster=name, count=len(behind), first=behind[0])
    return not behind
