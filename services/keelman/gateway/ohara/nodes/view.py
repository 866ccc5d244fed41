"""Formats a node for this API's answers. Pure."""

from __future__ import annotations

from typing import Any

from keelman.api.node.v1 import node_pb2 as pb
from keelman.api.node.v1.node_pb2 import Node
from keelman.gateway.ohara.clusters.known_clusters import BROKER, SHABONDI, STREAM, WORKER, ZOOKEEPER, KnownClusters
from keelman.gateway.ohara.definitions.node import HOSTNAME, PASSWORD, PORT, SSH_PORT, USER
from keelman.gateway.ohara.state.hosts import NodeHost
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.resource import Json

SERVICES = {ZOOKEEPER: "zookeeper", BROKER: "broker", WORKER: "connect-worker", STREAM: "stream", SHABONDI: "shabondi"}
CONFIGURATOR, NO_GROUP = "configurator", "N/A"
COVERED = "******"
"""In place of a password."""
AGENT_USER = "keelman"
"""The user of a node that only its agent registered."""
_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def node_json(host: NodeHost, directory: KnownClusters, *, own: ObjectKey | None, cover: bool) -> Json:
    """Returns the answer. `own`: the key of this gateway if it runs on this node; `cover`: hides the password."""
    document: dict[str, Any] = {} if host.document is None else dict(host.document.content)
    password = COVERED if host.document is None or cover else host.document.secrets.get(PASSWORD, COVERED)
    modified = host.node.update_time.ToMilliseconds() if host.document is None else host.document.modified
    defaults = {PORT: SSH_PORT, USER: AGENT_USER, "tags": dict(host.node.spec.labels)}
    return {
        **defaults,
        **document,
        HOSTNAME: host.hostname,
        PASSWORD: password,
        "services": _services(host, directory, own),
        **_state(host.node),
        "lastModified": modified,
        "resources": resources(host.node),
    }


def _services(host: NodeHost, directory: KnownClusters, own: ObjectKey | None) -> list[Json]:
    services = [
        {
            "name": name,
            "clusterKeys": [
                cluster.key.json for cluster in directory.of(kind) if host.hostname in cluster.life.alive_nodes
            ],
        }
        for kind, name in SERVICES.items()
    ]
    return services if own is None else [*services, {"name": CONFIGURATOR, "clusterKeys": [own.json]}]


def _state(node: Node) -> Json:
    match node.status.state:
        case pb.NODE_STATE_ONLINE:
            return {"state": "AVAILABLE"}
        case pb.NODE_STATE_EXPECTED:
            reason = f"no agent has come from {node.name} yet: start one there"
        case pb.NODE_STATE_UNKNOWN:
            reason = "the state service has just restarted, and the node's agent has not connected yet"
        case _:
            reason = node.status.message or "the node's agent is not connected"
    return {"state": "UNAVAILABLE", "error": reason}


def resources(node: Node) -> list[Json]:
    """Returns processors and memory: 0 while unknown."""
    status, capacity = node.status, node.spec.capacity
    cpus, memory = capacity.cpus or float(status.cpus), capacity.memory_bytes or status.memory_bytes
    unit, size = next(((unit, size) for unit, size in _UNITS if memory >= size), ("bytes", 1))
    answer: list[Json] = [
        {"name": "CPU", "value": float(cpus), "unit": "core" if cpus == 1 else "cores"},
        {"name": "Memory", "value": memory / size, "unit": unit},
    ]
    if status.HasField("figures"):
        if status.cpus:
            answer[0]["used"] = _part(status.figures.cpus_used / status.cpus)
        if status.memory_bytes:
            answer[1]["used"] = _part(1 - status.figures.memory_available_bytes / status.memory_bytes)
    return answer


def _part(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), 4)
