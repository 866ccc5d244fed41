"""Writes what the planner decided. May run twice or be cut off anywhere: the next run begins with a new snapshot."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from keelman.runtime.logs.logging import get_logger
from keelman.state import store
from keelman.state.database import Database, Transaction
from keelman.state.planning.draft import Limits
from keelman.state.planning.planner import Plan, make_plan

log = get_logger()


@dataclass(frozen=True, slots=True)
class Executor:
    """Plans and writes; a reconciler calls `reconcile` after each commit and by its timer."""

    database: Database
    limits: Limits

    async def reconcile(self) -> None:
        """Plans once and writes the plan in one transaction; writes nothing when the plan is empty."""
        async with self.database.read() as session:
            if make_plan(await store.load(session), self.limits).is_empty:
                return
        async with self.database.write() as tx:
            plan = make_plan(await store.load(tx.session), self.limits)
            await _apply(tx, plan)
        for workload in plan.put:
            log.info(
                "planned", workload=workload.name, node=workload.node, generation=workload.generation,
                goal=str(workload.goal), port=workload.spec.port,
            )  # fmt: skip
        for name in (*plan.drop, *plan.gone_worker_clusters, *plan.gone_broker_clusters):
            log.info("forgotten", name=name)


async def _apply(tx: Transaction, plan: Plan) -> None:
    for workload in plan.put:
        await store.save_workload(tx, workload)
    for name in plan.drop:
        await store.drop(tx, store.WORKLOAD, name)
    for name in plan.gone_worker_clusters:
        await store.drop(tx, store.WORKER_CLUSTER, name)
    for name in plan.gone_broker_clusters:
        await store.drop(tx, store.BROKER_CLUSTER, name)
    if plan.broker_notes or plan.worker_notes:
        snapshot = await store.load(tx.session)
        for name, note in plan.broker_notes.items():
            await store.save_cluster(tx, dataclasses.replace(snapshot.broker_clusters[name], note=note))
        for name, note in plan.worker_notes.items():
            await store.save_cluster(tx, dataclasses.replace(snapshot.worker_clusters[name], note=note))
