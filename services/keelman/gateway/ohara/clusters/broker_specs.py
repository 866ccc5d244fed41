"""Translates a broker cluster of ours from Ohara's settings, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keelman.api.connect.v1 import broker_cluster_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster, BrokerClusterSpec
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.clusters.processes import FAILED, PENDING, RUNNING, Life, life_of
from keelman.gateway.ohara.clusters.worker_specs import routes_of
from keelman.gateway.ohara.definitions.broker import BROKER, KAFKA, KAFKA_0_12, SENT_ONLY, ZOOKEEPER_CLUSTER_KEY
from keelman.gateway.ohara.state.hosts import Hosts, own_node
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.keys import API, ObjectKey
from keelman.gateway.ohara.wire.values import Settings, default_of

ALL = (*BROKER, *SENT_ONLY)
CLIENT_PORT, JMX_PORT, NODE_NAMES = "clientPort", "jmxPort", "nodeNames"
XMX, ROUTES = "xmx", "routes"
KAFKA_PORT, USUAL_JMX_PORT = 9092, 9999
MIN_HEAP_MB, MAX_HEAP_MB = 128, 1 << 20
"""The bounds of a broker's heap: a smaller request gets the minimum, a larger one the maximum."""
_PROPERTIES = tuple(setting.key for setting in (*KAFKA, *KAFKA_0_12))
_EXTERNAL = {
    pb.CLUSTER_STATE_RUNNING: RUNNING,
    pb.CLUSTER_STATE_STARTING: PENDING,
    pb.CLUSTER_STATE_DEGRADED: FAILED,
}


def spec_of(settings: Mapping[str, Any], key: ObjectKey, folders: Sequence[str] = ()) -> BrokerClusterSpec:
    """Returns the spec of a new broker cluster. `folders` are the paths of its volumes."""
    spec = changed_spec(settings, {}, BrokerClusterSpec(origin=key.origin))
    spec.managed.data_folders[:] = folders
    return spec


def changed_spec(
    settings: Mapping[str, Any], shown: Mapping[str, Any], present: BrokerClusterSpec
) -> BrokerClusterSpec:
    """Returns the present spec, changed by the settings that differ from the shown ones."""
    spec = BrokerClusterSpec()
    spec.CopyFrom(present)
    spec.managed.nodes[:] = [own_node(name) for name in settings[NODE_NAMES]]
    changed = {name: value for name, value in settings.items() if name not in shown or shown[name] != value}
    if CLIENT_PORT in changed:
        spec.managed.port = changed[CLIENT_PORT]
    if JMX_PORT in changed:
        spec.managed.metrics_port = changed[JMX_PORT]
    if XMX in changed:
        spec.managed.heap_mb = _heap_mb(changed[XMX])
    if ROUTES in changed:
        spec.managed.routes.clear()
        spec.managed.routes.update(routes_of(changed[ROUTES]))
    for name in _PROPERTIES:
        if name in changed:
            spec.managed.properties[name] = str(changed[name])
    spec.extra.CopyFrom(struct_of(settings))
    return spec


def settings_of(cluster: BrokerCluster, key: ObjectKey, hosts: Hosts, brokers: Sequence[Workload] = ()) -> Settings:
    """Returns the complete settings of a broker cluster: as they were sent, updated from its present spec."""
    spec = cluster.spec
    if spec.origin.api == API:
        settings = value_of(spec.extra)
    else:
        defaults = {setting.key: default_of(setting) for setting in BROKER}
        settings = {name: value for name, value in defaults.items() if value is not None} | {
            ZOOKEEPER_CLUSTER_KEY: key.json, JMX_PORT: USUAL_JMX_PORT, "tags": dict(spec.labels),
        }  # fmt: skip
    for name in _PROPERTIES:
        if (text := spec.managed.properties.get(name, "")).removeprefix("-").isdecimal():
            settings[name] = int(text)
    if (heap := spec.managed.heap_mb) and heap != _heap_mb(settings.get(XMX, 0)):
        settings[XMX] = heap
    if port := spec.managed.metrics_port:
        settings[JMX_PORT] = port
    if routes_of(settings.get(ROUTES, {})) != dict(spec.managed.routes):
        settings[ROUTES] = dict(spec.managed.routes)
    ours = {NODE_NAMES: nodes_of(cluster, hosts), CLIENT_PORT: _client_port(cluster, brokers)}
    return settings | ours | key.json


def nodes_of(cluster: BrokerCluster, hosts: Hosts) -> list[str]:
    """Returns the names of the nodes with the cluster's brokers; for an external cluster the hosts of its brokers."""
    if cluster.spec.WhichOneof("kind") == "external":
        servers = cluster.spec.external.bootstrap_servers.split(",")
        return list(dict.fromkeys(server.strip().rpartition(":")[0].strip("[]") for server in servers))
    return [hosts.shown(node) for node in cluster.spec.managed.nodes]


def life(cluster: BrokerCluster, hosts: Hosts, brokers: Sequence[Workload]) -> Life:
    """Returns the life of a broker cluster; external brokers count as alive while their cluster runs."""
    if cluster.spec.WhichOneof("kind") == "external":
        state = _EXTERNAL.get(cluster.status.state, "")
        alive = tuple(nodes_of(cluster, hosts)) if state == RUNNING else ()
        return Life(state, alive, "" if state == RUNNING else cluster.status.message)
    return life_of(brokers, cluster.status.state, cluster.status.message, hosts=hosts)


def ports_of(spec: BrokerClusterSpec) -> frozenset[int]:
    """Returns the ports that a spec names; the state service chooses the others."""
    return frozenset({spec.managed.port, spec.managed.metrics_port} - {0})


def _client_port(cluster: BrokerCluster, brokers: Sequence[Workload]) -> int:
    if cluster.spec.managed.port:
        return cluster.spec.managed.port
    servers = cluster.spec.external.bootstrap_servers or cluster.status.bootstrap_servers
    port = servers.partition(",")[0].rpartition(":")[2].strip()
    return int(port) if port.isdecimal() else next((broker.spec.broker.port for broker in brokers), KAFKA_PORT)


def _heap_mb(xmx: int) -> int:
    return min(max(xmx, MIN_HEAP_MB), MAX_HEAP_MB)
