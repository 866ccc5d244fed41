"""Translates a worker cluster of ours from Ohara's settings, and back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.struct_pb2 import Struct

from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterSpec
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.definitions import worker
from keelman.gateway.ohara.state.hosts import Hosts, own_node
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.json_types import empty_strings, is_number
from keelman.gateway.ohara.wire.keys import API, ObjectKey, key_of, unshown_key
from keelman.gateway.ohara.wire.values import Settings, default_of

ALL = (*worker.WORKER, *worker.SENT_ONLY)
NODE_NAMES, CLIENT_PORT, JMX_PORT, ROUTES, XMX = "nodeNames", "clientPort", "jmxPort", "routes", "xmx"
MIB = 1 << 20
MAX_LIMIT = (1 << 63) - 1
REST_PORT = 8083
"""The port shown for a cluster without a fixed port, before its workers are placed."""
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
FIXED = {
    "key.converter": JSON_CONVERTER,
    "value.converter": JSON_CONVERTER,
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "connector.client.config.override.policy": "All",
}
"""The worker properties that all of Ohara's workers share."""
PROPERTIES = {
    worker.GROUP_ID: worker.GROUP_ID,
    **{worker.topic_key(kind): worker.topic_key(kind) for kind in worker.TOPIC_KINDS},
    **{
        worker.partitions_key(kind): worker.partitions_key(kind) for kind in worker.TOPIC_KINDS if kind != worker.CONFIG
    },
    **{worker.replication_key(kind): worker.replication_key(kind) for kind in worker.TOPIC_KINDS},
    worker.COMPRESSION: worker.COMPRESSION,
    worker.JVM_OPTIONS: "keelman.plugin.jvm.options",
}
"""The worker property of each setting; the config topic always has one partition."""
USUAL_PARTITIONS = {"offset": 25, "status": 5}
_PORTS = frozenset((CLIENT_PORT, JMX_PORT, worker.FREE_PORTS))


def new_spec(
    settings: Mapping[str, Any], key: ObjectKey, broker_cluster: str, refs: Mapping[str, Any]
) -> WorkerClusterSpec:
    """Returns the spec of a new worker cluster. `refs`: the plugins by the settings that name them."""
    spec = WorkerClusterSpec(broker_cluster=broker_cluster, origin=key.origin, properties=FIXED)
    _put(spec, settings, set(settings), refs)
    return spec


def changed_spec(
    present: WorkerClusterSpec,
    previous: Mapping[str, Any],
    settings: Mapping[str, Any],
    broker_cluster: str,
    refs: Mapping[str, Any],
) -> tuple[WorkerClusterSpec, list[str]]:
    """Returns the spec with the changed settings, and the fields of the spec that the change may touch."""
    changed = {key for key, value in settings.items() if key not in previous or previous[key] != value}
    spec = WorkerClusterSpec()
    spec.CopyFrom(present)
    fields = _put(spec, settings, changed, refs)
    if worker.BROKER_CLUSTER_KEY in changed:
        spec.broker_cluster = broker_cluster
        fields.append("broker_cluster")
    return spec, fields if changed else []


def _put(
    spec: WorkerClusterSpec, settings: Mapping[str, Any], changed: Collection[str], refs: Mapping[str, Any]
) -> list[str]:
    fields = ["extra"]
    spec.extra.CopyFrom(struct_of(settings))
    if NODE_NAMES in changed:
        put_nodes(spec, settings[NODE_NAMES])
        fields.append("nodes")
    if texts := {PROPERTIES[key]: str(settings[key]) for key in PROPERTIES if key in changed}:
        spec.properties.update(texts)
        fields.append("properties")
    if _PORTS & set(changed):
        _put_ports(spec, settings)
        fields += ["port", "metrics_port", "reserved_ports"]
    if XMX in changed:
        memory = settings[XMX] * MIB
        spec.limits.memory_bytes = memory if memory <= MAX_LIMIT else 0
        fields.append("limits")
    if ROUTES in changed:
        spec.routes.clear()
        spec.routes.update(routes_of(settings[ROUTES]))
        fields.append("routes")
    for key, field in ((worker.PLUGIN_KEYS, "plugins"), (worker.SHARED_JAR_KEYS, "libraries")):
        if key in changed:
            getattr(spec, field).clear()
            getattr(spec, field).extend(refs[key])
            fields.append(field)
    return fields


def put_nodes(spec: WorkerClusterSpec, hostnames: Iterable[str]) -> None:
    """Puts one worker on each of these nodes, also on a node that is named twice."""
    spec.nodes.names[:] = list(dict.fromkeys(own_node(name) for name in hostnames))


