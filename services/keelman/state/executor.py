"""Plans for changed resources and writes the plans. A plan cut off before it was written is made again."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.node import Node, NodeFigures
from keelman.model.spark_cluster import SparkCluster
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.failpoints import hit
from keelman.state.nouns import plan as plans
from keelman.state.nouns import workload as workloads
from keelman.state.planning.draft import Limits
from keelman.state.planning.idle import IdleSparks
from keelman.state.planning.planner import Plan, make_plan
from keelman.state.planning.scope import Scope, everything, scope_of
from keelman.state.resources.snapshot import BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD, Resource, Snapshot
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Change, Transaction

log = get_logger()
CHECK_SECONDS = 300.0
"""How often everything is planned, whatever changed."""
LATE_SECONDS = 10.0
"""How long planning is put off while agents wait: they report what the plan is made from."""
PLANNED = (BrokerCluster, WorkerCluster, SparkCluster)
FIGURES_SECONDS = 5.0
"""How long the figures of hosts are used before they are read again."""


@dataclass(slots=True)
class Executor:
    """While this process leads, a reconciler calls `reconcile` after each commit and by its timer; the store calls
    `changed` with each commit's changes.

    `alive` gives a node with its host's figures; `on_planned` is called with the revision up to which all is planned.
    """

    store: ResourceStore
    limits: Limits
    alive: Callable[[Node], Node]
    on_planned: Callable[[int], None] | None = None
    clock: Callable[[], float] = time.monotonic
    is_behind: Callable[[], bool] | None = None
    """Whether agents have waited for some time to be registered or heard."""
    idle: IdleSparks = field(default_factory=IdleSparks)
    _changes: list[tuple[Resource | None, Resource | None]] = field(default_factory=list)
    _unplanned: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By noun and name of clusters with a newer generation not planned yet: the generation before, and the revision by
    which the newer one existed."""
    _leads: bool = True
    _checked: float | None = None
    _figures: dict[str, NodeFigures | None] = field(default_factory=dict)
    _figures_taken: float | None = None
    _put_off: float | None = None
    """Since when planning is put off."""

    def lead(self, leads: bool) -> None:
        """Called when this process begins or ends to lead: a leader's first plan covers everything."""
        self._leads, self._checked, self.idle = leads, None, IdleSparks(self.idle.grace_seconds)
        self._changes.clear()

    def changed(self, changes: Sequence[Change]) -> None:
        """Adds these changes to the scope of the next plan."""
        pairs = [(change.old, change.new) for change in changes]
        if self._leads:
            self._changes += pairs
        self._note_unplanned(pairs)

    def planned(self, revision: int) -> None:
        """Called with the revision up to which another process, the leader, has planned."""
        self._unplanned = {key: noted for key, noted in self._unplanned.items() if noted[1] > revision}

    def observed(self, cluster: BrokerCluster | WorkerCluster | SparkCluster) -> int:
        """Returns the newest generation of a cluster that has been planned; 0 before a leader's first plan."""
        if self._leads and self._checked is None:
            return 0
        return self._unplanned.get((cluster.NOUN, cluster.name), (cluster.generation, 0))[0]

    def _note_unplanned(self, pairs: Iterable[tuple[Resource | None, Resource | None]]) -> None:
        for old, new in pairs:
            if isinstance(new, PLANNED):
                before = old.generation if isinstance(old, PLANNED) else 0
                if before != new.generation:
                    first = self._unplanned.get((new.NOUN, new.name), (before, 0))[0]
                    self._unplanned[(new.NOUN, new.name)] = first, self.store.revision

    async def reconcile(self) -> None:
        """Plans once and writes the plan in one transaction; writes nothing when the plan is empty."""
        is_check = self._checked is None or self.clock() - self._checked >= CHECK_SECONDS
        nodes = self.store.snapshot.nodes
        self._changes += [(nodes[name], nodes[name]) for name in self.idle.over(self.clock()) if name in nodes]
        if not (is_check or self._changes) or self._is_put_off():
            return
        self._forget_old_figures()
        count, seen = len(self._changes), self.store.revision
        scope = self._scope(self.store.snapshot, is_check=is_check)
        plan = self._plan(self.store.snapshot, scope)
        if plan.is_empty:
            self._done(count, seen, scope, is_check=is_check)
            return
        hit("plan-made")
        async with self.store.write() as tx:
            if self.store.revision != seen:
                count, seen = len(self._changes), self.store.revision
                scope = self._scope(tx.snapshot, is_check=is_check)
                plan = self._plan(tx.snapshot, scope)
            first = tx.turn.revision + 1
            _apply(tx, plan)
            await plans.save(tx, first, plan.changes)
            hit("plan-kept")
        hit("plan-stored")
        self._done(count, seen, scope, is_check=is_check)
        for workload in plan.put:
            log.info(
                "planned", workload=workload.name, node=workload.node, generation=workload.generation,
                goal=str(workload.goal), port=workload.spec.port,
            )  # fmt: skip
        for name in (*plan.drop, *plan.gone_worker_clusters, *plan.gone_broker_clusters):
            log.info("forgotten", name=name)

    def _is_put_off(self) -> bool:
        if self.is_behind is None or not self.is_behind():
            self._put_off = None
            return False
        if self._put_off is None:
            self._put_off = self.clock()
        return self.clock() - self._put_off < LATE_SECONDS

    def _scope(self, snapshot: Snapshot, *, is_check: bool) -> Scope:
        if is_check:
            return everything(snapshot)
        return scope_of(self._changes, snapshot, self.limits.events_broker_cluster)

    def _plan(self, snapshot: Snapshot, scope: Scope) -> Plan:
        now = self.clock()
        return make_plan(snapshot, self.limits, scope, self._figures_of, lambda spark: self.idle.lingers(spark, now))

    def _done(self, count: int, seen: int, scope: Scope, *, is_check: bool) -> None:
        del self._changes[:count]
        self.idle.look(self.store.snapshot, scope.nodes, self.clock())
        self.planned(seen)
        if is_check:
            self._checked = self.clock()
        if self.on_planned is not None:
            self.on_planned(seen)

    def _forget_old_figures(self) -> None:
        """Forgets the figures of hosts once they are old."""
        if self._figures_taken is None or self.clock() - self._figures_taken >= FIGURES_SECONDS:
            self._figures.clear()
            self._figures_taken = self.clock()

    def _figures_of(self, node: Node) -> NodeFigures | None:
        """Returns the figures of a node's host for the planner; they are never stored."""
        if node.name not in self._figures:
            self._figures[node.name] = self.alive(node).figures
        return self._figures[node.name]


def _apply(tx: Transaction, plan: Plan) -> None:
    for workload in plan.put:
        workloads.save(tx, workload)
        hit("plan-placed")
    for name in plan.drop:
        tx.drop(WORKLOAD, name)
        hit("plan-forgot")
    for name in plan.gone_worker_clusters:
        tx.drop(WORKER_CLUSTER, name)
    for name in plan.gone_broker_clusters:
        tx.drop(BROKER_CLUSTER, name)
    for name, note in plan.broker_notes.items():
        tx.put(dataclasses.replace(tx.snapshot.broker_clusters[name], note=note))
    for name, note in plan.worker_notes.items():
        tx.put(dataclasses.replace(tx.snapshot.worker_clusters[name], note=note))
        hit("plan-noted")
    for name, note in plan.spark_notes.items():
        tx.put(dataclasses.replace(tx.snapshot.spark_clusters[name], note=note))
    for name, back in plan.went_back.items():
        cluster = tx.snapshot.worker_clusters[name]
        history = dataclasses.replace(cluster.plugin_history, went_back=back)
        tx.put(dataclasses.replace(cluster, plugin_history=history))
