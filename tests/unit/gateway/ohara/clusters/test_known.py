"""Clusters from the state service's messages: all kinds, which clusters use which, and their ports."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import worker_cluster_pb2 as workers
from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE, Node, NodeStatus
from keelman.gateway.ohara.clusters.broker_specs import changed_spec, settings_of, spec_of
from keelman.gateway.ohara.clusters.known_clusters import (
    BROKER,
    WORKER,
    ZOOKEEPER,
    KnownClusters,
    broker_of,
    owner_of,
    stand_ins,
    worker_of,
    zookeeper_of,
)
from keelman.gateway.ohara.state.hosts import Hosts, node_key
from keelman.gateway.ohara.state.stored import StoredDocument
from keelman.gateway.ohara.wire.keys import ObjectKey, own_name

KEY = ObjectKey("g", "bk")
HOSTS = Hosts(
    [Node(name=name, status=NodeStatus(state=NODE_STATE_ONLINE)) for name in ("n1", "n2")],
    [StoredDocument(node_key("n2"), {"hostname": "N2"})],
)
SETTINGS = {
    "group": "g", "name": "bk", "nodeNames": ["N2", "n1"], "clientPort": 9500, "jmxPort": 9501, "num.partitions": 2,
    "zookeeperClusterKey": {"group": "g", "name": "zk"}, "tags": {"a": 1}, "queued.max.request.bytes": -1,
}  # fmt: skip
ZOOKEEPER_SETTINGS = {"nodeNames": ["n1"], "clientPort": 1, "jmxPort": 2, "peerPort": 3, "electionPort": 4}


def made(name: str, spec: brokers.BrokerClusterSpec, state: str = "RUNNING", **status: Any) -> brokers.BrokerCluster:
    number = brokers.ClusterState.Value(f"CLUSTER_STATE_{state}")
    return brokers.BrokerCluster(name=name, spec=spec, status=brokers.BrokerClusterStatus(state=number, **status))


def broker(node: str, cluster: str = "oh-1") -> work.Workload:
    spec = work.BrokerWorkload(broker_cluster=cluster, port=9500, controller_port=9600)
    status = work.WorkloadStatus(state=work.WORKLOAD_STATE_RUNNING)
    running = work.WORKLOAD_GOAL_RUNNING
    return work.Workload(name=f"broker/{cluster}/0", node=node, goal=running, spec={"broker": spec}, status=status)


def test_only_ports_that_are_wanted_or_used_are_held() -> None:
    native = brokers.BrokerClusterSpec(managed=brokers.ManagedBrokers(nodes=["n1"]))
    shown = broker_of(made("native", native), HOSTS, [])
    assert shown is not None
    assert (shown.read_settings()["clientPort"], shown.ports) == (9092, frozenset())
    running = broker_of(made("native", native), HOSTS, [broker("n1", "native")])
    assert running is not None
    assert running.ports == {9500, 9600}
    requested_broker = broker_of(made("oh-1", spec_of(SETTINGS, KEY)), HOSTS, [])
    assert requested_broker is not None
    assert requested_broker.ports == {9500, 9501}


def test_settings_become_a_managed_cluster_and_come_back() -> None:
    spec = spec_of(SETTINGS, KEY)
    assert (list(spec.managed.nodes), spec.managed.port) == (["n2", "n1"], 9500)
    assert dict(spec.managed.properties) == {"num.partitions": "2", "queued.max.request.bytes": "-1"}
    assert (spec.origin.api, spec.origin.scope, spec.origin.key) == ("ohara", "g", "bk")
    assert settings_of(made("oh-1", spec), KEY, HOSTS) == SETTINGS
    spec.managed.properties["num.partitions"] = "7"
    assert settings_of(made("oh-1", spec), KEY, HOSTS)["num.partitions"] == 7, "it was changed through another API"


def test_only_what_differs_is_changed_of_a_cluster_that_was_made_elsewhere() -> None:
    native = brokers.BrokerClusterSpec(managed=brokers.ManagedBrokers(nodes=["n1"], properties={"own": "x"}))
    shown = settings_of(made("bk", native), ObjectKey("default", "bk"), HOSTS, [broker("n1", "bk")])
    assert (shown["clientPort"], shown["num.partitions"], shown["jmxPort"]) == (9500, 1, 9999)
    changed = changed_spec({**shown, "nodeNames": ["n1", "N2"]}, shown, native)
    assert (list(changed.managed.nodes), changed.managed.port) == (["n1", "n2"], 0)
    assert dict(changed.managed.properties) == {"own": "x"}


@pytest.mark.parametrize(
    ("state", "shown", "alive"), [("RUNNING", "RUNNING", 2), ("STARTING", "PENDING", 0), ("DEGRADED", "FAILED", 0)]
)
def test_external_brokers_are_alive_where_they_are(state: str, shown: str, alive: int) -> None:
    spec = brokers.BrokerClusterSpec(external=brokers.ExternalBrokers(bootstrap_servers="a:1, [::1]:2,a:3"))
    actual_broker = broker_of(made("ext", spec, state, message="nobody answers"), HOSTS, [])
    assert actual_broker is not None
    assert (actual_broker.node_names, actual_broker.settings["clientPort"]) == (("a", "::1"), 1)
    assert (
        actual_broker.life.state,
        len(actual_broker.life.alive_nodes),
        actual_broker.life.error == "nobody answers",
    ) == (
        shown,
        alive,
        not alive,
    )
    assert actual_broker.ports == frozenset(), "they belong to no cluster"


def test_clusters_know_who_uses_them_and_which_ports_they_have() -> None:
    bk = broker_of(made("oh-1", spec_of(SETTINGS, KEY)), HOSTS, [broker("n1")])
    assert bk is not None
    assert (bk.ports, bk.life.state, bk.life.alive_nodes) == (frozenset({9500, 9501, 9600}), "RUNNING", ("n1",))
    spec = workers.WorkerClusterSpec(broker_cluster="oh-1", nodes={"names": ["n2"]}, port=8000, reserved_ports=[8001])
    stopped = workers.WorkerClusterStatus(state=brokers.CLUSTER_STATE_STOPPED)
    wk = worker_of(workers.WorkerCluster(name="wk", spec=spec, status=stopped), HOSTS, [], {"oh-1": KEY})
    assert wk is not None
    zk = zookeeper_of(StoredDocument(ObjectKey("g", "zk"), {**ZOOKEEPER_SETTINGS, "state": "RUNNING"}))
    known_clusters = KnownClusters(HOSTS, [bk, wk, zk])
    assert (wk.node_names, wk.ports) == (("N2",), frozenset({8000, 8001}))
    assert known_clusters.users(WORKER, KEY, running=False) == [wk]
    assert known_clusters.users(WORKER, KEY, running=True) == []
    assert known_clusters.users(BROKER, zk.key, running=True) == [bk]
    assert {holder.kind for holder in known_clusters.holders()} == {BROKER, ZOOKEEPER}
    assert "state" not in zk.settings


def test_clusters_that_go_and_names_that_are_not_legal_are_not_shown() -> None:
    native = brokers.BrokerClusterSpec(managed=brokers.ManagedBrokers(nodes=["n1"]))
    assert broker_of(made("a-b", native), HOSTS, []) is None
    assert broker_of(made("ab", native, "DELETING"), HOSTS, []) is None
    other = brokers.BrokerClusterSpec(managed=native.managed, origin={"api": "other", "key": "x"})
    assert broker_of(made("ab", other), HOSTS, []) is None


def test_brokers_of_others_have_a_zookeeper_that_lives_with_them() -> None:
    native = brokers.BrokerClusterSpec(managed=brokers.ManagedBrokers(nodes=["n1"]))
    running = broker_of(made("one", native), HOSTS, [broker("n1", "one")])
    waiting = broker_of(made("two", native, "STARTING"), HOSTS, [])
    own = broker_of(made("oh-1", spec_of(SETTINGS, KEY)), HOSTS, [])
    first, second = stand_ins([cluster for cluster in (running, waiting, own) if cluster is not None])
    assert (first.key, first.life.state, first.settings["clientPort"]) == (ObjectKey("default", "one"), "RUNNING", 2181)
    assert (second.key.name, second.life.state, second.ports) == ("two", "", frozenset())


def test_a_process_is_of_its_cluster() -> None:
    assert owner_of(broker("n1")) == (BROKER, "oh-1")
    assert owner_of(work.Workload(spec={"worker": work.WorkerWorkload(worker_cluster="w")})) == (WORKER, "w")
    assert owner_of(work.Workload(spec={"spark": work.SparkWorkload()})) == ("", "")


def test_errors_name_clusters_as_users_do() -> None:
    spec = workers.WorkerClusterSpec(broker_cluster="oh-1", origin={"api": "ohara", "scope": "g", "key": "wk"})
    status = workers.WorkerClusterStatus(
        state=brokers.CLUSTER_STATE_STARTING, message="worker/oh-1-2/0 waits for the brokers of oh-1 to be placed"
    )
    worker = worker_of(workers.WorkerCluster(name="oh-1-2", spec=spec, status=status), HOSTS, [], {"oh-1": KEY})
    assert worker is not None
    assert worker.life.error == "worker/g-wk/0 waits for the brokers of g-bk to be placed"


def test_heap_and_routes_of_brokers_are_asked_for() -> None:
    spec = spec_of(SETTINGS | {"xmx": 1, "routes": {"a.example": "10.0.0.1", "b": 1}}, KEY)
    assert (spec.managed.heap_mb, dict(spec.managed.routes)) == (128, {"a.example": "10.0.0.1"})
    shown = settings_of(made("oh-1", spec), KEY, HOSTS)
    assert (shown["xmx"], shown["routes"]) == (1, {"a.example": "10.0.0.1", "b": 1}), "as they were sent"
    spec.managed.heap_mb = 700
    assert settings_of(made("oh-1", spec), KEY, HOSTS)["xmx"] == 700, "it was changed through another API"


def test_an_error_names_files_as_they_were_uploaded() -> None:
    file = ObjectKey("default", "x.jar")
    name = own_name(file)
    spec = workers.WorkerClusterSpec(broker_cluster="oh-1")
    spec.extra.update({"pluginKeys": [file.json]})
    message = f"plugin {name} 1 cannot be loaded: {name}:1 has no class"
    status = workers.WorkerClusterStatus(state=brokers.CLUSTER_STATE_STARTING, message=message)
    worker = worker_of(workers.WorkerCluster(name="wk", spec=spec, status=status), HOSTS, [], {})
    assert worker is not None
    assert worker.life.error == "plugin default/x.jar cannot be loaded: default/x.jar has no class"