def _put_ports(spec: WorkerClusterSpec, settings: Mapping[str, Any]) -> None:
    """Sets the ports; the state service chooses those that are not given. If REST and metrics have the same port, it
    serves both. A free port equal to either is not reserved again."""
    spec.port = settings.get(CLIENT_PORT, spec.port)
    jmx = settings.get(JMX_PORT, spec.metrics_port)
    spec.metrics_port = 0 if jmx == spec.port else jmx
    free = (
        int(port)
        for port in settings[worker.FREE_PORTS]
        if is_number(port) and 1 <= port <= 65535 and port == int(port)
    )
    spec.reserved_ports[:] = [port for port in dict.fromkeys(free) if port not in (spec.port, jmx)]


def ports_of(spec: WorkerClusterSpec) -> frozenset[int]:
    """Returns the ports that a spec names."""
    return frozenset((spec.port, spec.metrics_port, spec.admin_port, *spec.reserved_ports)) - {0}


def routes_of(routes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the routes whose addresses are texts: no others are used."""
    return {host: address for host, address in routes.items() if isinstance(address, str)}


def settings_of(
    cluster: WorkerCluster, key: ObjectKey, broker: ObjectKey, hosts: Hosts, workers: Sequence[Workload] = ()
) -> Settings:
    """Returns the complete settings of a worker cluster: as they were sent, updated from its present spec."""
    spec = cluster.spec
    extra = dict(_extra(spec.extra.SerializeToString(deterministic=True)))
    settings = extra if spec.origin.api == API else _native(cluster) | extra
    settings |= {worker.BROKER_CLUSTER_KEY: broker.json, NODE_NAMES: nodes_of(cluster, hosts, workers), **key.json}
    for name, key_of_property in PROPERTIES.items():
        if (text := spec.properties.get(key_of_property, "")) and name in settings:
            settings[name] = int(text) if is_number(settings[name]) and text.isdecimal() else text
    settings[CLIENT_PORT] = spec.port or next((w.spec.worker.port for w in workers), REST_PORT)
    settings[JMX_PORT] = spec.metrics_port or settings[CLIENT_PORT]
    if spec.limits.memory_bytes:
        settings[XMX] = max(1, spec.limits.memory_bytes // MIB)
    if routes_of(settings.get(ROUTES, {})) != dict(spec.routes):
        settings[ROUTES] = dict(spec.routes)
    return settings


def nodes_of(cluster: WorkerCluster, hosts: Hosts, workers: Sequence[Workload] = ()) -> list[str]:
    """Returns the names of the nodes that have the cluster's workers, or will have them."""
    return [hosts.shown(node) for node in cluster.spec.nodes.names or dict.fromkeys(w.node for w in workers)]


def files_of(spec: WorkerClusterSpec) -> list[ObjectKey]:
    """Returns the keys of the files that a worker cluster names, as they were sent."""
    extra = _extra(spec.extra.SerializeToString(deterministic=True))
    return [key_of(key) for name in (worker.PLUGIN_KEYS, worker.SHARED_JAR_KEYS) for key in extra.get(name, ())]


def _native(cluster: WorkerCluster) -> Settings:
    """Returns the settings of a cluster created outside this API, except those derived from its nodes and ports."""
    spec = cluster.spec
    settings = {setting.key: default for setting in worker.WORKER if (default := default_of(setting)) is not None}
    settings[worker.GROUP_ID] = cluster.status.group_id
    for kind, what in zip(worker.TOPIC_KINDS, ("configs", "offsets", "status"), strict=True):
        settings[worker.topic_key(kind)] = f"{cluster.name}.connect-{what}"
        settings[worker.partitions_key(kind)] = USUAL_PARTITIONS.get(kind, 1)
    plugins = ((worker.PLUGIN_KEYS, spec.plugins), (worker.SHARED_JAR_KEYS, spec.libraries))
    settings |= {key: [_file_key(ref) for ref in refs] for key, refs in plugins}
    return settings | {worker.FREE_PORTS: list(spec.reserved_ports), "tags": dict(spec.labels)}


def _file_key(ref: PluginRef) -> dict[str, str]:
    return unshown_key(f"{ref.name}-{ref.version}").json


@lru_cache(maxsize=4096)
def _extra(message: bytes) -> Settings:
    """Returns the `extra` of a cluster's spec, cached since it is read often. Callers must not change it."""
    return _shown(value_of(Struct.FromString(message)))


def _shown(extra: Settings) -> Settings:
    """Removes values that an answer may not contain: a change outside this API may have put empty strings in."""
    return {name: value for name, value in extra.items() if next(empty_strings(value), None) is None}
