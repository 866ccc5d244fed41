"""The model's values as messages of the wire and as rows of the database, and back."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from keelman.api.connect.v1 import broker_cluster_pb2, worker_cluster_pb2, worker_pb2
from keelman.api.event.v1 import event_pb2
from keelman.api.node.v1 import node_pb2, workload_pb2
from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    BrokerClusterStatus,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    ProcessState,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadKind,
    WorkloadSpec,
    WorkloadStatus,
)
from keelman.rpc.enums import word
from keelman.rpc.times import from_timestamp, to_timestamp
from keelman.state.database import micros, moment
from keelman.state.properties import group_of
from keelman.state.tables import BrokerClusterRow, NodeRow, WorkerClusterRow, WorkloadRow


def node_message(node: Node) -> node_pb2.Node:
    """A node."""
    return node_pb2.Node(
        name=node.name,
        uid=node.uid,
        create_time=to_timestamp(node.create_time),
        update_time=to_timestamp(node.update_time),
        status=node_pb2.NodeStatus(
            state=node_pb2.NodeState.Value(f"NODE_STATE_{node.state}"),
            agent_address=node.agent_address,
            cpus=node.cpus,
            memory_bytes=node.memory_bytes,
            version=node.version,
            message=node.message,
            heartbeat_time=to_timestamp(node.heartbeat_time),
        ),
    )


def broker_cluster_message(cluster: BrokerCluster) -> broker_cluster_pb2.BrokerCluster:
    """A broker cluster."""
    spec = broker_cluster_pb2.BrokerClusterSpec()
    match cluster.spec:
        case ManagedBrokers(nodes, properties):
            spec.managed.nodes.extend(nodes)
            spec.managed.properties.update(properties)
        case ExternalBrokers(bootstrap, properties):
            spec.external.bootstrap_servers = bootstrap
            spec.external.client_properties.update(properties)
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
            return ManagedBrokers(tuple(message.managed.nodes), dict(message.managed.properties))
        case "external":
            return ExternalBrokers(message.external.bootstrap_servers, dict(message.external.client_properties))
        case _:
            raise InvalidArgument.of("spec", "", "managed (nodes to run brokers on) or external (bootstrap_servers)")


def worker_cluster_message(cluster: WorkerCluster) -> worker_cluster_pb2.WorkerCluster:
    """A worker cluster."""
    spec = worker_cluster_pb2.WorkerClusterSpec(
        broker_cluster=cluster.spec.broker_cluster, properties=dict(cluster.spec.properties)
    )
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
        ),
    )


def worker_cluster_spec(message: worker_cluster_pb2.WorkerClusterSpec) -> WorkerClusterSpec:
    """What a user wants of a worker cluster; raises InvalidArgument when no placement is given."""
    properties = dict(message.properties)
    match message.WhichOneof("placement"):
        case "nodes":
            if not message.nodes.names:
                raise InvalidArgument.of("spec.nodes.names", "", "at least one node")
            return WorkerClusterSpec(message.broker_cluster, nodes=tuple(message.nodes.names), properties=properties)
        case "count":
            if message.count < 1:
                raise InvalidArgument.of("spec.count", message.count, "a whole number of at least 1")
            return WorkerClusterSpec(message.broker_cluster, count=message.count, properties=properties)
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
                )
            )
        case SparkSpec() as spark:
            spec.spark.CopyFrom(
                workload_pb2.SparkWorkload(
                    host=spark.host,
                    port=spark.port,
                    master=spark.master,
                    reports_bootstrap_servers=spark.reports_bootstrap_servers,
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
    )


def worker_message(workload: Workload, membership: worker_pb2.WorkerMembership | None) -> worker_pb2.Worker:
    """A worker: its workload as its user sees it."""
    return worker_pb2.Worker(
        name=workload.name.removeprefix("worker/"),
        worker_cluster=workload.cluster,
        node=workload.node,
        rest_url=f"http://{workload.address}",
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


def plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON values; times become microseconds."""
    made = dataclasses.asdict(value)
    return {k: micros(v) if hasattr(v, "tzinfo") else list(v) if isinstance(v, tuple) else v for k, v in made.items()}


def node_of(row: NodeRow) -> Node:
    """A node."""
    return Node(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        state=NodeState(row.state), agent_address=row.agent_address, cpus=row.cpus, memory_bytes=row.memory_bytes,
        version=row.version, message=row.message,
    )  # fmt: skip


def broker_cluster_of(row: BrokerClusterRow) -> BrokerCluster:
    """A broker cluster."""
    spec: BrokerClusterSpec
    if "nodes" in row.spec:
        spec = ManagedBrokers(tuple(row.spec["nodes"]), row.spec["properties"])
    else:
        spec = ExternalBrokers(**row.spec)
    status = BrokerClusterStatus(**row.status | {"state": ClusterState(row.status["state"])})
    return BrokerCluster(
        **_of_cluster(row), spec=spec, kafka_cluster_id=row.kafka_cluster_id, reachable=row.reachable, status=status
    )


def worker_cluster_of(row: WorkerClusterRow) -> WorkerCluster:
    """A worker cluster."""
    spec = WorkerClusterSpec(**row.spec | {"nodes": tuple(row.spec["nodes"])})
    status = WorkerClusterStatus(
        **row.status | {"state": ClusterState(row.status["state"]), "rest_urls": tuple(row.status["rest_urls"])}
    )
    return WorkerCluster(**_of_cluster(row), spec=spec, status=status)


def _of_cluster(row: BrokerClusterRow | WorkerClusterRow) -> dict[str, Any]:
    return {
        "name": row.name, "uid": row.uid, "create_time": moment(row.create_time),
        "update_time": moment(row.update_time), "generation": row.generation, "etag": str(row.revision),
        "goal": ClusterGoal(row.goal), "note": row.note,
    }  # fmt: skip


_SPECS: dict[WorkloadKind, type[WorkloadSpec]] = {
    WorkloadKind.BROKER: BrokerSpec,
    WorkloadKind.SPARK: SparkSpec,
    WorkloadKind.WORKER: WorkerSpec,
}


def workload_of(row: WorkloadRow) -> Workload:
    """A workload."""
    return Workload(
        name=row.name, uid=row.uid, node=row.node, generation=row.generation, goal=Goal(row.goal),
        spec=_SPECS[WorkloadKind(row.name.partition("/")[0])](**row.spec),
        status=None if row.status is None else _status(row.status), has_run=row.has_run,
        tried_ports=tuple(row.tried_ports),
    )  # fmt: skip


def _status(plain: dict[str, Any]) -> WorkloadStatus:
    times = {k: None if plain[k] is None else moment(plain[k]) for k in ("start_time", "observe_time")}
    return WorkloadStatus(**plain | times | {"state": ProcessState(plain["state"])})
