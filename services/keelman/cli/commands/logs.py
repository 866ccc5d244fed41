"""`keelman logs`: the logs of the workloads behind a resource, from their agents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from keelman.api.node.v1.agent_service_pb2 import StreamLogsRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.kinds import Kind, kind_of
from keelman.cli.options import Cluster, Name, command_group, kind_word
from keelman.model.errors import NotFound
from keelman.model.workload import spark_name
from keelman.rpc.errors import translated_stream
from keelman.runtime.supervise import supervise

app = command_group()


@app.command()
def logs(
    kind: Annotated[str, kind_word("logs")],
    name: Name,
    *,
    cluster: Cluster = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Keep printing new lines.")] = False,
    tail: Annotated[
        int, typer.Option("--tail", metavar="LINES", help="Begin this many lines from the end.", min=1)
    ] = 100,
    target: GatewayTarget,
) -> int:
    """Show the logs of a resource's processes."""
    noun = kind_of(kind, "logs", cluster=cluster)

    async def body(client: Gateway) -> None:
        resource = await client.get(noun, name, cluster=cluster)
        workloads = behind(noun, resource, await client.list(kinds.WORKLOADS))
        if not workloads:
            raise NotFound(f"no process runs for this {noun.singular}, so it has no log")
        about: dict[str, str] = {}
        if noun is kinds.CONNECTORS:
            about = {"worker_cluster": resource.worker_cluster, "connector": resource.name}

        async def print_log(workload: Any) -> None:
            prefix = f"{workload.name} | ".encode() if len(workloads) > 1 else b""
            stub: Any = AgentServiceStub(client.link)
            request = StreamLogsRequest(workload=workload.name, tail_lines=tail, follow=follow, **about)
            async for piece in translated_stream(stub.StreamLogs(request)):
                for line in piece.lines.splitlines(keepends=True):
                    sys.stdout.buffer.write(prefix + line)
                sys.stdout.buffer.flush()

        if follow:
            await supervise(*(partial(print_log, w) for w in workloads))
        else:
            for workload in workloads:
                await print_log(workload)

    return target.run(body)


def _slots_of(cluster: str, workloads: Sequence[Any]) -> list[Any]:
    """The Spark services that the cluster's workers use, or the drivers of their Spark cluster: slots on their hosts
    write into their logs."""
    workers = [w for w in workloads if w.name.startswith(f"worker/{cluster}/")]
    clusters = {w.spec.worker.spark_cluster for w in workers} - {""}
    names = {spark_name(w.node, w.spec.worker.tenant) for w in workers if not w.spec.worker.spark_cluster}
    return [w for w in workloads if w.name in names or w.spec.spark.cluster in clusters]


def behind(kind: Kind, resource: Any, workloads: Sequence[Any]) -> list[Any]:
    """The workloads whose logs are about a resource."""

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
