"""Where a cluster stands, from what its agents said of its processes."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.cluster import BrokerCluster, ClusterGoal, ClusterState, ManagedBrokers
from keelman.model.node import Node, NodeState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, Workload, WorkloadStatus
from keelman.state.planning.status import broker_cluster_status
from keelman.state.snapshot import Snapshot

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {name: Node(name, name, TIME, TIME, NodeState.ONLINE, f"{name}:1") for name in ("n1", "n2")}
CLUSTER = BrokerCluster("b", "b", TIME, TIME, 1, "", ClusterGoal.STOPPED, ManagedBrokers(("n1",)))
STAYS = Workload(
    "broker/b/0", "n1", 2, Goal.STOPPED, BrokerSpec("b", "id", 0, "h", 1, 2, {}),
    status=WorkloadStatus(ProcessState.STOPPED, 2),
)  # fmt: skip
LEAVES = dataclasses.replace(STAYS, name="broker/b/1", node="n2", goal=Goal.REMOVED)


@pytest.mark.parametrize(
    ("state", "generation", "found"),
    [
        (ProcessState.RUNNING, 1, ClusterState.STOPPING),
        (ProcessState.STOPPING, 2, ClusterState.STOPPING),
        (ProcessState.STOPPED, 2, ClusterState.STOPPED),
        (ProcessState.REMOVED, 2, ClusterState.STOPPED),
    ],
)
def test_a_cluster_that_has_stopped_stays_so_while_a_broker_is_removed(state, generation, found) -> None:
    leaves = dataclasses.replace(LEAVES, status=WorkloadStatus(state, generation))
    snapshot = Snapshot(NODES, {"b": CLUSTER}, {}, {w.name: w for w in (STAYS, leaves)})
    assert broker_cluster_status(CLUSTER, snapshot).state is found
