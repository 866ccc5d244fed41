"""Ports that are chosen at a create: free on all nodes, and named by no cluster."""

from datetime import UTC, datetime

import pytest

from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import Exhausted
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, WorkerSpec, Workload
from keelman.state.clusters.chosen_ports import chosen, with_broker_ports, with_worker_ports
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {n: Node(n, n, TIME, TIME, NodeState.ONLINE, f"10.0.0.{n[1]}:7420") for n in ("n1", "n2", "n3")}
BROKERS = BrokerCluster("m", "m", TIME, TIME, 1, "", ClusterGoal.STOPPED, ManagedBrokers(("n3",), port=10_002))
HELD = WorkerCluster(
    "held", "h", TIME, TIME, 1, "", ClusterGoal.STOPPED,
    WorkerClusterSpec("m", ("n1",), port=10_000, reserved_ports=(10_001,)),
)  # fmt: skip
AUTO = Workload("worker/auto/0", "n2", 1, Goal.RUNNING, WorkerSpec("auto", "10.0.0.2", 10_003, {}, ""))
SNAPSHOT = snapshot_of(NODES, {"m": BROKERS}, {"held": HELD}, {AUTO.name: AUTO})
SIX = range(10_000, 10_006)


@pytest.mark.parametrize(
    ("nodes", "begin", "value"),
    [
        (("n1",), 0, [10_003, 10_004]),
        (("n2",), 0, [10_004, 10_005]),
        (("n1", "n2"), 5, [10_005, 10_004]),
        ((), 0, [10_004, 10_005]),
        (("unknown",), 0, [10_003, 10_004]),
    ],
)
def test_they_are_free_on_all_nodes_and_named_by_nobody(nodes, begin, value) -> None:
    assert chosen(2, nodes, SNAPSHOT, SIX, chance=lambda below: begin) == value


def test_what_a_spec_names_stays_and_is_not_chosen_again() -> None:
    spec = with_worker_ports(WorkerClusterSpec("m", ("n1",), metrics_port=10_004, admin_port=10_003), SNAPSHOT, SIX)
    assert (spec.port, spec.metrics_port, spec.admin_port) == (10_005, 10_004, 10_003)
    assert with_worker_ports(spec, SNAPSHOT, SIX) == spec
    both = with_worker_ports(WorkerClusterSpec("m", ("n2",)), SNAPSHOT, SIX)
    assert {both.port, both.metrics_port} == {10_004, 10_005}


def test_brokers_of_others_get_none() -> None:
    assert with_broker_ports(ExternalBrokers("a:1"), SNAPSHOT, SIX) == ExternalBrokers("a:1")
    named = ManagedBrokers(("n1",), port=7, metrics_port=8)
    assert with_broker_ports(named, SNAPSHOT, SIX) == named
    managed = with_broker_ports(ManagedBrokers(("n1", "n2")), SNAPSHOT, SIX)
    assert isinstance(managed, ManagedBrokers)
    assert {*managed.ports} == {10_004, 10_005}


def test_that_there_is_none_is_told() -> None:
    with pytest.raises(Exhausted, match=r"no 3 ports are free in 10000-10005: .* state\.chosen_ports") as refused:
        chosen(3, ("n1", "n2"), SNAPSHOT, SIX)
    assert refused.value.reason == "NO_FREE_PORTS"
