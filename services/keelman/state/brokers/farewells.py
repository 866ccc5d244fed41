"""Takes the workers of a lost node out of their groups once others have their places, so that their work moves at once.

Their agent would do so, but is lost with them. Without a farewell the group waits until the session of each ends (which
begins again if its coordinator was lost too), and then for the worker to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.farewell import say_farewell_of
from keelman.kafka.groups.protocol import GroupClient
from keelman.model.cluster import WorkerEngine
from keelman.model.errors import KeelmanError, Unavailable
from keelman.model.workload import Workload, WorkloadKind
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.state.clusters.worker_urls import rest_url
from keelman.state.kafka.properties import group_of
from keelman.state.resources.snapshot import WORKLOAD, Snapshot
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Change

log = get_logger()
SECONDS = 30.0
TRY_SECONDS = 10.0
AT_ONCE = 8
MAX_DELAY, NO_DELAY = "scheduled.rebalance.max.delay.ms", "0"
"""Under an agent a leader does not wait for a worker that vanishes, unless its cluster is configured to."""
SESSION_MS, REBALANCE_MS = 6_000, 60_000
"""Of the member that only sends the farewell for another; the workers' own times do not matter to it."""


def moved_off(changes: Sequence[Change], snapshot: Snapshot) -> Iterator[Workload]:
    """Yields the former workloads of workers that these changes moved off offline nodes, and that may still be
    members."""
    for change in changes:
        old, new = change.old, change.new
        if change.noun != WORKLOAD or old is None or old.kind is not WorkloadKind.WORKER or not old.has_run:
            continue
        if (new is None or new.node != old.node) and snapshot.is_offline(old.node):
            yield old


@dataclass(slots=True)
class Farewells:
    """`run` follows the store's commits and sends farewells. Those still due when the process ends are lost: then the
    group waits."""

    store: ResourceStore
    _due: asyncio.Queue[Workload] = field(default_factory=asyncio.Queue)

    def changed(self, changes: Sequence[Change]) -> None:
        """Queues the farewells that a commit calls for."""
        for worker in moved_off(changes, self.store.snapshot):
            self._due.put_nowait(worker)

    async def run(self) -> None:
        """Sends the farewells, several at once, for ever."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def say(worker: Workload) -> None:
            async with turns:
                await self._say(worker)

        with self.store.listening(self.changed):
            async with asyncio.TaskGroup() as tasks:
                while True:
                    tasks.create_task(say(await self._due.get()))

    async def _say(self, worker: Workload) -> None:
        backoff = Backoff(first=0.2, most=1.0)
        problem = ""
        try:
            async with asyncio.timeout(SECONDS):
                while self.store.snapshot.is_offline(worker.node):
                    try:
                        async with asyncio.timeout(TRY_SECONDS):
                            done = await self._try(worker)
                        log.info("farewell", worker=worker.name, node=worker.node, done=done)
                        return
                    except (Unavailable, TimeoutError, OSError) as error:
                        problem = str(error) or "no answer in time"
                        await asyncio.sleep(backoff.next())
                problem = f"node {worker.node} is back"
        except TimeoutError:
            pass
        except KeelmanError as error:
            problem = error.message
        log.warning("farewell_unsaid", worker=worker.name, node=worker.node, error=problem)

    async def _try(self, worker: Workload) -> str:
        snapshot = self.store.snapshot
        cluster = snapshot.worker_clusters.get(worker.cluster)
        brokers = snapshot.broker_clusters.get(cluster.spec.broker_cluster) if cluster is not None else None
        if cluster is None or brokers is None or cluster.spec.engine is not WorkerEngine.KEELMAN:
            return "no group to notify"
        properties = brokers.asked_at(brokers.status.bootstrap_servers)
        group = group_of(cluster.name, cluster.spec.properties)
        client_id = f"farewell-{worker.name}"
        wait_ms = int(TRY_SECONDS * 1000)
        async with low_level_client(properties, client_id=client_id, timeout_ms=wait_ms) as client:
            group_client = GroupClient(client, group, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS)
            waits = cluster.spec.properties.get(MAX_DELAY, NO_DELAY).strip() != NO_DELAY
            return await say_farewell_of(group_client, worker.address, rest_url(worker), waits=waits)
