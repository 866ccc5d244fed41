"""Workloads: what the agents run."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column
from sqlalchemy.types import JSON
from sqlmodel import Field, SQLModel

from keelman.api.node.v1 import workload_pb2
from keelman.api.node.v1 import workload_service_pb2 as pb
from keelman.api.node.v1 import workload_service_pb2_grpc as grpc
from keelman.model.errors import InvalidArgument
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    PluginFile,
    ProcessState,
    ResourceLimits,
    SparkSpec,
    Trial,
    WorkerSpec,
    Workload,
    WorkloadKind,
    WorkloadSpec,
    WorkloadStatus,
)
from keelman.rpc.enums import word
from keelman.rpc.server import Context, Service
from keelman.rpc.times import from_timestamp, to_timestamp
from keelman.state.nouns.hidden import shown_spec
from keelman.state.nouns.limits import limits_message
from keelman.state.nouns.log_delivery import targets_message
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import big_column, json_column, moment, plain, plain_spec, read, read_spec
from keelman.state.nouns.serving import page_of
from keelman.state.snapshot import WORKLOAD

if TYPE_CHECKING:
    from keelman.state.store import Transaction

_SPECS: dict[WorkloadKind, type[WorkloadSpec]] = {
    WorkloadKind.BROKER: BrokerSpec,
    WorkloadKind.SPARK: SparkSpec,
    WorkloadKind.WORKER: WorkerSpec,
}


class WorkloadRow(SQLModel, table=True):
    """A workload, where it is placed, and what its agent last reported."""

    __tablename__ = "workload"
    name: str = Field(primary_key=True)
    uid: str
    node: str = Field(foreign_key="node.name", index=True)
    generation: int = Field(sa_column=big_column())
    goal: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    status: dict[str, Any] | None = Field(sa_column=Column(JSON(none_as_null=True), nullable=True))
    has_run: bool
    tried_ports: list[int] = Field(sa_column=json_column())
    limits: dict[str, Any] = Field(sa_column=json_column())
    force: bool
    trial: dict[str, Any] = Field(sa_column=json_column())


def to_row(workload: Workload) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": workload.name, "uid": workload.uid, "node": workload.node, "generation": workload.generation,
        "goal": str(workload.goal), "spec": plain_spec(workload.spec),
        "status": None if workload.status is None else plain(workload.status), "has_run": workload.has_run,
        "tried_ports": list(workload.tried_ports), "limits": plain(workload.limits), "force": workload.force,
        "trial": plain(workload.trial),
    }  # fmt: skip


def from_row(row: WorkloadRow) -> Workload:
    """The workload of a row."""
    return Workload(
        name=row.name, uid=row.uid, node=row.node, generation=row.generation, goal=Goal(row.goal),
        spec=read_spec(_SPECS[WorkloadKind(row.name.partition("/")[0])], row.spec),
        status=None if row.status is None else _status(row.status), has_run=row.has_run,
        tried_ports=tuple(row.tried_ports), limits=read(ResourceLimits, row.limits), force=row.force,
        trial=read(Trial, row.trial),
    )  # fmt: skip


def _status(stored: dict[str, Any]) -> WorkloadStatus:
    times = {k: None if stored[k] is None else moment(stored[k]) for k in ("start_time", "observe_time")}
    return WorkloadStatus(**stored | times | {"state": ProcessState(stored["state"])})


def status_message(status: WorkloadStatus) -> workload_pb2.WorkloadStatus:
    """What an agent saw."""
    return workload_pb2.WorkloadStatus(
        state=workload_pb2.WorkloadState.Value(f"WORKLOAD_STATE_{status.state}"),
        generation=status.generation,
        pid=status.pid or None,
        start_time=to_timestamp(status.start_time),
        restarts=status.restarts,
        exit_code=status.exit_code,
        message=status.message,
        reason=status.reason,
        observe_time=to_timestamp(status.observe_time),
        memory_bytes=status.memory_bytes,
        limited_by=status.limited_by,
    )


def status_of(message: workload_pb2.WorkloadStatus) -> WorkloadStatus:
    """What an agent reports; raises InvalidArgument for a state that has no meaning."""
    name = word(workload_pb2.WorkloadState, message.state)
    if name not in ProcessState.__members__:
        raise InvalidArgument.of("report.statuses.state", name, ", ".join(ProcessState))
    return WorkloadStatus(
        state=ProcessState(name),
        generation=message.generation,
        pid=message.pid,
        start_time=from_timestamp(message.start_time) if message.HasField("start_time") else None,
        restarts=message.restarts,
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        message=message.message,
        reason=message.reason,
        observe_time=from_timestamp(message.observe_time) if message.HasField("observe_time") else None,
        memory_bytes=message.memory_bytes,
        limited_by=message.limited_by,
    )


def spec_message(wanted: WorkloadSpec) -> workload_pb2.WorkloadSpec:
    """What an agent is to run, on the wire, complete."""
    spec = workload_pb2.WorkloadSpec()
    match wanted:
        case BrokerSpec() as broker:
            spec.broker.CopyFrom(
                workload_pb2.BrokerWorkload(
                    broker_cluster=broker.broker_cluster,
                    kafka_cluster_id=broker.kafka_cluster_id,
                    broker_id=broker.broker_id,
                    host=broker.host,
                    port=broker.port,
                    controller_port=broker.controller_port,
                    properties=dict(broker.properties),
                    controller=broker.controller,
                    voters=broker.voters,
                    replicas=broker.replicas,
                    heap_mb=broker.heap_mb,
                    routes=dict(broker.routes),
                )
            )
        case SparkSpec() as spark:
            spec.spark.CopyFrom(
                workload_pb2.SparkWorkload(
                    host=spark.host,
                    port=spark.port,
                    master=spark.master,
                    reports_bootstrap_servers=spark.reports_bootstrap_servers,
                    reports_client_properties=dict(spark.reports_client_properties),
                )
            )
        case WorkerSpec() as worker:
            spec.worker.CopyFrom(
                workload_pb2.WorkerWorkload(
                    worker_cluster=worker.worker_cluster,
                    host=worker.host,
                    port=worker.port,
                    properties=dict(worker.properties),
                    spark_address=worker.spark_address,
                    reports_bootstrap_servers=worker.reports_bootstrap_servers,
                    reports_client_properties=dict(worker.reports_client_properties),
                    metrics_port=worker.metrics_port,
                    reserved_ports=worker.reserved_ports,
                    admin_port=worker.admin_port,
                    https=worker.https,
                    plugins=[_file_message(file) for file in worker.plugins],
                    libraries=[_file_message(file) for file in worker.libraries],
                    kafka_connect=worker.kafka_connect,
                    routes=dict(worker.routes),
                    log_targets=targets_message(worker.log_targets),
                )
            )
    return spec


def _file_message(file: PluginFile) -> workload_pb2.PluginFile:
    return workload_pb2.PluginFile(**dataclasses.asdict(file))


def workload_message(workload: Workload) -> workload_pb2.Workload:
    """A workload as users and events see it: with its placement and, when there is one, its status."""
    return workload_pb2.Workload(
        name=workload.name,
        uid=workload.uid,
        node=workload.node,
        generation=workload.generation,
        goal=workload_pb2.WorkloadGoal.Value(f"WORKLOAD_GOAL_{workload.goal}"),
        spec=spec_message(shown_spec(workload.spec)),
        status=status_message(workload.status) if workload.status is not None else None,
        limits=limits_message(workload.limits),
        force=workload.force,
    )


def assignment_message(workload: Workload) -> workload_pb2.Workload:
    """A workload as its agent is to run it, with its secrets."""
    message = workload_message(dataclasses.replace(workload, status=None))
    message.spec.CopyFrom(spec_message(workload.spec))
    return message


NOUN = Noun(Workload, WorkloadRow, to_row, from_row, workload_message)


def save(tx: Transaction, workload: Workload) -> Workload:
    """Stores a new or changed workload; a new one gets a uid."""
    if not workload.uid:
        old = tx.snapshot.workloads.get(workload.name)
        workload = dataclasses.replace(workload, uid=str(uuid.uuid4()) if old is None else old.uid)
    return tx.put(workload)


@dataclass(frozen=True, slots=True)
class WorkloadApi(grpc.WorkloadServiceServicer):
    """Workloads."""

    parts: Parts

    async def ListWorkloads(self, request: pb.ListWorkloadsRequest, context: Context) -> pb.ListWorkloadsResponse:
        """A page of workloads."""
        snapshot = self.parts.store.snapshot
        node, cluster = request.node, request.worker_cluster
        names = [w.name for w in snapshot.workloads_on(node)] if node else snapshot.names(WORKLOAD)
        if cluster:
            names = sorted(w.name for w in snapshot.workloads_in(WorkloadKind.WORKER, cluster) if node in ("", w.node))
        part, token = page_of(names, snapshot.workloads, request)
        shown = [workload_message(self.parts.sessions.vital(w)) for w in part]
        return pb.ListWorkloadsResponse(workloads=shown, next_page_token=token)


def services(parts: Parts) -> list[Service]:
    """The gRPC services of workloads."""
    return [service("node", "WorkloadService", grpc.add_WorkloadServiceServicer_to_server, WorkloadApi(parts))]
