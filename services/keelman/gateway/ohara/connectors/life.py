"""How a connector of a definition lives, as Ohara answers it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1.broker_cluster_pb2 import (
    CLUSTER_STATE_DEGRADED,
    CLUSTER_STATE_RUNNING,
    CLUSTER_STATE_STARTING,
)
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_ABSENT, ConnectorDefinition
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.gateway.ohara.connectors.status import UNASSIGNED, absent, present

_WANTED = (CLUSTER_STATE_STARTING, CLUSTER_STATE_RUNNING, CLUSTER_STATE_DEGRADED)


def is_wanted(cluster: WorkerCluster | None) -> bool:
    """Whether a worker cluster is asked to run."""
    return cluster is not None and cluster.status.state in _WANTED


def answers(cluster: WorkerCluster | None) -> bool:
    """Whether a worker of it can be asked."""
    return is_wanted(cluster) and cluster is not None and cluster.status.ready_workers > 0


def is_there(definition: ConnectorDefinition) -> bool:
    """Whether its worker cluster has the connector, as far as that is known."""
    status = definition.status
    if status.applied_goal in (DEFINITION_GOAL_ABSENT, 0):
        return False
    return status.HasField("connector") or not status.drifted


def life(
    definition: ConnectorDefinition, cluster: WorkerCluster | None, nodes: Mapping[str, str], *, query_time: int
) -> dict[str, Any]:
    """The fields that answers have beside settings. `nodes`: hostnames by the ids of workers."""
    status = definition.status
    is_to_be = definition.goal not in (DEFINITION_GOAL_ABSENT, 0)
    modified = {"lastModified": definition.update_time.ToMilliseconds()}
    if not answers(cluster):
        why = "" if cluster is None else cluster.status.message
        down = f"no worker of its worker cluster can be reached{f': {why}' if why else ''}"
        return absent(down if is_to_be and is_wanted(cluster) else "") | modified
    if not is_to_be and not status.applying:
        return absent(status.message) | modified
    if status.HasField("connector") and (is_there(definition) or status.applying):
        shown = present(status.connector, nodes, applying=status.applying, query_time=query_time, error=status.message)
        return shown | modified
    if is_to_be and (status.applying or is_there(definition)):
        return absent(status.message) | {"state": UNASSIGNED} | modified
    return absent(status.message or "; ".join(status.drifts)) | modified
