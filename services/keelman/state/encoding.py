"""The model's values as messages of the wire, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from google.protobuf.json_format import MessageToDict

from keelman.api.connect.v1 import broker_cluster_pb2, origin_pb2, worker_cluster_pb2, worker_pb2
from keelman.api.event.v1 import event_pb2
from keelman.api.node.v1 import node_pb2, workload_pb2
from keelman.model.cluster import (
    Annotations,
    BrokerCluster,
    BrokerClusterSpec,
    ExternalBrokers,
    ManagedBrokers,
    Origin,
    Rollout,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeFigures, NodeSpec
from keelman.model.workload import (
    NO_LIMITS,
    BrokerSpec,
    ProcessState,
    ResourceLimits,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadStatus,
)
from keelman.rpc.enums import word
from keelman.rpc.times import from_timestamp, to_timestamp
from keelman.state.properties import group_of


def limits_message(limits: ResourceLimits) -> workload_pb2.ResourceLimits | None:
    """Limits; None where there is none."""
    if limits == NO_LIMITS:
        return None
    return workload_pb2.ResourceLimits(cpus=limits.cpus, memory_bytes=limits.memory_bytes)


def limits_of(message: workload_pb2.ResourceLimits) -> ResourceLimits:
    """Limits; those of an absent message are none."""
    return ResourceLimits(message.cpus, message.memory_bytes)


def annotate(
    spec: broker_cluster_pb2.BrokerClusterSpec | worker_cluster_pb2.WorkerClusterSpec, annotations: Annotations
) -> None:
    """Puts what users say of a cluster into its spec's message."""
    spec.description = annotations.description
    spec.labels.update(annotations.labels)
    if annotations.origin is not None:
        spec.origin.CopyFrom(origin_pb2.Origin(**dataclasses.asdict(annotations.origin)))
    if annotations.extra is not None:
        spec.extra.update(annotations.extra)


def annotations_of(
    spec: broker_cluster_pb2.BrokerClusterSpec | worker_cluster_pb2.WorkerClusterSpec,
) -> Annotations:
    """What users say of a cluster."""
    return Annotations(
        description=spec.description,
        labels=dict(spec.labels),
        origin=Origin(spec.origin.api, spec.origin.scope, spec.origin.key) if spec.HasField("origin") else None,
        extra=MessageToDict(spec.extra) if spec.HasField("extra") else None,
    )


def node_spec_message(spec: NodeSpec) -> node_pb2.NodeSpec:
    """What a user wants of a node, on the wire."""
    return node_pb2.NodeSpec(
        description=spec.description,
        labels=dict(spec.labels),
        capacity=limits_message(spec.capacity),
        cordoned=spec.cordoned,
        draining=spec.draining,
    )


def node_spec(message: node_pb2.NodeSpec) -> NodeSpec:
    """What a user wants of a node."""
    return NodeSpec(
        description=message.description,
        labels=dict(message.labels),
        capacity=limits_of(message.capacity),
        cordoned=message.cordoned,
        draining=message.draining,
    )


def figures_of(message: node_pb2.NodeFigures) -> NodeFigures:
    """What a heartbeat says of its host."""
    return NodeFigures(message.cpus_used, message.memory_available_bytes, message.disk_free_bytes, message.load)


def node_message(node: Node, pinned_workloads: Sequence[str] = ()) -> node_pb2.Node:
    """A node; `pinned_workloads` are those that keep a draining node from being empty."""
    return node_pb2.Node(
        name=node.name,
        uid=node.uid,
        create_time=to_timestamp(node.create_time),
        update_time=to_timestamp(node.update_time),
        spec=node_spec_message(node.spec),
        generation=node.generation,
        etag=node.etag,
        status=node_pb2.NodeStatus(
            state=node_pb2.NodeState.Value(f"NODE_STATE_{node.state}"),
            agent_address=node.agent_address,
            cpus=node.cpus,
            memory_bytes=node.memory_bytes,
            version=node.version,
            message=node.message,
            heartbeat_time=to_timestamp(node.heartbeat_time),
            address=node.host,
            figures=None if node.figures is None else node_pb2.NodeFigures(**dataclasses.asdict(node.figures)),
            pinned_workloads=pinned_workloads,
        ),
    )


def broker_cluster_message(cluster: BrokerCluster) -> broker_cluster_pb2.BrokerCluster:
    """A broker cluster."""
    spec = broker_cluster_pb2.BrokerClusterSpec()
    match cluster.spec:
        case ManagedBrokers(nodes, properties):
            spec.managed.nodes.extend(nodes)
            spec.managed.properties.update(properties)
            spec.managed.controllers, spec.managed.port = cluster.spec.controllers, cluster.spec.port
        case ExternalBrokers(bootstrap, properties):
            spec.external.bootstrap_servers = bootstrap
            spec.external.client_properties.update(properties)
    annotate(spec, cluster.spec.annotations)
    return broker_cluster_pb2.BrokerCluster(
        **_cluster_fields(cluster),
        spec=spec,
        status=broker_cluster_pb2.BrokerClusterStatus(
            state=broker_cluster_pb2.ClusterState.Value(f"CLUSTER_STATE_{cluster.status.state}"),
            message=cluster.status.message,
            bootstrap_servers=cluster.status.bootstrap_servers,
            kafka_cluster_id=cluster.kafka_cluster_id,
        ),
    )


