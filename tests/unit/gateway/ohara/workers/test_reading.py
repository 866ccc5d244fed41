"""Which connectors keep a worker cluster from being stopped or deleted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.connector_definition_pb2 import (
    DEFINITION_GOAL_RUNNING,
    DEFINITION_GOAL_STOPPED,
    ConnectorDefinition,
    ConnectorDefinitionStatus,
)
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_RUNNING, Connector
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterStatus
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.workers.reading import users_of

RUNS = ConnectorDefinitionStatus(connector=Connector(state=CONNECTOR_STATE_RUNNING))
DEFINITIONS = [
    ConnectorDefinition(name="idle", goal=DEFINITION_GOAL_STOPPED),
    ConnectorDefinition(name="runs", goal=DEFINITION_GOAL_RUNNING, status=RUNS),
]


@pytest.mark.parametrize(
    ("state", "ready", "running", "users"),
    [
        ("RUNNING", 1, True, ["runs"]),
        ("DEGRADED", 1, True, ["runs"]),
        ("DEGRADED", 0, True, []),  # its workers have failed: nothing runs, whatever was last reported
        ("STARTING", 0, True, []),
        ("DEGRADED", 0, False, ["idle", "runs"]),
        ("STOPPED", 0, False, ["idle", "runs"]),
    ],
)
async def test_connectors_run_while_a_worker_can_be_reached(
    state: str, ready: int, users: list[str], *, running: bool
) -> None:
    async def all_of(*_: Any, **__: Any) -> list[ConnectorDefinition]:
        return DEFINITIONS

    control: Any = SimpleNamespace(all=all_of, definitions=SimpleNamespace(ListConnectorDefinitions=None))
    status = WorkerClusterStatus(state=ClusterState.Value(f"CLUSTER_STATE_{state}"), ready_workers=ready)
    cluster: Any = SimpleNamespace(made=WorkerCluster(name="wk", status=status))
    actual_users = await users_of(control, cluster, running=running)
    assert actual_users == [ObjectKey("default", name) for name in users]
