"""Worker clusters: workers that share a group."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from keelman.api.connect.v1 import worker_cluster_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as pb
from keelman.api.connect.v1 import worker_cluster_service_pb2_grpc as grpc
from keelman.connect.policy.installations import summary
from keelman.model.cluster import WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import InvalidArgument
from keelman.model.workload import WorkloadKind
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.rpc.server import Context
from keelman.state.autoscaling.decision import needed
from keelman.state.autoscaling.measuring import measured
from keelman.state.clusters import worker_clusters
from keelman.state.clusters.chosen_ports import with_worker_ports
from keelman.state.kafka.properties import group_of, notes_on
from keelman.state.nouns.parts import NounParts
from keelman.state.plugins.sets import plugin_fields
from keelman.state.reports.reports import judge
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.autoscale_wire import autoscale_message, autoscale_of, scaling_message
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.limits import limits_message
from keelman.state.resources.log_delivery import check_buckets, delivery_message, delivery_of, problem_messages
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, Remembered, get, list_page, writing
from keelman.state.resources.snapshot import WORKER_CLUSTER
from keelman.state.resources.transaction import Transaction
from keelman.state.topics.storage import storage_topics

Noted: TypeAlias = tuple[WorkerCluster, Sequence[str]]


def spec_message(stored_spec: WorkerClusterSpec) -> worker_cluster_pb2.WorkerClusterSpec:
    """Returns the message of a worker cluster's spec, complete."""
    spec = message_of(
        worker_cluster_pb2.WorkerClusterSpec,
        stored_spec,
        nodes=None,  # these three are one placement, below
        count=None,
        autoscale=None,
        limits=limits_message(stored_spec.limits),
        log_delivery=delivery_message(stored_spec.log_delivery),
        **annotated(stored_spec.annotations),
    )
    if stored_spec.nodes:
        spec.nodes.names.extend(stored_spec.nodes)
    elif stored_spec.autoscale is not None:
        spec.autoscale.CopyFrom(autoscale_message(stored_spec.autoscale))
    else:
        spec.count = stored_spec.count
    return spec


