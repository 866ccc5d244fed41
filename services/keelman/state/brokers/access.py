"""Keeps the access rules of managed brokers as their worker clusters need them, and gives worker clusters the
certificates by which brokers know them."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.kafka.access_control import AccessControl
from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.state.clusters.broker_tls import followed, identified
from keelman.state.clusters.goals import saved
from keelman.state.kafka.access_rules import changes, has_running_rules, worker_identity
from keelman.state.resources.store import ResourceStore
from keelman.state.trust.authorities import Authorities
from keelman.state.trust.members import Members

log = get_logger()
LOOK_AGAIN_SECONDS = 300.0
"""How often the brokers' rules are compared with those that they should have."""
TRY_AGAIN_SECONDS = 2.0


@dataclass(slots=True)
class AccessKeeper:
    """A reconciler calls `reconcile` after each commit and by its timer. `members` is None without a CA."""

    store: ResourceStore
    members: Members | None
    clock: Callable[[], float] = time.monotonic
    _applied: dict[str, tuple[object, float]] = field(default_factory=dict)
    """By the uid of a broker cluster: what its rules follow from, and when the brokers had them."""
    _failed: dict[str, float] = field(default_factory=dict)

    async def reconcile(self) -> None:
        """Brings rules and certificates in line for each broker cluster with access rules that runs."""
        if self.members is None:
            return
        snapshot, authorities = self.store.snapshot, self.members.present.value
        async with asyncio.TaskGroup() as keeping:
            for cluster in snapshot.broker_clusters.values():
                if has_running_rules(cluster) and cluster.status.bootstrap_servers:
                    users = [user for user in snapshot.users_of(cluster.name) if not snapshot.is_past(user)]
                    keeping.create_task(self._keep(cluster, users, authorities))

    async def _keep(self, cluster: BrokerCluster, users: list[WorkerCluster], authorities: Authorities) -> None:
        if not await self._has_rules(cluster, users):
            return
        now = self.store.database.clock()
        for user in users:
            holder, present = worker_identity(user), user.spec.credentials
            wanted = followed(present, holder, authorities, now) if present else identified(holder, authorities, now)
            if wanted != present:
                await self._give(user, wanted)

    async def _has_rules(self, cluster: BrokerCluster, users: list[WorkerCluster]) -> bool:
        """Applies the rules if they may differ; returns whether the brokers have them."""
        now, basis = self.clock(), [_basis(user) for user in users]
        applied, at = self._applied.get(cluster.uid, (None, 0.0))
        if applied == basis and now - at < LOOK_AGAIN_SECONDS:
            return True
        if now - self._failed.get(cluster.uid, float("-inf")) < TRY_AGAIN_SECONDS:
            return False
        try:
            async with AccessControl.open(cluster.asked_at(cluster.status.bootstrap_servers)) as control:
                # In a thread: for a hundred worker clusters it takes a third of a second.
                wanted = await asyncio.to_thread(changes, cluster.name, users, await control.bindings())
                await control.create(wanted.create)
                await control.delete(wanted.delete)
        except KeelmanError as error:
            self._failed[cluster.uid] = now
            log.info("access_rules_wait", broker_cluster=cluster.name, reason=error.reason, error=error.message)
            return False
        if wanted.create or wanted.delete:
            counts = {"created": len(wanted.create), "deleted": len(wanted.delete)}
            log.info("access_rules_applied", broker_cluster=cluster.name, worker_clusters=len(users), **counts)
        self._applied[cluster.uid] = basis, now
        return True

    async def _give(self, user: WorkerCluster, credentials: Mapping[str, str]) -> None:
        """Stores a worker cluster's certificate, unless it has changed its brokers meanwhile."""
        async with self.store.write() as tx:
            present = tx.snapshot.worker_clusters.get(user.name)
            if present is not None and (present.uid, present.spec.broker_cluster) == (
                user.uid,
                user.spec.broker_cluster,
            ):
                spec = dataclasses.replace(present.spec, credentials=credentials)
                saved(tx, dataclasses.replace(present, spec=spec))


def _basis(user: WorkerCluster) -> object:
    """Returns what the rules of a worker cluster follow from."""
    return user.uid, dataclasses.replace(user.spec, credentials={})
