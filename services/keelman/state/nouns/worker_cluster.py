"""Worker clusters: workers that share a group."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field

from keelman.api.connect.v1 import broker_cluster_pb2, worker_cluster_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as pb
from keelman.api.connect.v1 import worker_cluster_service_pb2_grpc as grpc
from keelman.model.autoscale import Scaling
from keelman.model.cluster import (
    ClusterGoal,
    Rollout,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.names import MAX_NAMED
from keelman.model.plugin_set import PluginHistory
from keelman.model.workload import WorkloadKind
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.state.autoscaling.measuring import measured
from keelman.state.autoscaling.wire import autoscale_message, autoscale_of, scaling_message
from keelman.state.nouns.checks import check_etag, check_free
from keelman.state.nouns.chosen_ports import with_worker_ports
from keelman.state.nouns.clusters import (
    ClusterColumns,
    annotate,
    annotations_of,
    check_not_deleted,
    cluster_fields,
    cluster_message,
    cluster_row,
    saved,
    with_goal,
)
from keelman.state.nouns.hidden import kept_spec, shown_spec
from keelman.state.nouns.kafka_names import check_own_names
from keelman.state.nouns.limits import limits_message, limits_of
from keelman.state.nouns.log_delivery import check_buckets, delivery_message, delivery_of
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.plugin_sets import check_engine, plugin_fields, put_plugins, resolved
from keelman.state.nouns.rows import big_column, json_column, moment, plain, read, read_spec
from keelman.state.nouns.serving import Remembered, labelled_page, verb, written
from keelman.state.nouns.worker_cluster_checks import check, check_change
from keelman.state.planning.rollout import restarted, updated
from keelman.state.properties import group_of, notes_on
from keelman.state.reports import judge
from keelman.state.snapshot import DEDICATED_CONNECTOR, WORKER_CLUSTER

if TYPE_CHECKING:
    from keelman.state.store import Transaction

M = TypeVar("M", bound=Message)
Noted: TypeAlias = pb.CreateWorkerClusterRequest | pb.UpdateWorkerClusterRequest


class WorkerClusterRow(ClusterColumns, table=True):
    """A worker cluster; `spec` and `status` are JSON."""

    __tablename__ = "worker_cluster"
    broker_cluster: str = Field(foreign_key="broker_cluster.name", index=True)
    force: bool
    process_generation: int = Field(sa_column=big_column())
    restart: int = Field(sa_column=big_column())
    plugin_history: dict[str, Any] = Field(sa_column=json_column())
    scaling: dict[str, Any] = Field(sa_column=json_column())


def to_row(cluster: WorkerCluster) -> dict[str, Any]:
    """The values of its row."""
    return cluster_row(cluster) | {
        "broker_cluster": cluster.spec.broker_cluster, "force": cluster.force,
        "process_generation": cluster.process_generation, "restart": cluster.restart,
        "plugin_history": plain(cluster.plugin_history), "scaling": plain(cluster.scaling),
    }  # fmt: skip


def from_row(row: WorkerClusterRow) -> WorkerCluster:
    """The worker cluster of a row."""
    spec, status = read_spec(WorkerClusterSpec, row.spec), read(WorkerClusterStatus, row.status)
    return WorkerCluster(
        **cluster_fields(row), spec=spec, status=status, force=row.force, process_generation=row.process_generation,
        restart=row.restart, plugin_history=read(PluginHistory, row.plugin_history),
        scaling=_scaling(row.scaling),
    )  # fmt: skip


def _scaling(stored: dict[str, Any]) -> Scaling:
    time = stored.get("time")
    made = read(Scaling, {**stored, "time": None})
    return made if time is None else dataclasses.replace(made, time=moment(time))


def spec_message(wanted: WorkerClusterSpec) -> worker_cluster_pb2.WorkerClusterSpec:
    """What a user wants of a worker cluster, on the wire, complete."""
    spec = worker_cluster_pb2.WorkerClusterSpec(
        broker_cluster=wanted.broker_cluster,
        properties=dict(wanted.properties),
        node_selector=dict(wanted.node_selector),
        port=wanted.port,
        metrics_port=wanted.metrics_port,
        admin_port=wanted.admin_port,
        reserved_ports=wanted.reserved_ports,
        https=wanted.https,
        shared_offset_topic=wanted.shared_offset_topic,
        limits=limits_message(wanted.limits),
        routes=dict(wanted.routes),
        log_delivery=delivery_message(wanted.log_delivery),
    )
    annotate(spec, wanted.annotations)
    put_plugins(spec, wanted)
    if wanted.nodes:
        spec.nodes.names.extend(wanted.nodes)
    elif wanted.autoscale is not None:
        spec.autoscale.CopyFrom(autoscale_message(wanted.autoscale))
    else:
        spec.count = wanted.count
    return spec


def spec_of(message: worker_cluster_pb2.WorkerClusterSpec) -> WorkerClusterSpec:
    """What a user wants of a worker cluster; raises InvalidArgument when no placement is given."""
    spec = WorkerClusterSpec(
        broker_cluster=message.broker_cluster,
        properties=dict(message.properties),
        node_selector=dict(message.node_selector),
        port=message.port,
        metrics_port=message.metrics_port,
        admin_port=message.admin_port,
        reserved_ports=tuple(message.reserved_ports),
        https=message.https,
        shared_offset_topic=message.shared_offset_topic,
        limits=limits_of(message.limits),
        routes=dict(message.routes),
        log_delivery=delivery_of(message.log_delivery),
        annotations=annotations_of(message),
        **plugin_fields(message),
    )
    match message.WhichOneof("placement"):
        case "nodes":
            if not message.nodes.names:
                raise InvalidArgument.of("spec.nodes.names", "", "at least one node")
            return dataclasses.replace(spec, nodes=tuple(message.nodes.names))
        case "count":
            if message.count < 1:
                raise InvalidArgument.of("spec.count", message.count, "a whole number of at least 1")
            return dataclasses.replace(spec, count=message.count)
        case "autoscale":
            return dataclasses.replace(spec, autoscale=autoscale_of(message.autoscale))
        case _:
            legal = "nodes (names of nodes), count (a number of workers) or autoscale (bounds of that number)"
            raise InvalidArgument.of("spec.placement", "", legal)


def worker_cluster_message(cluster: WorkerCluster) -> worker_cluster_pb2.WorkerCluster:
    """A worker cluster as users and events see it."""
    return worker_cluster_pb2.WorkerCluster(
        **cluster_message(cluster),
        spec=spec_message(shown_spec(cluster.spec)),
        status=worker_cluster_pb2.WorkerClusterStatus(
            state=broker_cluster_pb2.ClusterState.Value(f"CLUSTER_STATE_{cluster.status.state}"),
            message=cluster.status.message,
            group_id=group_of(cluster.name, cluster.spec.properties),
            ready_workers=cluster.status.ready_workers,
            wanted_workers=cluster.wanted_workers,
            rest_urls=cluster.status.rest_urls,
            stuck=cluster.status.stuck,
            leaving_workers=cluster.status.leaving_workers,
            scaling=None if cluster.spec.autoscale is None else scaling_message(cluster.scaling),
            rollout=None if cluster.status.rollout is None else _rollout_message(cluster.status.rollout),
        ),
    )


def _rollout_message(rollout: Rollout) -> worker_cluster_pb2.Rollout:
    return worker_cluster_pb2.Rollout(
        state=worker_cluster_pb2.RolloutState.Value(f"ROLLOUT_STATE_{rollout.state}"),
        updated_workers=rollout.updated_workers,
        workers=rollout.workers,
        worker=rollout.worker,
        message=rollout.message,
    )


NOUN = Noun(WorkerCluster, WorkerClusterRow, to_row, from_row, worker_cluster_message)


def create(tx: Transaction, name: str, spec: WorkerClusterSpec) -> WorkerCluster:
    """A new worker cluster, stopped."""
    check_free("worker cluster", name, tx.snapshot.worker_clusters)
    spec = resolved(spec, tx.snapshot)
    check(name, spec, tx.snapshot)
    made = WorkerCluster(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=ClusterGoal.STOPPED, spec=spec)
    return saved(tx, made)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[WorkerClusterSpec], WorkerClusterSpec]
) -> WorkerCluster:
    """The worker cluster with the spec that `change` makes of its present one."""
    cluster = _found(tx, name, etag)
    check_not_deleted(cluster)
    spec = resolved(change(cluster.spec), tx.snapshot)
    if spec == cluster.spec:
        return cluster
    check_change(cluster, spec)
    check_engine(cluster, spec)
    check(name, spec, tx.snapshot)
    return saved(tx, updated(cluster, spec))


def restart(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Asks for new processes of all workers, one after the other."""
    cluster = _found(tx, name, etag)
    check_not_deleted(cluster)
    if cluster.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(f"worker cluster {name!r} is {cluster.status.state}: start it", reason="NOT_RUNNING")
    return saved(tx, restarted(cluster))


