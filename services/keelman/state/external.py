"""Asks external broker clusters whether they answer, since no agent reports them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass

from keelman.kafka.probe import broker_answers
from keelman.model.cluster import ClusterGoal, ExternalBrokers
from keelman.state import store
from keelman.state.database import Database

SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ExternalProbe:
    """A reconciler calls `reconcile` after each commit and by its timer."""

    database: Database

    async def reconcile(self) -> None:
        """Asks each external broker cluster and stores an answer that is another than the last."""
        async with self.database.read() as reader:
            clusters = (await store.load(reader)).broker_clusters
        for cluster in clusters.values():
            if not isinstance(cluster.spec, ExternalBrokers) or cluster.goal is not ClusterGoal.RUNNING:
                continue
            answers = await _answers(cluster.spec)
            if answers == cluster.reachable:
                continue
            async with self.database.write() as tx:
                present = (await store.load(tx.session)).broker_clusters.get(cluster.name)
                if present is not None and present.uid == cluster.uid:
                    await store.save_cluster(tx, dataclasses.replace(present, reachable=answers))


async def _answers(spec: ExternalBrokers) -> bool:
    """Behind TLS or SASL only the port is tried: their secrets are the workers' business."""
    plain = spec.client_properties.get("security.protocol", "PLAINTEXT").upper() == "PLAINTEXT"
    for server in spec.bootstrap_servers.split(","):
        if plain and await broker_answers(server.strip(), seconds=SECONDS):
            return True
        if not plain and await _accepts(server.strip()):
            return True
    return False


async def _accepts(server: str) -> bool:
    host, _, port = server.rpartition(":")
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writer.close()
            return True
    return False
