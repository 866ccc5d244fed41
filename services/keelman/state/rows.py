"""The model's values as the tables keep them, and back."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from pydantic import TypeAdapter

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    BrokerClusterStatus,
    BrokersSeen,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.node import Node, NodeSpec, NodeState
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    ProcessState,
    ResourceLimits,
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
        version=row.version, message=row.message, address=row.address, spec=_read(NodeSpec, row.spec),
        generation=row.generation, etag=str(row.revision),
    )  # fmt: skip


def broker_cluster_of(row: BrokerClusterRow) -> BrokerCluster:
    """A broker cluster."""
    kind: type[BrokerClusterSpec] = ManagedBrokers if "nodes" in row.spec else ExternalBrokers
    spec, status = _read(kind, row.spec), _read(BrokerClusterStatus, row.status)
    return BrokerCluster(
        **_of_cluster(row), spec=spec, kafka_cluster_id=row.kafka_cluster_id, reachable=row.reachable,
        seen=_read(BrokersSeen, row.seen), status=status,
    )  # fmt: skip


def worker_cluster_of(row: WorkerClusterRow) -> WorkerCluster:
    """A worker cluster."""
    spec, status = _read(WorkerClusterSpec, row.spec), _read(WorkerClusterStatus, row.status)
    return WorkerCluster(**_of_cluster(row), spec=spec, status=status, force=row.force)


def _of_cluster(row: BrokerClusterRow | WorkerClusterRow) -> dict[str, Any]:
    return {
        "name": row.name, "uid": row.uid, "create_time": moment(row.create_time),
        "update_time": moment(row.update_time), "generation": row.generation, "etag": str(row.revision),
        "goal": ClusterGoal(row.goal), "note": row.note,
    }  # fmt: skip


T = TypeVar("T")


def _read(kind: type[T], stored: Any) -> T:
    """A value of the model from the JSON that `plain` made of it; fields that came later have their defaults."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    found: T = _ADAPTERS[kind].validate_python(stored)
    return found


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


_SPECS: dict[WorkloadKind, type[WorkloadSpec]] = {
    WorkloadKind.BROKER: BrokerSpec,
    WorkloadKind.SPARK: SparkSpec,
    WorkloadKind.WORKER: WorkerSpec,
}


def workload_of(row: WorkloadRow) -> Workload:
    """A workload."""
    return Workload(
        name=row.name, uid=row.uid, node=row.node, generation=row.generation, goal=Goal(row.goal),
        spec=_read(_SPECS[WorkloadKind(row.name.partition("/")[0])], row.spec),
        status=None if row.status is None else _status(row.status), has_run=row.has_run,
        tried_ports=tuple(row.tried_ports), limits=_read(ResourceLimits, row.limits), force=row.force,
    )  # fmt: skip


def _status(plain: dict[str, Any]) -> WorkloadStatus:
    times = {k: None if plain[k] is None else moment(plain[k]) for k in ("start_time", "observe_time")}
    return WorkloadStatus(**plain | times | {"state": ProcessState(plain["state"])})