def delete(tx: Transaction, name: str, etag: str, *, only_unused: bool = False) -> WorkerCluster:
    """Asks for the end of a worker cluster, `only_unused` of one that no definition names; its topics stay."""
    cluster = _found(tx, name, etag)
    if only_unused and (users := ", ".join(sorted(tx.snapshot.definitions_on(name))[:MAX_NAMED])):
        text = f"worker cluster {name!r} is used by connector definitions {users}: delete these first"
        raise FailedPrecondition(text, reason="IN_USE", metadata={"connector_definitions": users})
    return with_goal(tx, cluster, ClusterGoal.DELETED)


def start(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Asks the workers to run."""
    cluster = _found(tx, name, etag)
    check_not_deleted(cluster)
    brokers = tx.snapshot.broker_clusters[cluster.spec.broker_cluster]
    if brokers.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"broker cluster {brokers.name!r} of worker cluster {name!r} is {brokers.status.state}: start it first",
            reason="BROKERS_STOPPED",
            metadata={"broker_cluster": brokers.name},
        )
    if cluster.goal is not ClusterGoal.RUNNING:
        check_own_names(name, cluster.spec, tx.snapshot)  # that two are one Kafka may be known only since then
    return with_goal(tx, cluster, ClusterGoal.RUNNING)


def stop(tx: Transaction, name: str, etag: str, *, force: bool = False) -> WorkerCluster:
    """Asks the workers to stop, or has them killed."""
    cluster = _found(tx, name, etag)
    check_not_deleted(cluster)
    if force and not cluster.force:
        cluster = dataclasses.replace(cluster, goal=ClusterGoal.STOPPED, force=True, note="")
        return saved(tx, dataclasses.replace(cluster, generation=cluster.generation + 1))
    return with_goal(tx, cluster, ClusterGoal.STOPPED)


def own_name(tx: Transaction, name: str) -> str:
    """The name of a cluster that users change by itself. Raises FailedPrecondition (OWNED) for that of a dedicated
    connector, which is changed and deleted with it."""
    if name in tx.snapshot.dedicated_connectors and name in tx.snapshot.worker_clusters:
        raise FailedPrecondition(
            f"worker cluster {name!r} is that of dedicated connector {name!r}: change or delete that",
            reason="OWNED",
            metadata={"kind": DEDICATED_CONNECTOR, "name": name},
        )
    return name


def _found(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    cluster = tx.snapshot.worker_cluster(name)
    check_etag(name, etag, cluster.etag)
    return cluster


@dataclass(frozen=True, slots=True)
class WorkerClusterApi(grpc.WorkerClusterServiceServicer):
    """Worker clusters."""

    parts: Parts
    _messages: Remembered[WorkerCluster, worker_cluster_pb2.WorkerCluster] = dataclasses.field(
        default_factory=lambda: Remembered(worker_cluster_message)
    )

    async def GetWorkerCluster(
        self, request: pb.GetWorkerClusterRequest, context: Context
    ) -> pb.GetWorkerClusterResponse:
        """One worker cluster."""
        cluster = self.parts.store.snapshot.worker_cluster(request.name)
        return pb.GetWorkerClusterResponse(worker_cluster=self._judged(cluster))

    async def ListWorkerClusters(
        self, request: pb.ListWorkerClustersRequest, context: Context
    ) -> pb.ListWorkerClustersResponse:
        """A page of worker clusters."""
        part, token = labelled_page(
            self.parts.store.snapshot, WORKER_CLUSTER, request, lambda c: c.spec.annotations.labels
        )
        return pb.ListWorkerClustersResponse(worker_clusters=[self._judged(c) for c in part], next_page_token=token)

    async def CreateWorkerCluster(
        self, request: pb.CreateWorkerClusterRequest, context: Context
    ) -> pb.CreateWorkerClusterResponse:
        """Creates a worker cluster, stopped."""

        def work(tx: Transaction) -> WorkerCluster:
            spec = kept_spec(spec_of(request.spec), None)
            check_buckets("spec.log_delivery", spec.log_delivery, self.parts.buckets)
            if request.choose_ports:
                spec = with_worker_ports(spec, tx.snapshot, self.parts.chosen_ports)
            return create(tx, request.name, spec)

        return await self._noted(request, pb.CreateWorkerClusterResponse, work)

    async def UpdateWorkerCluster(
        self, request: pb.UpdateWorkerClusterRequest, context: Context
    ) -> pb.UpdateWorkerClusterResponse:
        """Changes the spec of a worker cluster."""

        def change(spec: WorkerClusterSpec) -> WorkerClusterSpec:
            new = kept_spec(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)
            if new.log_delivery != spec.log_delivery:
                check_buckets("spec.log_delivery", new.log_delivery, self.parts.buckets)
            return new

        return await self._noted(
            request,
            pb.UpdateWorkerClusterResponse,
            lambda tx: update(tx, own_name(tx, request.name), request.etag, change),
        )

    DeleteWorkerCluster = verb(
        pb.DeleteWorkerClusterRequest,
        pb.DeleteWorkerClusterResponse,
        lambda tx, r: delete(tx, own_name(tx, r.name), r.etag, only_unused=r.only_unused),
    )
    StartWorkerCluster = verb(
        pb.StartWorkerClusterRequest,
        pb.StartWorkerClusterResponse,
        lambda tx, r: start(tx, own_name(tx, r.name), r.etag),
    )
    RestartWorkerCluster = verb(
        pb.RestartWorkerClusterRequest, pb.RestartWorkerClusterResponse, lambda tx, r: restart(tx, r.name, r.etag)
    )
    StopWorkerCluster = verb(
        pb.StopWorkerClusterRequest,
        pb.StopWorkerClusterResponse,
        lambda tx, r: stop(tx, own_name(tx, r.name), r.etag, force=r.force),
    )

    def _judged(self, cluster: WorkerCluster) -> worker_cluster_pb2.WorkerCluster:
        message = self._messages.copy(cluster.name, cluster)
        workers = self.parts.store.snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)
        message.status.observed_generation = self.parts.planned.observed(cluster)
        seen = measured(workers, self.parts.reports.recent_usage, cluster.spec.limits)
        if seen.cpu_percent is not None:
            message.status.cpu_percent = round(seen.cpu_percent, 1)
        judge(message.status, [m for m in map(self.parts.reports.membership, workers) if m is not None])
        return message

    async def _noted(self, request: Noted, answer: type[M], work: Callable[[Transaction], WorkerCluster]) -> M:
        def fields(tx: Transaction) -> dict[str, Any]:
            before = tx.snapshot.worker_clusters.get(request.name)
            had = {} if before is None else before.spec.properties
            made = work(tx)
            given = {key: value for key, value in made.spec.properties.items() if had.get(key) != value}
            return self.fields(made) | {"notes": notes_on(made.spec.engine, given)}

        return await written(self.parts.store, request, answer, fields)

    def fields(self, made: WorkerCluster) -> dict[str, Any]:
        """A cluster as it was written."""
        return {"worker_cluster": worker_cluster_message(made)}


def services(parts: Parts) -> list[Service]:
    """The gRPC services of worker clusters."""
    add = grpc.add_WorkerClusterServiceServicer_to_server
    return [service("connect", "WorkerClusterService", add, WorkerClusterApi(parts))]
