"""The workers for which the state service leaves the group."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, WorkerSpec, Workload
from keelman.state.brokers.farewells import moved_off
from keelman.state.resources.snapshot import WORKLOAD
from keelman.state.resources.transaction import Change
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = Workload(
    "worker/demo/0", "n1", 1, Goal.RUNNING, WorkerSpec("demo", "10.0.0.1", 8083, {}, "10.0.0.1:7430"), has_run=True
)
MOVED = dataclasses.replace(WORKER, node="n2", generation=2)


def found(old: Workload | None, new: Workload | None, *, state: NodeState = NodeState.OFFLINE) -> list[str]:
    snapshot = snapshot_of({"n1": Node("n1", "u", TIME, TIME, state, "10.0.0.1:7420")}, {}, {}, {})
    return [w.address for w in moved_off([Change(WORKLOAD, WORKER.name, old, new)], snapshot)]


def test_one_that_was_moved_off_a_lost_node_is_bidden_farewell_at_its_former_address() -> None:
    assert found(WORKER, MOVED) == ["10.0.0.1:8083"]
    assert found(WORKER, None) == ["10.0.0.1:8083"], "forgotten with its node"


@pytest.mark.parametrize("state", [NodeState.ONLINE, NodeState.UNKNOWN])
def test_one_whose_agent_can_say_it_is_not(state: NodeState) -> None:
    assert found(WORKER, MOVED, state=state) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WORKER, dataclasses.replace(WORKER, generation=2)),
        (None, WORKER),
        (dataclasses.replace(WORKER, has_run=False), dataclasses.replace(MOVED, has_run=False)),
    ],
    ids=["pinned, and alive perhaps", "new", "never a member"],
)
def test_one_that_stays_or_never_ran_is_not(old: Workload | None, new: Workload) -> None:
    assert found(old, new) == []
