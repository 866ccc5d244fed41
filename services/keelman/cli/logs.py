"""`keelman logs`: the logs of the workloads behind a resource, from their agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from keelman.api.node.v1.agent_service_pb2 import StreamLogsRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.kinds import Kind
from keelman.model.errors import NotFound
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.runtime.supervise import supervise


async def print_logs(gateway: Gateway, kind: Kind, resource: Any, *, follow: bool, tail: int) -> None:
    """Prints the last lines of each log, and with `follow` all new ones. With several, each line names its workload."""
    workloads = behind(kind, resource, await gateway.list(kinds.WORKLOADS))
    if not workloads:
        raise NotFound(f"no process runs for this {kind.singular}, so it has no log")
    nodes = {n.name: n.status.agent_address for n in await gateway.list(kinds.NODES)}

    about: dict[str, str] = {}
    if kind is kinds.CONNECTORS:
        about = {"worker_cluster": resource.worker_cluster, "connector": resource.name}

    async def one(workload: Any) -> None:
        prefix = f"{workload.name} | ".encode() if len(workloads) > 1 else b""
        async with channel(nodes[workload.node]) as link:
            stub: Any = AgentServiceStub(link)
            request = StreamLogsRequest(workload=workload.name, tail_lines=tail, follow=follow, **about)
            async for piece in translated_stream(stub.StreamLogs(request)):
                for line in piece.lines.splitlines(keepends=True):
                    sys.stdout.buffer.write(prefix + line)
                sys.stdout.buffer.flush()

    if follow:
        await supervise(*((lambda w=w: one(w)) for w in workloads))
    else:
        for workload in workloads:
            await one(workload)


def _slots_of(cluster: str, workloads: Sequence[Any]) -> list[Any]:
    """The Spark services that the cluster's workers use: slots write into their logs."""
    nodes = {w.node for w in workloads if w.name.startswith(f"worker/{cluster}/")}
    return [w for w in workloads if w.name.startswith("spark/") and w.node in nodes]


def behind(kind: Kind, resource: Any, workloads: Sequence[Any]) -> list[Any]:
    """The workloads whose logs tell about a resource."""

    def named(prefix: str) -> list[Any]:
        return [w for w in workloads if w.name == prefix or w.name.startswith(f"{prefix}/")]

    match kind:
        case kinds.BROKER_CLUSTERS:
            return named(f"broker/{resource.name}")
        case kinds.WORKER_CLUSTERS | kinds.WORKERS:
            return named(f"worker/{resource.name}")
        case kinds.CONNECTORS:
            return [*named(f"worker/{resource.worker_cluster}"), *_slots_of(resource.worker_cluster, workloads)]
        case kinds.COPY_RUNS:
            return _slots_of(resource.worker_cluster, workloads)
        case kinds.NODES:
            return [w for w in workloads if w.node == resource.name]
    return [w for w in workloads if w.name == resource.name]
