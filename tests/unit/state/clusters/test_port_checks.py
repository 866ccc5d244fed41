"""Resources that only one cluster can have: ports, an origin, a group and topics in Kafka."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.annotations import Annotations, Origin
from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.clusters.port_checks import check_broker_ports_free, check_ports_free
from keelman.state.resources.origins import check_origin
from keelman.state.resources.snapshot import BROKER_CLUSTER, WORKER_CLUSTER
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = Origin("ohara", "default", "wk")


def node(name: str, host: str) -> Node:
    return Node(name, name, TIME, TIME, NodeState.ONLINE, f"{host}:7420")


def brokers(name: str, spec: ManagedBrokers | ExternalBrokers, kafka: str = "") -> BrokerCluster:
    return BrokerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, spec, kafka_cluster_id=kafka)


def workers(name: str, on: str = "ext", **spec) -> WorkerCluster:
    return WorkerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, WorkerClusterSpec(on, **spec))


NODES = {"n1": node("n1", "10.0.0.1"), "n2": node("n2", "10.0.0.2")}
EXT = brokers("ext", ExternalBrokers("kafka-1:9092"))
HELD = workers("held", count=1, port=9000, reserved_ports=(9001,), annotations=Annotations(origin=ORIGIN))
AUTO = Workload("worker/auto/0", "n1", 1, Goal.RUNNING, WorkerSpec("auto", "10.0.0.1", 8083, {}, ""))
SPARK = Workload("spark/n1", "n1", 1, Goal.RUNNING, SparkSpec("10.0.0.1", 7430, "local"))
SNAPSHOT = snapshot_of(
    NODES,
    {"ext": EXT, "m": brokers("m", ManagedBrokers(("n1",), port=9094))},
    {"held": HELD, "auto": workers("auto", count=1)},
    {w.name: w for w in (AUTO, SPARK)},
)


@pytest.mark.parametrize(
    ("spec", "field", "held"),
    [
        ({"count": 1, "port": 9000}, "spec.port", ("9000", "worker_cluster", "held")),
        ({"nodes": ("n2",), "metrics_port": 9001}, "spec.metrics_port", ("9001", "worker_cluster", "held")),
        ({"count": 1, "reserved_ports": (9500, 9094)}, "spec.reserved_ports[1]", ("9094", "broker_cluster", "m")),
        ({"nodes": ("n1",), "admin_port": 8083}, "spec.admin_port", ("8083", "worker_cluster", "auto")),
        ({"nodes": ("n2", "n1"), "port": 7430}, "spec.port", ("7430", "node", "n1")),
    ],
)
def test_a_port_that_something_has_is_refused(spec, field, held) -> None:
    with pytest.raises(FailedPrecondition) as refused:
        check_ports_free("new", WorkerClusterSpec("ext", **spec), SNAPSHOT)
    assert refused.value.message.startswith(f"{field}: {held[0]} is a port of ")
    assert refused.value.reason == "PORT_IN_USE"
    facts = dict(zip(("port", "kind", "name"), held, strict=True))
    if held[2] == "held":
        facts |= {"origin_api": "ohara", "origin_scope": "default", "origin_key": "wk"}
    assert refused.value.metadata == facts


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("held", {"count": 2, "port": 9000}),  # its own
        ("new", {"count": 1, "port": 8083}),  # free on n2
        ("new", {"nodes": ("n2",), "port": 8083}),
        ("auto", {"nodes": ("n1",), "port": 8083}),
        ("new", {"count": 1}),
    ],
)
def test_a_port_that_is_its_own_or_free_is_taken(name, spec) -> None:
    check_ports_free(name, WorkerClusterSpec("ext", **spec), SNAPSHOT)


def test_two_workers_on_one_host_cannot_have_the_same_port() -> None:
    snapshot = snapshot_of(NODES | {"n3": node("n3", "10.0.0.1")}, {"ext": EXT})
    check_ports_free("new", WorkerClusterSpec("ext", ("n1", "n2"), port=9000), snapshot)
    with pytest.raises(InvalidArgument, match=r"spec\.port.*share the host 10\.0\.0\.1"):
        check_ports_free("new", WorkerClusterSpec("ext", ("n1", "n3"), port=9000), snapshot)


def test_a_port_that_is_free_on_no_node_is_refused() -> None:
    there = dataclasses.replace(AUTO, name="worker/auto/1", node="n2")
    full = snapshot_of(NODES, {"ext": EXT}, {"auto": workers("auto", count=2)}, {w.name: w for w in (AUTO, there)})
    with pytest.raises(FailedPrecondition, match="'auto'"):
        check_ports_free("new", WorkerClusterSpec("ext", count=1, port=8083), full)


def test_brokers_keep_away_from_the_ports_of_workers() -> None:
    check_broker_ports_free("m", ManagedBrokers(("n1",), port=9094), SNAPSHOT)
    for field in ("port", "metrics_port"):
        message = rf"spec\.managed\.{field}: 9000 is a port of worker cluster 'held'"
        with pytest.raises(FailedPrecondition, match=message):
            check_broker_ports_free("m", ManagedBrokers(("n1",), **{field: 9000}), SNAPSHOT)


def test_an_origin_is_unique_among_the_clusters_of_a_noun() -> None:
    check_origin(WORKER_CLUSTER, "held", ORIGIN, SNAPSHOT)
    check_origin("broker_cluster", "other", ORIGIN, SNAPSHOT)
    check_origin(WORKER_CLUSTER, "other", dataclasses.replace(ORIGIN, scope="else"), SNAPSHOT)
    with pytest.raises(FailedPrecondition) as refused:
        check_origin(WORKER_CLUSTER, "other", ORIGIN, SNAPSHOT)
    assert (refused.value.reason, refused.value.metadata["name"]) == ("ORIGIN_IN_USE", "held")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("kafka-1:9092", "id-1"), ("other:9092", "id-1"), True),
        (("kafka-1:9092", "id-1"), ("kafka-1:9092", "id-2"), False),
        (("kafka-1:9092,kafka-2:9092", ""), ("KAFKA-2:9092 ,kafka-3:9092", "id-1"), True),
        (("kafka-1:9092", ""), ("kafka-2:9092", ""), False),
    ],
)
def test_two_names_of_one_kafka_have_one_set_of_groups_and_topics(first, second, same) -> None:
    there = workers("old", "one", count=1, properties={"group.id": "g"})
    clusters = {n: brokers(n, ExternalBrokers(s), k) for n, (s, k) in {"one": first, "two": second}.items()}
    spec = WorkerClusterSpec("two", count=1, properties={"group.id": "g"})
    snapshot = snapshot_of(NODES, clusters, {"old": there})
    if not same:
        check_own_names("new", spec, snapshot)
        return
    with pytest.raises(FailedPrecondition) as refused:
        check_own_names("new", spec, snapshot)
    assert refused.value.reason == "GROUP_IN_USE"
    assert refused.value.metadata == {"worker_cluster": "old", "broker_cluster": "one", "group": "g"}


def offsets(topic: str, *, shared: bool, other: str = "") -> dict:
    properties = {"offset.storage.topic": topic} | ({"status.storage.topic": other} if other else {})
    return {"count": 1, "properties": properties, "shared_offset_topic": shared}


@pytest.mark.parametrize(
    ("old", "new", "legal"),
    [
        (offsets("o", shared=True), offsets("o", shared=True), True),
        (offsets("o", shared=True), offsets("o", shared=False), False),
        (offsets("o", shared=False), offsets("o", shared=True), False),
        (offsets("o", shared=True), offsets("p", shared=True, other="o"), False),
        (offsets("o", shared=True, other="s"), offsets("o", shared=True, other="s"), False),
    ],
)
def test_an_offset_topic_is_shared_when_both_say_so(old, new, legal) -> None:
    snapshot = snapshot_of(NODES, {"ext": EXT}, {"old": workers("old", **old)})
    if legal:
        check_own_names("new", WorkerClusterSpec("ext", **new), snapshot)
        return
    with pytest.raises(FailedPrecondition) as refused:
        check_own_names("new", WorkerClusterSpec("ext", **new), snapshot)
    assert refused.value.reason == "TOPIC_IN_USE"


def test_the_group_is_looked_at_before_the_topics() -> None:
    a = workers("a", count=1, properties={"config.storage.topic": "c"})
    z = workers("z", count=1, properties={"group.id": "g", "status.storage.topic": "s"})
    snapshot = snapshot_of(NODES, {"ext": EXT}, {"a": a, "z": z})
    mine = {"group.id": "g", "config.storage.topic": "s", "offset.storage.topic": "c"}
    results = []
    for key in ("group.id", "config.storage.topic", "offset.storage.topic"):
        with pytest.raises(FailedPrecondition) as refused:
            check_own_names("new", WorkerClusterSpec("ext", count=1, properties=mine), snapshot)
        results.append((refused.value.metadata.get("property", "group.id"), refused.value.metadata["worker_cluster"]))
        del mine[key]
    assert results == [("group.id", "z"), ("config.storage.topic", "z"), ("offset.storage.topic", "a")]


@pytest.mark.parametrize(
    ("goal", "generation", "status", "free"),
    [
        (Goal.REMOVED, 6, (ProcessState.STOPPED, 5), True),
        (Goal.REMOVED, 6, (ProcessState.REMOVED, 6), True),
        (Goal.REMOVED, 6, (ProcessState.STOPPED, 4), False),  # generation 5 was to run
        (Goal.REMOVED, 6, (ProcessState.RUNNING, 5), False),
        (Goal.STOPPED, 6, (ProcessState.STOPPED, 5), False),
        (Goal.RUNNING, 6, (ProcessState.STOPPED, 6), False),
        (Goal.REMOVED, 6, None, False),
    ],
)
def test_what_a_deleted_cluster_had_is_free_once_it_has_ended(goal, generation, status, free) -> None:
    gone = dataclasses.replace(HELD, goal=ClusterGoal.DELETED)
    status_reported = None if status is None else WorkloadStatus(status[0], status[1])
    spec = WorkerSpec("held", "10.0.0.1", 9000, {}, "")
    worker = Workload("worker/held/0", "n1", generation, goal, spec, status=status_reported)
    there = snapshot_of(NODES, {"ext": EXT}, {"held": gone}, {worker.name: worker})
    expected_spec = WorkerClusterSpec("ext", ("n1",), port=9000, properties={"group.id": "keelman-held"})
    for check in (
        lambda: check_ports_free("new", expected_spec, there),
        lambda: check_own_names("new", expected_spec, there),
        lambda: check_origin(WORKER_CLUSTER, "new", ORIGIN, there),
    ):
        if free:
            check()
        else:
            with pytest.raises(FailedPrecondition):
                check()


@pytest.mark.parametrize(("ended", "free"), [(ProcessState.REMOVED, True), (ProcessState.RUNNING, False)])
def test_what_deleted_brokers_had_is_free_once_they_have_ended(ended, free) -> None:
    spec = ManagedBrokers(("n1",), port=9094, annotations=Annotations(origin=ORIGIN))
    gone = dataclasses.replace(brokers("gone", spec), goal=ClusterGoal.DELETED)
    has = BrokerSpec("gone", "id", 0, "10.0.0.1", 9094, 9095, {})
    broker = Workload("broker/gone/0", "n1", 2, Goal.REMOVED, has, status=WorkloadStatus(ended, 2))
    there = snapshot_of(NODES, {"gone": gone}, {}, {broker.name: broker})
    for check in (
        lambda: check_broker_ports_free("new", ManagedBrokers(("n1",), port=9094), there),
        lambda: check_origin(BROKER_CLUSTER, "new", ORIGIN, there),
    ):
        if free:
            check()
        else:
            with pytest.raises(FailedPrecondition):
                check()
