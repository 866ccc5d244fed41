"""Derives the state and run-time fields of a definition's connector in Ohara's form, from its
workers' reports. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import (
    CLUSTER_STATE_DEGRADED,
    CLUSTER_STATE_RUNNING,
    CLUSTER_STATE_STARTING,
)
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_ABSENT, ConnectorDefinition
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster

UNASSIGNED, RUNNING, PAUSED, FAILED = "UNASSIGNED", "RUNNING", "PAUSED", "FAILED"
STATES = {
    pb.CONNECTOR_STATE_UNASSIGNED: UNASSIGNED,
    pb.CONNECTOR_STATE_RUNNING: RUNNING,
    pb.CONNECTOR_STATE_PAUSED: PAUSED,
    pb.CONNECTOR_STATE_STOPPED: PAUSED,
    pb.CONNECTOR_STATE_FAILED: FAILED,
    pb.CONNECTOR_STATE_RESTARTING: UNASSIGNED,
}
"""Ohara's clients know only these states: Connect had no others when they were written."""
MIN_RUNNING = 2
"""A connector counts as RUNNING if it and at least one of its tasks run."""
_WANTED = (CLUSTER_STATE_STARTING, CLUSTER_STATE_RUNNING, CLUSTER_STATE_DEGRADED)


def is_wanted(cluster: WorkerCluster | None) -> bool:
    """Tells whether a worker cluster has the goal to run."""
    return cluster is not None and cluster.status.state in _WANTED


def answers(cluster: WorkerCluster | None) -> bool:
    """Tells whether a worker cluster has a worker that can answer."""
    return is_wanted(cluster) and cluster is not None and cluster.status.ready_workers > 0


def is_there(definition: ConnectorDefinition) -> bool:
    """Tells whether the worker cluster has the connector, as far as that is known."""
    status = definition.status
    if status.applied_goal in (DEFINITION_GOAL_ABSENT, 0):
        return False
    return status.HasField("connector") or not status.drifted


def life(
    definition: ConnectorDefinition, cluster: WorkerCluster | None, nodes: Mapping[str, str], *, query_time: int
) -> dict[str, Any]:
    """Returns the fields of an answer that are not settings. `nodes`: hostnames by the ids of workers."""
    status = definition.status
    is_to_be = definition.goal not in (DEFINITION_GOAL_ABSENT, 0)
    modified = {"lastModified": definition.update_time.ToMilliseconds()}
    if not answers(cluster):
        reason = "" if cluster is None else cluster.status.message
        down = f"no worker of its worker cluster can be reached{f': {reason}' if reason else ''}"
        return absent(down if is_to_be and is_wanted(cluster) else "") | modified
    if not is_to_be and not status.applying:
        return absent(status.message) | modified
    if status.HasField("connector") and (is_there(definition) or status.applying):
        shown = present(status.connector, nodes, applying=status.applying, query_time=query_time, error=status.message)
        return shown | modified
    if is_to_be and (status.applying or is_there(definition)):
        return absent(status.message) | {"state": UNASSIGNED} | modified
    return absent(status.message or "; ".join(status.drifts)) | modified


def absent(error: str = "") -> dict[str, Any]:
    """Returns the fields of a connector that its worker cluster does not have, or cannot answer about."""
    fields: dict[str, Any] = {"aliveNodes": [], "tasksStatus": [], "nodeMetrics": {}}
    return fields | ({"error": error} if error else {})


def present(
    connector: pb.Connector, nodes: Mapping[str, str], *, applying: bool, query_time: int, error: str = ""
) -> dict[str, Any]:
    """Returns the fields of a connector that its workers report. `nodes` are node names by the workers' ids; `applying`
    is set while it is being changed; `error` is shown if there is no trace."""
    statuses = [
        *(_status(task, nodes, coordinator=False) for task in connector.tasks),
        _status(connector, nodes, coordinator=True),
    ]
    alive = sorted({status["nodeName"] for status in statuses if status["state"] == RUNNING and "nodeName" in status})
    trace = next((status["error"] for status in statuses if "error" in status), error)
    fields = {
        "state": _summary([status["state"] for status in statuses], applying=applying),
        "aliveNodes": alive,
        "tasksStatus": statuses,
        "nodeMetrics": node_metrics(connector, nodes, query_time),
    }
    return fields | ({"error": trace} if trace else {})


def node_metrics(connector: pb.Connector, nodes: Mapping[str, str], query_time: int) -> dict[str, Any]:
    """Returns the connector's measured lag, under the node of the worker that has the connector."""
    node = _node(connector.worker_id, nodes)
    meters = []
    if connector.HasField("lag_records"):
        meters.append(_meter("lag", connector.lag_records, "records", "records that are left to copy", query_time))
    if connector.HasField("lag_bytes"):
        meters.append(_meter("lag.size", connector.lag_bytes, "bytes", "bytes that are left to copy", query_time))
    return {node: {"meters": meters}} if node and meters else {}


def _meter(name: str, value: int, unit: str, document: str, query_time: int) -> dict[str, Any]:
    return {"name": name, "value": float(value), "unit": unit, "document": document, "queryTime": query_time}


def _status(entry: Any, nodes: Mapping[str, str], *, coordinator: bool) -> dict[str, Any]:
    """Returns the status of a connector or of one of its tasks."""
    node = _node(entry.worker_id, nodes) or "unknown"  # Ohara's clients need the field
    status = {"state": STATES.get(entry.state, UNASSIGNED), "nodeName": node, "coordinator": coordinator}
    return status | ({"error": entry.trace} if entry.trace else {})


def _node(worker_id: str, nodes: Mapping[str, str]) -> str:
    return nodes.get(worker_id) or worker_id.rpartition(":")[0].strip("[]")


def _summary(states: list[str], *, applying: bool) -> str:
    if states.count(RUNNING) >= MIN_RUNNING:
        return RUNNING
    other = next((state for state in states if state != RUNNING), None)
    if other is not None:
        return other
    return UNASSIGNED if applying else FAILED
