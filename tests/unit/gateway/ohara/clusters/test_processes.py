"""The states of clusters, derived from their processes."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1 import broker_cluster_pb2 as clusters
from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.node_pb2 import NODE_STATE_OFFLINE, Node, NodeStatus
from keelman.gateway.ohara.clusters.processes import Life, is_begun, life_of
from keelman.gateway.ohara.state.hosts import Hosts

STATES = {name.removeprefix("CLUSTER_STATE_"): number for name, number in clusters.ClusterState.items()}


def process(node: str, state: str, *, goal: str = "RUNNING", **status: Any) -> work.Workload:
    return work.Workload(
        name=f"worker/demo/{node}",
        node=node,
        generation=2,
        goal=work.WorkloadGoal.Value(f"WORKLOAD_GOAL_{goal}"),
        status=work.WorkloadStatus(
            state=work.WorkloadState.Value(f"WORKLOAD_STATE_{state}"), **{"generation": 2, **status}
        ),
    )


@pytest.mark.parametrize(
    ("state", "processes", "life"),
    [
        ("STOPPED", [], Life()),
        ("STOPPED", [process("n0", "STOPPED", goal="STOPPED")], Life()),
        ("STARTING", [], Life("PENDING", (), "why")),
        ("STARTING", [process("n0", "PENDING")], Life("PENDING", (), "why")),
        ("STARTING", [process("n0", "STARTING"), process("n1", "RUNNING")], Life("PENDING", ("n1",), "why")),
        ("STARTING", [process("n0", "RUNNING")], Life("RUNNING", ("n0",))),
        ("STARTING", [process("n0", "STOPPED", generation=1)], Life("PENDING", (), "why")),
        ("RUNNING", [process("n1", "RUNNING"), process("n0", "RUNNING")], Life("RUNNING", ("n0", "n1"))),
        (
            "DEGRADED",
            [process("n0", "RUNNING"), process("n1", "FAILED", message="no Java")],
            Life("RUNNING", ("n0",), "n1: no Java"),
        ),
        ("DEGRADED", [process("n0", "FAILED", reason="EXITED")], Life("FAILED", (), "n0: EXITED")),
        (
            "STARTING",
            [process("n0", "STARTING", restarts=1, exit_code=3)],
            Life("FAILED", (), "n0: the process ended with 3"),
        ),
        ("DEGRADED", [process("off", "RUNNING")], Life("FAILED", (), "off: the node is offline")),
        ("RUNNING", [process("n0", "RUNNING"), process("n1", "RUNNING", goal="REMOVED")], Life("RUNNING", ("n0",))),
        ("STOPPING", [process("n0", "STOPPING", goal="STOPPED")], Life("RUNNING", ("n0",), "why")),
        ("STOPPING", [process("n0", "RUNNING", goal="REMOVED", generation=1)], Life("RUNNING", ("n0",), "why")),
        ("STOPPING", [process("n0", "UNSPECIFIED", goal="STOPPED")], Life("PENDING", (), "why")),
        ("DELETING", [process("n0", "REMOVED", goal="REMOVED")], Life()),
    ],
)
def test_a_state_follows_from_the_processes(state: str, processes: list[work.Workload], life: Life) -> None:
    off = Node(name="off", status=NodeStatus(state=NODE_STATE_OFFLINE))
    assert life_of(processes, STATES[state], "why", hosts=Hosts([off], [])) == life


def test_what_is_not_known_is_left_out() -> None:
    assert Life().fields == {"aliveNodes": []}
    document = {"aliveNodes": ["a"], "state": "RUNNING", "error": "b: dead"}
    assert Life("RUNNING", ("a",), "b: dead").fields == document


@pytest.mark.parametrize(
    ("processes", "begun"),
    [
        ([], False),
        ([process("n0", "UNSPECIFIED", generation=0), process("n1", "STOPPED")], False),
        ([process("n0", "RUNNING", generation=1)], False),
        ([process("n0", "UNSPECIFIED", generation=0), process("n1", "PENDING")], True),
        ([process("n0", "STARTING", goal="REMOVED")], False),
    ],
)
def test_a_start_has_begun_where_a_node_has_said_so(processes: list[work.Workload], *, begun: bool) -> None:
    assert is_begun(processes) is begun
