"""After any changes in any order, a snapshot or draft answers as a newly made one does."""

import dataclasses
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.annotations import Annotations, Origin
from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ResourceLimits, SparkSpec, WorkerSpec, Workload, WorkloadKind
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, WORKLOAD, Snapshot
from support.state.snapshots import snapshot_of

NOUNS = (NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD)
TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES, CLUSTERS, HOSTS, PORTS = ("n1", "n2"), ("a", "b"), ("", "10.0.0.1", "10.0.0.2"), (1, 2, 3)
node = st.builds(
    lambda name, host: Node(name, name, TIME, TIME, NodeState.ONLINE, f"{host}:1" if host else ""),
    st.sampled_from(NODES), st.sampled_from(HOSTS),
)  # fmt: skip
brokers = st.builds(
    lambda name, nodes, note: BrokerCluster(
        name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, ManagedBrokers(tuple(nodes)), note=note
    ),
    st.sampled_from(CLUSTERS), st.lists(st.sampled_from(NODES), unique=True), st.sampled_from(["", "no port"]),
)  # fmt: skip
external = st.builds(
    lambda name, servers, kafka: BrokerCluster(
        name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, ExternalBrokers(",".join(servers)), kafka_cluster_id=kafka
    ),
    st.sampled_from(CLUSTERS), st.lists(st.sampled_from(["h:1", "H:1 ", "h:2"]), max_size=2),
    st.sampled_from(["", "one", "two"]),
)  # fmt: skip
workers = st.builds(
    lambda name, on, nodes, note: WorkerCluster(
        name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING,
        WorkerClusterSpec(on, tuple(nodes), 1, port=len(nodes), annotations=Annotations(origin=Origin("a", "s", on))),
        note=note,
    ),
    st.sampled_from(CLUSTERS), st.sampled_from(CLUSTERS), st.lists(st.sampled_from(NODES), unique=True),
    st.sampled_from(["", "no port"]),
)  # fmt: skip
worker = st.builds(
    lambda cluster, number, on, port, goal, tried: Workload(
        f"worker/{cluster}/{number}", on, 1, goal, WorkerSpec(cluster, "h", port, {}, ""), tried_ports=tuple(tried),
        limits=ResourceLimits(1.5, 100),
    ),
    st.sampled_from(CLUSTERS), st.integers(0, 1), st.sampled_from(NODES), st.sampled_from(PORTS),
    st.sampled_from(Goal), st.lists(st.sampled_from(PORTS), max_size=1),
)  # fmt: skip
spark = st.builds(
    lambda on, port: Workload(f"spark/{on}", on, 1, Goal.RUNNING, SparkSpec("h", port, "local")),
    st.sampled_from(NODES), st.sampled_from(PORTS),
)  # fmt: skip
change = st.one_of(node, brokers, external, workers, worker, spark, st.integers(0, 20))
history = st.lists(st.tuples(st.lists(change, max_size=6), st.booleans()), max_size=6)


def questions(snapshot: Snapshot) -> dict[str, object]:
    """Every answer of an index."""
    return {
        "tables": {noun: dict(snapshot.resources(noun)) for noun in NOUNS},
        "lengths": {noun: len(snapshot.resources(noun)) for noun in NOUNS},
        "in": {c: snapshot.workloads_in(WorkloadKind.WORKER, c) for c in CLUSTERS},
        "on": {n: snapshot.workloads_on(n) for n in NODES},
        "load": {n: snapshot.load(n) for n in NODES},
        "ports": {(n, p): snapshot.port_holders(n, p) for n in NODES for p in PORTS},
        "users": {c: snapshot.users_of(c) for c in CLUSTERS},
        "naming": {p: sorted(snapshot.naming(p)) for p in PORTS},
        "origins": {c: snapshot.of_origin(WORKER_CLUSTER, Origin("a", "s", c)) for c in CLUSTERS},
        "kafka": {(b, c): snapshot.named_in_kafka(b, f"keelman-{c}", ["t"]) for b in CLUSTERS for c in CLUSTERS},
        "one kafka": {c: snapshot.names_of_kafka(c) for c in CLUSTERS},
        "waiting": {noun: snapshot.waiting(noun) for noun in (BROKER_CLUSTER, WORKER_CLUSTER)},
        "pinned": {(noun, n): snapshot.pinned_to(noun, n) for noun in (BROKER_CLUSTER, WORKER_CLUSTER) for n in NODES},
    }


def anew(snapshot: Snapshot) -> Snapshot:
    return snapshot_of(*(dict(snapshot.resources(noun)) for noun in (NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD)))


def do(draft: Snapshot, value: object) -> None:
    if not isinstance(value, int):
        draft.put(value)
        return
    present = [(noun, name) for noun in NOUNS for name in sorted(draft.resources(noun))]
    if present:
        draft.drop(*present[value % len(present)])


@settings(max_examples=300, deadline=None)
@given(history)
def test_an_advanced_snapshot_is_one_made_anew(transactions: list[tuple[list[object], bool]]) -> None:
    snapshot = Snapshot()
    for changes, commits in transactions:
        before = questions(snapshot)
        draft = snapshot.draft()
        for single_change in changes:
            do(draft, single_change)
            assert questions(draft) == questions(anew(draft))
            over = draft.draft()  # a plan is a draft of a transaction's draft
            do(
                over,
                single_change
                if isinstance(single_change, int)
                else dataclasses.replace(single_change, name=single_change.name),
            )
            assert questions(over) == questions(anew(over))
        assert questions(snapshot) == before, "a draft changes nothing below it"
        if commits:
            snapshot.advance(draft)
            assert questions(snapshot) == questions(draft)
            assert questions(snapshot) == questions(anew(snapshot))
