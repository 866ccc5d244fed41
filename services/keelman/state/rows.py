"""Rows of the database to the model's values and back: nothing but their shape changes."""

from __future__ import annotations

import dataclasses
from typing import Any

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
from keelman.state.database import micros, moment
from keelman.state.tables import BrokerClusterRow, NodeRow, WorkerClusterRow, WorkloadRow


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
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        generation=row.generation, etag=str(row.revision), goal=ClusterGoal(row.goal), spec=spec,
        kafka_cluster_id=row.kafka_cluster_id, note=row.note, reachable=row.reachable, status=status,
    )  # fmt: skip


def worker_cluster_of(row: WorkerClusterRow) -> WorkerCluster:
    """A worker cluster."""
    spec = WorkerClusterSpec(**row.spec | {"nodes": tuple(row.spec["nodes"])})
    status = WorkerClusterStatus(
        **row.status | {"state": ClusterState(row.status["state"]), "rest_urls": tuple(row.status["rest_urls"])}
    )
    return WorkerCluster(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        generation=row.generation, etag=str(row.revision), goal=ClusterGoal(row.goal), spec=spec, note=row.note,
        status=status,
    )  # fmt: skip


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