def spec_of(message: worker_cluster_pb2.WorkerClusterSpec) -> WorkerClusterSpec:
    """Returns the spec of a message; raises InvalidArgument when no placement is given."""
    spec = value_of(
        WorkerClusterSpec,
        message,
        nodes=(),
        count=0,
        autoscale=None,
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
    """Returns a worker cluster as users and events see it."""
    status = message_of(
        worker_cluster_pb2.WorkerClusterStatus,
        cluster.status,
        group_id=group_of(cluster.name, cluster.spec.properties),
        wanted_workers=cluster.wanted_workers,
        scaling=None if cluster.spec.autoscale is None else scaling_message(cluster.scaling),
    )
    spec = spec_message(shown_spec(cluster.spec))
    return message_of(worker_cluster_pb2.WorkerCluster, cluster, spec=spec, status=status)


NOUN = Noun(WorkerCluster, worker_cluster_message)


@dataclass(frozen=True, slots=True)
class WorkerClusterApi(NounApi[NounParts], grpc.WorkerClusterServiceServicer):
    """Worker clusters."""

    noun = WORKER_CLUSTER
    _messages: Remembered[WorkerCluster, worker_cluster_pb2.WorkerCluster] = dataclasses.field(
        default_factory=lambda: Remembered(worker_cluster_message)
    )
    GetWorkerCluster, ListWorkerClusters = get, list_page

    @writing()
    def CreateWorkerCluster(self, tx: Transaction, request: pb.CreateWorkerClusterRequest) -> Noted:
        """Creates a worker cluster, stopped."""
        spec = kept_spec(spec_of(request.spec), None)
        check_buckets("spec.log_delivery", spec.log_delivery, self.parts.buckets)
        if request.choose_ports:
            spec = with_worker_ports(spec, tx.snapshot, self.parts.chosen_ports)
        return _noted(worker_clusters.create(tx, request.name, spec), {})

    @writing()
    def UpdateWorkerCluster(self, tx: Transaction, request: pb.UpdateWorkerClusterRequest) -> Noted:
        """Changes the spec of a worker cluster."""

        def change(spec: WorkerClusterSpec) -> WorkerClusterSpec:
            new = kept_spec(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)
            if new.log_delivery != spec.log_delivery:
                check_buckets("spec.log_delivery", new.log_delivery, self.parts.buckets)
            return new

        before = tx.snapshot.worker_cluster(worker_clusters.own_name(tx, request.name))
        return _noted(worker_clusters.update(tx, request.name, request.etag, change), before.spec.properties)

    @writing()
    def DeleteWorkerCluster(self, tx: Transaction, request: pb.DeleteWorkerClusterRequest) -> WorkerCluster:
        """Begins to delete a worker cluster."""
        return worker_clusters.delete(
            tx, worker_clusters.own_name(tx, request.name), request.etag, only_unused=request.only_unused
        )

    @writing()
    def StartWorkerCluster(self, tx: Transaction, request: pb.StartWorkerClusterRequest) -> WorkerCluster:
        """Starts the workers."""
        return worker_clusters.start(tx, worker_clusters.own_name(tx, request.name), request.etag)

    @writing()
    def RestartWorkerCluster(self, tx: Transaction, request: pb.RestartWorkerClusterRequest) -> WorkerCluster:
        """Begins to replace the processes of all workers."""
        return worker_clusters.restart(tx, request.name, request.etag)

    @writing()
    def StopWorkerCluster(self, tx: Transaction, request: pb.StopWorkerClusterRequest) -> WorkerCluster:
        """Stops the workers."""
        return worker_clusters.stop(tx, worker_clusters.own_name(tx, request.name), request.etag, force=request.force)

    @writing()
    def ScaleWorkerCluster(self, tx: Transaction, request: pb.ScaleWorkerClusterRequest) -> WorkerCluster:
        """Sets the number of workers."""
        name = worker_clusters.own_name(tx, request.name)
        return worker_clusters.scale(tx, name, request.etag, request.workers)

    async def DescribeStorageTopics(
        self, request: pb.DescribeStorageTopicsRequest, context: Context
    ) -> pb.DescribeStorageTopicsResponse:
        """Queries the brokers."""
        return await storage_topics(request.name, self._snapshot)

    def _shown(self, worker_cluster: WorkerCluster, request: Any) -> worker_cluster_pb2.WorkerCluster:
        message = self._messages.copy(worker_cluster.name, worker_cluster)
        workers = self._snapshot.workloads_in(WorkloadKind.WORKER, worker_cluster.name)
        message.status.observed_generation = self.parts.planned.observed(worker_cluster)
        seen = measured(worker_cluster, self._snapshot, self.parts.reports.recent_usage)
        if seen.cpu_percent is not None:
            message.status.cpu_percent = round(seen.cpu_percent, 1)
            if (autoscale := worker_cluster.spec.autoscale) is not None:
                message.status.needed_workers = needed(autoscale, seen, seen.workers)
        if worker_cluster.spec.engine is WorkerEngine.KEELMAN:
            rules = {**worker_cluster.spec.properties, **self.parts.named_brokers.rules}
            message.status.connector_policy = summary(rules)
        message.status.log_problems.extend(problem_messages(*(worker.status for worker in workers)))
        judge(message.status, [m for m in map(self.parts.reports.membership, workers) if m is not None])
        return message

    def _fields(self, worker_cluster: WorkerCluster | Noted, tx: Transaction) -> dict[str, Any]:
        cluster, notes = worker_cluster if isinstance(worker_cluster, tuple) else (worker_cluster, None)
        fields = {WORKER_CLUSTER: worker_cluster_message(cluster)}
        return fields if notes is None else fields | {"notes": notes}


def _noted(cluster: WorkerCluster, had: Mapping[str, str]) -> Noted:
    """Returns a cluster with notes on its new properties."""
    changed = {key: value for key, value in cluster.spec.properties.items() if had.get(key) != value}
    return cluster, notes_on(cluster.spec.engine, changed)


API = WorkerClusterApi
