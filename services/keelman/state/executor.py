"""Writes what the planner decided. May run twice or be cut off anywhere: the next run begins with a new snapshot."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from keelman.runtime.logs.logging import get_logger
from keelman.state.nouns import workload as workloads
from keelman.state.planning.draft import Limits
from keelman.state.planning.planner import Plan, make_plan
from keelman.state.snapshot import BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD
from keelman.state.store import Store, Transaction

log = get_logger()


@dataclass(frozen=True, slots=True)
class Executor:
    """Plans and writes; a reconciler calls `reconcile` after each commit and by its timer."""

    store: Store
    limits: Limits

    async def reconcile(self) -> None:
        """Plans once and writes the plan in one transaction; writes nothing when the plan is empty."""
        seen = self.store.revision
        plan = make_plan(self.store.snapshot, self.limits)
        if plan.is_empty:
            return
        async with self.store.write() as tx:
            if tx.turn.revision != seen:
                plan = make_plan(tx.snapshot, self.limits)
            _apply(tx, plan)
        for workload in plan.put:
            log.info(
                "planned", workload=workload.name, node=workload.node, generation=workload.generation,
                goal=str(workload.goal), port=workload.spec.port,
            )  # fmt: skip
        for name in (*plan.drop, *plan.gone_worker_clusters, *plan.gone_broker_clusters):
            log.info("forgotten", name=name)


def _apply(tx: Transaction, plan: Plan) -> None:
    for workload in plan.put:
        workloads.save(tx, workload)
    for name in plan.drop:
        tx.drop(WORKLOAD, name)
    for name in plan.gone_worker_clusters:
        tx.drop(WORKER_CLUSTER, name)
    for name in plan.gone_broker_clusters:
        tx.drop(BROKER_CLUSTER, name)
    for name, note in plan.broker_notes.items():
        tx.put(dataclasses.replace(tx.snapshot.broker_clusters[name], note=note))
    for name, note in plan.worker_notes.items():
        tx.put(dataclasses.replace(tx.snapshot.worker_clusters[name], note=note))
