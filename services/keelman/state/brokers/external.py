"""Checks whether external broker clusters answer, since no agent reports them."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from keelman.kafka.cluster_state import kafka_cluster_id
from keelman.model.cluster import NOT_SEEN, BrokerCluster, BrokersSeen, ClusterGoal, ExternalBrokers
from keelman.model.errors import KeelmanError, Unauthenticated
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import supervise
from keelman.state.clusters.kafka_names import clash, users_of_kafka
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore

log = get_logger()
SECONDS = 5.0
AT_ONCE = 32


class NamedByUsers(Protocol):
    """The requests that the state service may send to brokers that users name, and its answers about them."""

    def hides(self, cluster: BrokerCluster) -> bool:
        """Returns whether the users of a cluster must not learn which ports of its addresses are open."""

    def refusal(self, cluster: BrokerCluster, snapshot: Snapshot) -> str:
        """Returns why the brokers of a cluster may not be queried; empty where they may."""


@dataclass(frozen=True, slots=True)
class ExternalProbe:
    """A reconciler calls `reconcile` after each commit and by its timer."""

    store: ResourceStore
    named: NamedByUsers | None = None
    """The policy for clusters whose addresses users without rights on broker clusters have named."""

    async def reconcile(self) -> None:
        """Checks all external broker clusters, many at once, and stores each answer that differs from the last."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def probe(cluster: BrokerCluster) -> None:
            async with turns:
                answer = await self._ask(cluster)
            if answer != (cluster.reachable, cluster.seen, cluster.kafka_cluster_id):
                await self._keep(cluster, *answer)

        clusters = list(self.store.snapshot.broker_clusters.values())
        probed = [c for c in clusters if isinstance(c.spec, ExternalBrokers) and c.goal is ClusterGoal.RUNNING]
        await supervise(*(partial(probe, cluster) for cluster in probed))

    async def _ask(self, cluster: BrokerCluster) -> tuple[bool, BrokersSeen, str]:
        """As `_asked`, by the policy: brokers that it refuses are not queried, and of those that do not answer it is
        not told whether their ports are open."""
        if self.named is None or not self.named.hides(cluster):
            return await _asked(cluster)
        if refusal := self.named.refusal(cluster, self.store.snapshot):
            return False, BrokersSeen(problem=refusal), cluster.kafka_cluster_id
        reachable, seen, kafka_cluster_id = await _asked(cluster)
        if not reachable and not seen.refused:
            assert isinstance(cluster.spec, ExternalBrokers)
            seen = BrokersSeen(problem=f"no broker answers at {cluster.spec.bootstrap_servers}")
        return reachable, seen, kafka_cluster_id

    async def _keep(self, cluster: BrokerCluster, reachable: bool, seen: BrokersSeen, kafka_cluster_id: str) -> None:
        async with self.store.write() as tx:
            present = tx.snapshot.broker_clusters.get(cluster.name)
            if present is None or (present.uid, present.spec) != (cluster.uid, cluster.spec):
                return
            tx.put(dataclasses.replace(present, reachable=reachable, seen=seen, kafka_cluster_id=kafka_cluster_id))
        if kafka_cluster_id != cluster.kafka_cluster_id:
            _log_clashes(cluster.name, self.store.snapshot)


def _log_clashes(broker_cluster: str, snapshot: Snapshot) -> None:
    for user in users_of_kafka(broker_cluster, snapshot):
        if problem := clash(user, snapshot):
            log.warning("names_in_kafka_clash", worker_cluster=user.name, problem=problem)


async def _asked(cluster: BrokerCluster) -> tuple[bool, BrokersSeen, str]:
    """Returns whether the brokers answer keelman, else the reason why not; and the cluster's id, the last known when
    they do not."""
    assert isinstance(cluster.spec, ExternalBrokers)
    try:
        return True, NOT_SEEN, await kafka_cluster_id(cluster.asked_at(cluster.spec.bootstrap_servers), seconds=SECONDS)
    except KeelmanError as error:
        seen = BrokersSeen(problem=error.message, refused=isinstance(error, Unauthenticated))
        return False, seen, cluster.kafka_cluster_id
