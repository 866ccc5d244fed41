"""Makes the plan: from the goals and the present state to the workloads of each agent. No I/O, no clock, no randomness.

Rules. Brokers are pinned to their nodes and, once they have data, to their ports. Workers of a `nodes` placement are
pinned too, each to its node and not to its place in the list; workers of a `count` placement go where the most room is
left, apart from each other, and stay there until the node is offline, is drained or loses a label that they need.
Changes of the settings of processes are rolled out worker by worker. A node that carries a running worker carries a
Spark service for it: one for the node or, where tenants have users of their own, one for each tenant; it ends when no
worker has needed it for a while. A Spark cluster has its drivers while a worker cluster that names it runs. Any change
of an agent's workloads is a new generation. A workload that has to go stays until its node reports REMOVED; one without
data of its own does not wait for an offline node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.model.plan import PlanChange
from keelman.model.plugins.plugin_set import WentBack
from keelman.model.workload import Workload
from keelman.state.planning.brokers import plan_brokers
from keelman.state.planning.changes import change_of
from keelman.state.planning.draft import Draft, Limits
from keelman.state.planning.drivers import plan_drivers
from keelman.state.planning.places import Figures, own_figures
from keelman.state.planning.scope import Scope, everything, scope_of
from keelman.state.planning.sparks import plan_sparks
from keelman.state.planning.workers import plan_workers
from keelman.state.resources.snapshot import WORKLOAD, Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes: workloads to store, names to forget, clusters that are gone, and the obstacles of clusters (only
    where they changed)."""

    changes: tuple[PlanChange, ...] = ()
    """The changes of workloads whose agents have something to do, by name."""
    put: tuple[Workload, ...] = ()
    drop: tuple[str, ...] = ()
    gone_broker_clusters: tuple[str, ...] = ()
    gone_worker_clusters: tuple[str, ...] = ()
    broker_notes: Mapping[str, str] = field(default_factory=dict)
    worker_notes: Mapping[str, str] = field(default_factory=dict)
    spark_notes: Mapping[str, str] = field(default_factory=dict)
    went_back: Mapping[str, WentBack] = field(default_factory=dict)
    """Worker clusters whose workers get their former plugins again."""

    @property
    def is_empty(self) -> bool:
        """True when everything is as wanted, or no more can be done now."""
        return self == Plan()


def at_once(spark: str) -> bool:
    """Returns False: no Spark service keeps running without a worker."""
    return False


def make_plan(
    snapshot: Snapshot,
    limits: Limits,
    scope: Scope | None = None,
    figures: Figures = own_figures,
    lingers: Callable[[str], bool] = at_once,
) -> Plan:
    """Returns the plan for one snapshot. `scope` limits it to the resources that may have changed since the last plan,
    with the same result. `figures` is called once something has to be placed, with the nodes that may get it; `lingers`
    tells whether a Spark service, by name, keeps running although no worker needs it.

    Planning again on the result of the plan gives an empty plan.
    """
    draft = Draft(snapshot, limits, figures)
    scope = everything(snapshot) if scope is None else scope
    broker_clusters = {name: snapshot.broker_clusters[name] for name in sorted(scope.broker_clusters)}
    gone_brokers = tuple(n for n, c in broker_clusters.items() if plan_brokers(draft, c))
    for name in sorted(scope.spark_clusters):
        plan_drivers(draft, name)
    if not scope.everything:
        scope.widen(scope_of(_changed(draft), draft.made, limits.events_broker_cluster))
    worker_clusters = {name: snapshot.worker_clusters[name] for name in sorted(scope.worker_clusters)}
    gone_workers = tuple(n for n, c in worker_clusters.items() if plan_workers(draft, c))
    _plan_waiting(draft)
    plan_sparks(draft, scope.nodes | {w.node for pair in _changed(draft) for w in pair if w is not None}, lingers)
    before, after = snapshot.workloads, sorted(draft.made.changes(WORKLOAD).items())
    changes = (change_of(before.get(n), w, draft.reasons) for n, w in after)
    return Plan(
        changes=tuple(c for c in changes if c is not None),
        put=tuple(w for n, w in after if w is not None and before.get(n) != w),
        drop=tuple(n for n, w in after if w is None and n in before),
        # A broker cluster's row outlives its users' rows, which name it.
        gone_broker_clusters=tuple(
            n for n in gone_brokers if all(u.name in gone_workers for u in snapshot.users_of(n))
        ),
        gone_worker_clusters=gone_workers,
        broker_notes={
            n: draft.broker_notes.get(n, "")
            for n, c in broker_clusters.items()
            if n not in gone_brokers and c.note != draft.broker_notes.get(n, "")
        },
        worker_notes={
            n: draft.worker_notes.get(n, "")
            for n, c in worker_clusters.items()
            if n not in gone_workers and c.note != draft.worker_notes.get(n, "")
        },
        spark_notes={
            n: draft.spark_notes.get(n, "")
            for n in sorted(scope.spark_clusters)
            if snapshot.spark_clusters[n].note != draft.spark_notes.get(n, "")
        },
        went_back=draft.went_back,
    )


def _changed(draft: Draft) -> list[tuple[Workload | None, Workload | None]]:
    """Returns the plan's changes so far: each workload before and after."""
    return [(draft.snapshot.workloads.get(name), new) for name, new in draft.made.changes(WORKLOAD).items()]


def _plan_waiting(draft: Draft) -> None:
    """Plans waiting clusters again: this plan may have freed room for them."""
    while draft.freed and draft.worker_notes:
        draft.freed = False
        for name in sorted(draft.worker_notes):
            del draft.worker_notes[name]
            plan_workers(draft, draft.snapshot.worker_clusters[name])
