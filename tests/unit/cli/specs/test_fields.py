"""How options change the spec of a node or a cluster, and the fields that they name."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.log_delivery_pb2 import FileLogDelivery, KafkaLogDelivery, LogDelivery, S3LogDelivery
from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WORKER_ENGINE_KAFKA_CONNECT, WorkerClusterSpec, WorkerNodes
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.cli.kinds import BROKER_CLUSTERS, CONNECTORS, NODES, SPARK_CLUSTERS, WORKER_CLUSTERS, Kind
from keelman.cli.specs.fields import apply, check_given
from keelman.cli.specs.options import Given, GivenChange
from keelman.model.errors import InvalidArgument


def test_a_worker_cluster_gets_every_field_and_names_it() -> None:
    spec = WorkerClusterSpec(broker_cluster="b", count=1, properties={"a": "1", "b": "2"}, labels={"x": "1"})
    given_change = GivenChange(
        description="nightly",
        labels=["team=blue"],
        unlabel=["x"],
        values=["c=3"],
        unset=["a"],
        count=3,
        node_selector=["disk=ssd"],
        port=8083,
        metrics_port=9400,
        admin_port=9401,
        reserved_ports=["9500", "9501"],
        routes=["db=10.0.0.7"],
        https=True,
        cpus=1.5,
        memory="512MiB",
        shared_offset_topic=True,
        tenant="blue",
        spark_cluster="big",
        allowed_topics=["orders-*", "one"],
        allowed_groups=["mine"],
        plugins=["acme:1.2", "new"],
        libraries=["driver"],
        engine="kafka-connect",
        log_group="a/b",
        log_bucket="logs/some/prefix",
        log_topic="topic",
    )
    paths = apply(given_change, spec)
    assert spec == WorkerClusterSpec(
        broker_cluster="b",
        count=3,
        properties={"b": "2", "c": "3"},
        description="nightly",
        labels={"team": "blue"},
        node_selector={"disk": "ssd"},
        port=8083,
        metrics_port=9400,
        admin_port=9401,
        reserved_ports=[9500, 9501],
        routes={"db": "10.0.0.7"},
        https=True,
        limits=ResourceLimits(cpus=1.5, memory_bytes=512 << 20),
        shared_offset_topic=True,
        plugins=[PluginRef(name="acme", version="1.2"), PluginRef(name="new")],
        libraries=[PluginRef(name="driver")],
        engine=WORKER_ENGINE_KAFKA_CONNECT,
        log_delivery=LogDelivery(
            file=FileLogDelivery(enabled=True, group="a/b"),
            s3=S3LogDelivery(enabled=True, bucket="logs", prefix="some/prefix"),
            kafka=KafkaLogDelivery(enabled=True, topic="topic"),
        ),
        tenant="blue",
        spark_cluster="big",
        allowed_topics=["orders-*", "one"],
        allowed_groups=["mine"],
    )
    assert sorted(paths) == sorted(
        field.name
        for field in spec.DESCRIPTOR.fields
        if field.name not in ("broker_cluster", "nodes", "autoscale", "origin", "extra")
    )


def test_targets_of_logs_are_changed_one_by_one() -> None:
    spec = WorkerClusterSpec()
    apply(Given(log_group="a", log_topic="t"), spec)
    assert apply(Given(log_group="none", log_bucket="logs"), spec) == ["log_delivery"]
    assert spec.log_delivery == LogDelivery(
        s3=S3LogDelivery(enabled=True, bucket="logs"), kafka=KafkaLogDelivery(enabled=True, topic="t")
    )
    apply(Given(log_bucket="none", log_topic="none"), spec)
    assert spec.log_delivery == LogDelivery()


def test_a_plugin_takes_the_place_of_that_of_its_name() -> None:
    present = [PluginRef(name="acme", version="1", sha256="a"), PluginRef(name="other", version="2", sha256="b")]
    spec = WorkerClusterSpec(plugins=present, libraries=present)
    given_change = GivenChange(plugins=["acme:2", "new"], remove_libraries=["other"])
    assert apply(given_change, spec) == ["plugins", "libraries"]
    assert [f"{ref.name}:{ref.version}" for ref in spec.plugins] == ["acme:2", "other:2", "new:"]
    assert [ref.name for ref in spec.libraries] == ["acme"]
    with pytest.raises(InvalidArgument, match=r"--remove-plugin: 'x' .*: acme, other, new"):
        apply(GivenChange(remove_plugins=["x"]), spec)
    with pytest.raises(InvalidArgument, match=r"--plugin: 'acme:' .*NAME:VERSION"):
        check_given(WORKER_CLUSTERS, Given(plugins=["acme:"]))
    with pytest.raises(InvalidArgument, match=r"--engine: 'java' .*keelman or kafka-connect"):
        check_given(WORKER_CLUSTERS, Given(engine="java"))


def test_what_is_there_can_be_taken_away() -> None:
    spec = WorkerClusterSpec(
        node_selector={"disk": "ssd"}, reserved_ports=[1], metrics_port=2, https=True, limits=ResourceLimits(cpus=1)
    )
    value = Given(node_selector=["none"], reserved_ports=["none"], metrics_port=0, https=False, cpus=0.0, memory="0")
    apply(value, spec)
    assert spec == WorkerClusterSpec(limits=ResourceLimits())


def test_nodes_are_added_last_and_removed_by_name() -> None:
    spec = WorkerClusterSpec(nodes=WorkerNodes(names=["a", "b"]))
    assert apply(GivenChange(add_nodes=["c"], remove_nodes=["a"]), spec) == ["nodes"]
    assert list(spec.nodes.names) == ["b", "c"]
    brokers = BrokerClusterSpec(managed=ManagedBrokers(nodes=["a"]))
    assert apply(GivenChange(add_nodes=["b"]), brokers) == ["managed.nodes"]
    assert list(brokers.managed.nodes) == ["a", "b"]
    with pytest.raises(InvalidArgument, match=r"--remove-node: 'x' is not legal: one of its nodes: b, c"):
        apply(GivenChange(remove_nodes=["x"]), spec)
    with pytest.raises(InvalidArgument, match="at least one node"):
        apply(GivenChange(remove_nodes=["b", "c"]), spec)
    with pytest.raises(InvalidArgument, match=r"placed by count \(2\)"):
        apply(GivenChange(add_nodes=["b"]), WorkerClusterSpec(count=2))


def test_the_properties_of_brokers_are_those_of_their_kind() -> None:
    external = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="h:1"))
    assert apply(GivenChange(values=["a=1"], bootstrap_servers="h:2"), external) == [
        "external.bootstrap_servers",
        "external.client_properties",
    ]
    assert external.external == ExternalBrokers(bootstrap_servers="h:2", client_properties={"a": "1"})
    managed = BrokerClusterSpec(managed=ManagedBrokers(nodes=["n"]))
    assert apply(GivenChange(values=["a=1"], port=9092), managed) == ["managed.port", "managed.properties"]
    for value in (GivenChange(add_nodes=["x"]), GivenChange(port=1), GivenChange(nodes="x")):
        with pytest.raises(InvalidArgument, match="the brokers run elsewhere"):
            apply(value, external)
    with pytest.raises(InvalidArgument, match="keelman runs the brokers"):
        apply(GivenChange(bootstrap_servers="h:1"), managed)


def test_brokers_have_a_heap_routes_and_a_port_of_metrics() -> None:
    spec = BrokerClusterSpec(managed=ManagedBrokers(nodes=["n"], routes={"old": "10.0.0.1"}))
    given_change = GivenChange(heap="1GiB", routes=["kafka.example=10.0.0.9"], metrics_port=9404)
    check_given(BROKER_CLUSTERS, given_change)
    assert apply(given_change, spec) == ["managed.metrics_port", "managed.heap_mb", "managed.routes"]
    assert spec.managed == ManagedBrokers(
        nodes=["n"], heap_mb=1024, routes={"kafka.example": "10.0.0.9"}, metrics_port=9404
    )
    apply(GivenChange(heap="0", routes=["none"], metrics_port=0), spec)
    assert spec.managed == ManagedBrokers(nodes=["n"])
    for heap in ("127MiB", "1000000", "129.5MiB"):
        with pytest.raises(InvalidArgument, match=r"--heap: .* is not legal: whole MiB, at least 128MiB"):
            apply(Given(heap=heap), spec)
    external = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="h:1"))
    for option, wrong in (
        ("--heap", Given(heap="1GiB")), ("--route", Given(routes=["a=b"])), ("--metrics-port", Given(metrics_port=1)),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match=f"{option}: not for external brokers"):
            apply(wrong, external)
    with pytest.raises(InvalidArgument, match="--heap"):
        check_given(WORKER_CLUSTERS, Given(heap="1GiB"))


def test_a_node_has_labels_and_a_capacity() -> None:
    spec = NodeSpec(labels={"zone": "a"}, cordoned=True)
    assert apply(Given(labels=["disk=ssd"], memory="4GiB"), spec) == ["labels", "capacity"]
    capacity = ResourceLimits(memory_bytes=4 << 30)
    assert spec == NodeSpec(labels={"zone": "a", "disk": "ssd"}, capacity=capacity, cordoned=True)


def test_a_spark_cluster_gets_every_field_and_names_it() -> None:
    spec = SparkClusterSpec(properties={"spark.a": "1"}, nodes=["n1", "n2"])
    given_change = GivenChange(
        values=["spark.executor.instances=4"],
        unset=["spark.a"],
        master="spark://host:7077",
        drivers=3,
        remove_nodes=["n2"],
        executor_cores=4,
        executor_memory="1GiB",
        executor_python="/usr/bin/python3.11",
        tenant="blue",
    )
    paths = apply(given_change, spec)
    assert spec == SparkClusterSpec(
        master="spark://host:7077", properties={"spark.executor.instances": "4"}, drivers=3, nodes=["n1"],
        executor_cores=4, executor_memory_mb=1024, executor_python="/usr/bin/python3.11", tenant="blue",
    )  # fmt: skip
    assert set(paths) == {field.name for field, _ in spec.ListFields()}
    assert apply(Given(nodes="none"), spec) == ["nodes"]
    assert not spec.nodes
    with pytest.raises(InvalidArgument, match="--executor-memory: '1kB' is not legal: whole MiB"):
        apply(Given(executor_memory="1kB"), spec)
    workers = WorkerClusterSpec(count=1)
    assert apply(Given(spark_cluster="big"), workers) == ["spark_cluster"]
    assert apply(Given(spark_cluster=""), workers) == ["spark_cluster"]
    assert workers == WorkerClusterSpec(count=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (GivenChange(unset=["x"]), r"--unset: 'x' is not legal: one that it has: a"),
        (GivenChange(unlabel=["x"]), r"--unlabel: 'x' is not legal: one that it has: it has none"),
        (GivenChange(unset=["a"], values=["a=2"]), "--unset: a is also given with --set"),
        (GivenChange(values=["a"]), "--set: 'a' is not legal: key=value"),
        (Given(nodes="a", count=2), "--count: not together with --nodes"),
    ],
)
def test_what_cannot_be_changed_so_is_refused_by_its_option(value: Given, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        apply(value, WorkerClusterSpec(count=1, properties={"a": "1"}))


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (NODES, {"count": 2}, "--count: not for nodes, only for worker-clusters"),
        (NODES, {"values": ["a=b"]}, "--set: not for nodes, only for broker-clusters, worker-clusters, connectors"),
        (BROKER_CLUSTERS, {"memory": "1"}, "--memory: not for broker-clusters, only for nodes, worker-clusters"),
        (CONNECTORS, {"labels": ["a=b"]}, "--label: not for connectors"),
        (WORKER_CLUSTERS, {"bootstrap_servers": "h:1"}, "--bootstrap-servers: not for worker-clusters"),
        (WORKER_CLUSTERS, {"reserved_ports": ["9", "x"]}, "--reserved-port: 'x' is not legal: a port, or none"),
        (WORKER_CLUSTERS, {"node_selector": ["ssd"]}, "--node-selector: 'ssd' is not legal: key=value"),
        (WORKER_CLUSTERS, {"memory": "much"}, "--memory"),
        (NODES, {"labels": ["ssd"]}, "--label: 'ssd' is not legal: key=value"),
        (SPARK_CLUSTERS, {"spark_cluster": "big"}, "--spark-cluster: not for spark-clusters, only for worker-clusters"),
        (WORKER_CLUSTERS, {"master": "sc://h"}, "--master: not for worker-clusters, only for spark-clusters"),
    ],
)
def test_an_option_is_judged_before_anybody_is_asked(kind: Kind, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_given(kind, Given(**fields))


def test_what_was_typed_is_told_from_what_was_not() -> None:
    assert not check_given(WORKER_CLUSTERS, GivenChange())
    assert check_given(WORKER_CLUSTERS, GivenChange(https=False))
    assert check_given(NODES, GivenChange(cpus=0.0))
