"""Asks external broker clusters whether they answer, since no agent reports them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from keelman.kafka.cluster_state import kafka_cluster_id
from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers
from keelman.model.errors import KeelmanError
from keelman.state.store import Store

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ExternalProbe:
    """A reconciler calls `reconcile` after each commit and by its timer."""

    store: Store

    async def reconcile(self) -> None:
        """Asks each external broker cluster and stores an answer that is another than the last."""
        for cluster in list(self.store.snapshot.broker_clusters.values()):
            if not isinstance(cluster.spec, ExternalBrokers) or cluster.goal is not ClusterGoal.RUNNING:
                continue
            found = await _ask(cluster)
            if found == (cluster.reachable, cluster.seen.problem, cluster.kafka_cluster_id):
                continue
            reachable, problem, kafka_cluster_id = found
            async with self.store.write() as tx:
                present = tx.snapshot.broker_clusters.get(cluster.name)
                if present is not None and (present.uid, present.spec) == (cluster.uid, cluster.spec):
                    changed = dataclasses.replace(
                        present,
                        reachable=reachable,
                        seen=dataclasses.replace(present.seen, problem=problem),
                        kafka_cluster_id=kafka_cluster_id,
                    )
                    tx.put(changed)


async def _ask(cluster: BrokerCluster) -> tuple[bool, str, str]:
    """Whether the brokers answer keelman, else why not; and the cluster's id, the last known when they do not."""
    assert isinstance(cluster.spec, ExternalBrokers)
    try:
        return True, "", await kafka_cluster_id(cluster.asked_at(cluster.spec.bootstrap_servers), seconds=SECONDS)
    except KeelmanError as error:
        return False, error.message, cluster.kafka_cluster_id
