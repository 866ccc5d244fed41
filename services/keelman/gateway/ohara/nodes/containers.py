"""`/v0/containers/{name}`: the processes of the clusters of a name, as containers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from starlette.responses import Response

from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.clusters.known_clusters import (
    KINDS,
    PLACED,
    WORKER,
    ZOOKEEPER,
    KnownClusters,
    OharaCluster,
    read_known,
)
from keelman.gateway.ohara.clusters.processes import is_wanted, present
from keelman.gateway.ohara.clusters.starting import default_image
from keelman.gateway.ohara.definitions.zookeeper import PORTS
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.call import OharaCall, ok
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.resource import Json

DOCKER = "DOCKER"
UNKNOWN_SIZE = -1
ID_LENGTH, SUFFIX_LENGTH = 64, 7
_STATES = {
    work.WORKLOAD_STATE_UNSPECIFIED: "CREATED",
    work.WORKLOAD_STATE_PENDING: "CREATED",
    work.WORKLOAD_STATE_PREPARING: "CREATED",
    work.WORKLOAD_STATE_STARTING: "RESTARTING",
    work.WORKLOAD_STATE_RUNNING: "RUNNING",
    work.WORKLOAD_STATE_STOPPING: "REMOVING",
    work.WORKLOAD_STATE_FAILED: "EXITED",
}
"""Docker's name for each state of a container."""


def container_endpoints(control: OharaControl) -> list[Endpoint]:
    """Returns the endpoints GET containers/{name} and container/{name}."""

    async def containers(call: OharaCall) -> Response:
        directory = await read_known(control, PLACED, ZOOKEEPER)
        key = ObjectKey(call.group, call.variables["name"])
        clusters = [directory.get(kind, key) for kind in KINDS]
        return ok(
            [group_json(cluster, directory) for cluster in clusters if cluster is not None and cluster.life.state]
        )

    return [Endpoint("GET", f"{word}/{{name}}", containers) for word in ("containers", "container")]


def group_json(cluster: OharaCluster, directory: KnownClusters) -> Json:
    """Returns a cluster with its containers. A zookeeper's containers have no process."""
    if cluster.kind == ZOOKEEPER:
        ports = sorted(cluster.settings[name] for name in PORTS)
        containers = [_container(cluster, node, node, ports, directory) for node in cluster.life.alive_nodes]
    else:
        containers = [
            _container(
                cluster,
                process.uid or process.name,
                directory.hosts.shown(process.node),
                _ports(cluster, process),
                directory,
            )
            | {"state": _STATES.get(process.status.state, "EXITED")}
            for process in processes_of(cluster)
        ]
    return {"clusterKey": cluster.key.json, "clusterType": cluster.kind, "containers": containers}


def processes_of(cluster: OharaCluster) -> list[Workload]:
    """Returns the present processes of a cluster, dead ones among them."""
    return present(cluster.processes, to_run=is_wanted(cluster.made.status.state))


def _container(cluster: OharaCluster, uid: str, node: str, ports: Iterable[int], directory: KnownClusters) -> Json:
    digest = hashlib.sha256(f"{cluster.kind}/{cluster.key}/{uid}".encode()).hexdigest()
    host = directory.hosts.get(node)
    address = (host.node.status.address if host is not None else "") or node
    return {
        "nodeName": node,
        "id": digest[:ID_LENGTH],
        "imageName": cluster.settings.get("imageName") or default_image(cluster.kind),
        "state": "RUNNING",
        "kind": DOCKER,
        "name": f"{cluster.key.group}-{cluster.key.name}-{cluster.kind}-{digest[:SUFFIX_LENGTH]}",
        "size": UNKNOWN_SIZE,
        "portMappings": [{"hostIp": address, "hostPort": port, "containerPort": port} for port in ports],
        "environments": {},
        "hostname": node,
    }


def _ports(cluster: OharaCluster, process: Workload) -> list[int]:
    """Returns the ports of a process, client ports first."""
    if cluster.kind == WORKER:
        worker = process.spec.worker
        ports = [worker.port, worker.metrics_port, worker.admin_port, *worker.reserved_ports]
    else:
        ports = [process.spec.broker.port, process.spec.broker.metrics_port]
    return [port for port in dict.fromkeys(ports) if port]