def _cluster_fields(cluster: BrokerCluster | WorkerCluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "uid": cluster.uid,
        "create_time": to_timestamp(cluster.create_time),
        "update_time": to_timestamp(cluster.update_time),
        "generation": cluster.generation,
        "etag": cluster.etag,
    }


def broker_cluster_spec(message: broker_cluster_pb2.BrokerClusterSpec) -> BrokerClusterSpec:
    """What a user wants of a broker cluster; raises InvalidArgument when neither kind is given."""
    match message.WhichOneof("kind"):
        case "managed":
            managed = message.managed
            return ManagedBrokers(
                tuple(managed.nodes),
                dict(managed.properties),
                controllers=managed.controllers,
                port=managed.port,
                annotations=annotations_of(message),
            )
        case "external":
            return ExternalBrokers(
                message.external.bootstrap_servers,
                dict(message.external.client_properties),
                annotations=annotations_of(message),
            )
        case _:
            raise InvalidArgument.of("spec", "", "managed (nodes to run brokers on) or external (bootstrap_servers)")


def worker_cluster_message(cluster: WorkerCluster) -> worker_cluster_pb2.WorkerCluster:
    """A worker cluster."""
    wanted = cluster.spec
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
    )
    annotate(spec, wanted.annotations)
    if cluster.spec.nodes:
        spec.nodes.names.extend(cluster.spec.nodes)
    else:
        spec.count = cluster.spec.count
    return worker_cluster_pb2.WorkerCluster(
        **_cluster_fields(cluster),
        spec=spec,
        status=worker_cluster_pb2.WorkerClusterStatus(
            state=broker_cluster_pb2.ClusterState.Value(f"CLUSTER_STATE_{cluster.status.state}"),
            message=cluster.status.message,
            group_id=group_of(cluster.name, cluster.spec.properties),
            ready_workers=cluster.status.ready_workers,
            wanted_workers=cluster.spec.wanted_workers,
            rest_urls=cluster.status.rest_urls,
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


def worker_cluster_spec(message: worker_cluster_pb2.WorkerClusterSpec) -> WorkerClusterSpec:
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
        annotations=annotations_of(message),
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
        case _:
            raise InvalidArgument.of("spec.placement", "", "nodes (names of nodes) or count (a number of workers)")


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


def workload_message(workload: Workload) -> workload_pb2.Workload:
    """A workload with its placement and, when there is one, its status."""
    spec = workload_pb2.WorkloadSpec()
    match workload.spec:
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
                )
            )
    return workload_pb2.Workload(
        name=workload.name,
        uid=workload.uid,
        node=workload.node,
        generation=workload.generation,
        goal=workload_pb2.WorkloadGoal.Value(f"WORKLOAD_GOAL_{workload.goal}"),
        spec=spec,
        status=status_message(workload.status) if workload.status is not None else None,
        limits=limits_message(workload.limits),
        force=workload.force,
    )


def rest_url(workload: Workload) -> str:
    """Where a worker's REST API answers."""
    scheme = "https" if isinstance(workload.spec, WorkerSpec) and workload.spec.https else "http"
    return f"{scheme}://{workload.address}"


def worker_message(workload: Workload, membership: worker_pb2.WorkerMembership | None) -> worker_pb2.Worker:
    """A worker: its workload as its user sees it."""
    return worker_pb2.Worker(
        name=workload.name.removeprefix("worker/"),
        worker_cluster=workload.cluster,
        node=workload.node,
        rest_url=rest_url(workload),
        process=status_message(workload.status) if workload.status is not None else None,
        membership=membership,
    )


def event_bytes(
    kind: int, resource: Node | BrokerCluster | WorkerCluster | Workload, revision: int, time: datetime
) -> bytes:
    """An event as it stands in the outbox and in its topic."""
    event = event_pb2.Event(
        revision=revision, time=to_timestamp(time), type=event_pb2.EventType.ValueType(kind), name=resource.name
    )
    match resource:
        case Node():
            event.node.CopyFrom(node_message(resource))
        case BrokerCluster():
            event.broker_cluster.CopyFrom(broker_cluster_message(resource))
        case WorkerCluster():
            event.worker_cluster.CopyFrom(worker_cluster_message(resource))
        case Workload():
            event.workload.CopyFrom(workload_message(resource))
    return event.SerializeToString(deterministic=True)
