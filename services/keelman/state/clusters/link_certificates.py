"""Gives worker clusters the certificates by which drivers of Spark clusters know their workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.runtime.logs.logging import get_logger
from keelman.state.clusters.broker_tls import followed, identified
from keelman.state.clusters.goals import saved
from keelman.state.kafka.access_rules import worker_identity
from keelman.state.resources.store import ResourceStore
from keelman.state.trust.members import Members

log = get_logger()


@dataclass(slots=True)
class LinkCertificates:
    """A reconciler calls `reconcile` after each commit and by its timer. `members` is None without a CA: links are not
    encrypted then."""

    store: ResourceStore
    members: Members | None

    async def reconcile(self) -> None:
        """Stores the certificates that are missing, and those that follow a change of the CA."""
        if self.members is None:
            return
        authorities, now = self.members.present.value, self.store.database.clock()
        for cluster in list(self.store.snapshot.worker_clusters.values()):
            if not cluster.spec.spark_cluster or cluster.goal is ClusterGoal.DELETED:
                continue
            holder, present = worker_identity(cluster), cluster.spec.spark_client_properties
            wanted = followed(present, holder, authorities, now) if present else identified(holder, authorities, now)
            if wanted != present:
                await self._give(cluster, wanted)

    async def _give(self, cluster: WorkerCluster, properties: Mapping[str, str]) -> None:
        """Stores a worker cluster's certificate, unless it no longer names a Spark cluster."""
        async with self.store.write() as tx:
            present = tx.snapshot.worker_clusters.get(cluster.name)
            if present is not None and present.uid == cluster.uid and present.spec.spark_cluster:
                spec = dataclasses.replace(present.spec, spark_client_properties=properties)
                saved(tx, dataclasses.replace(present, spec=spec))
                log.info("link_certificate_signed", worker_cluster=cluster.name)
