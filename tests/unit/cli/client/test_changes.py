"""The changes that `--wait` takes for the effect of an update or of a drain."""

from __future__ import annotations

from typing import Any, cast

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerCluster, BrokerClusterStatus
from keelman.api.connect.v1.worker_cluster_pb2 import Rollout, WorkerCluster, WorkerClusterStatus
from keelman.api.node.v1.node_pb2 import Node, NodeSpec, NodeStatus
from keelman.api.node.v1.workload_pb2 import WORKLOAD_GOAL_REMOVED, Workload
from keelman.cli.client.changes import check_halted, is_as_wanted, leaving, standing, wait_for_drain, wait_for_update
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import FAILED, NotReached, exit_code_of
from keelman.cli.kinds import BROKER_CLUSTERS, NODES, WORKER_CLUSTERS, Kind

ROLLING = Rollout(state="ROLLOUT_STATE_ROLLING", updated_workers=1, workers=3, worker="worker/demo/1")
HALTED = Rollout(
    state="ROLLOUT_STATE_HALTED",
    updated_workers=1,
    workers=3,
    worker="worker/demo/1",
    message="EXITED: it ended with 1",
)


def cluster(state: str, ready: int = 3, rollout: Rollout | None = None, leaving: int = 0) -> WorkerCluster:
    status = WorkerClusterStatus(
        state=f"CLUSTER_STATE_{state}", ready_workers=ready, wanted_workers=3, rollout=rollout, leaving_workers=leaving
    )
    return WorkerCluster(name="demo", status=status)


@pytest.mark.parametrize(
    ("worker_cluster", "done"),
    [
        (cluster("RUNNING"), True),
        (cluster("RUNNING", 2), False),
        (cluster("RUNNING", 4), False),
        (cluster("RUNNING", leaving=1), False),
        (cluster("RUNNING", rollout=ROLLING), False),
        (cluster("STARTING"), False),
        (cluster("DEGRADED"), False),
        (cluster("STOPPED", 0), True),
        (cluster("STOPPING", 0), False),
    ],
)
def test_a_cluster_is_as_wanted_when_nothing_is_left_to_do(worker_cluster: WorkerCluster, *, done: bool) -> None:
    assert is_as_wanted(WORKER_CLUSTERS, worker_cluster) is done


def test_brokers_are_as_wanted_when_they_run() -> None:
    for state, done in (("RUNNING", True), ("STARTING", False), ("STOPPED", True)):
        status = BrokerClusterStatus(state=f"CLUSTER_STATE_{state}")
        assert is_as_wanted(BROKER_CLUSTERS, BrokerCluster(status=status)) is done
    waits = BrokerClusterStatus(state="CLUSTER_STATE_RUNNING", message="a change of broker/b/1 waits: it does not run")
    assert not is_as_wanted(BROKER_CLUSTERS, BrokerCluster(status=waits))


class Updated:
    """A gateway whose planner takes a change up at the third read."""

    def __init__(self) -> None:
        self.asked = 0

    async def get(self, _kind: object, _name: str) -> WorkerCluster:
        self.asked += 1
        actual_cluster = cluster("RUNNING")
        actual_cluster.status.observed_generation = 7 if self.asked >= 3 else 6
        return actual_cluster


async def test_an_update_is_waited_for_until_it_has_been_planned() -> None:
    gateway: Any = Updated()
    updated = await wait_for_update(gateway, WORKER_CLUSTERS, "demo", generation=7, seconds=10)
    assert (gateway.asked, updated.status.observed_generation) == (3, 7)


def test_a_change_is_told_with_its_worker_and_a_halt_ends_the_wait() -> None:
    assert standing(WORKER_CLUSTERS, cluster("RUNNING", rollout=ROLLING)) == (
        "RUNNING 3/3 workers; 1 of 3 workers has the change; worker demo/1 gets it now"
    )
    full = cluster("DEGRADED", 2, ROLLING)
    full.status.message = "no room"
    assert standing(WORKER_CLUSTERS, full).startswith("DEGRADED 2/3 workers: no room; 1 of 3 workers has the change")
    halted = cluster("DEGRADED", 2, HALTED)
    halted.status.message = f"worker/demo/1: {HALTED.message}"
    assert standing(WORKER_CLUSTERS, halted).count(HALTED.message) == 1, "reported once"
    check_halted(WORKER_CLUSTERS, cluster("RUNNING", rollout=ROLLING))
    with pytest.raises(NotReached) as raised:
        check_halted(WORKER_CLUSTERS, cluster("DEGRADED", rollout=HALTED))
    assert exit_code_of(raised.value) == FAILED
    assert raised.value.message == (
        "the change of worker-cluster/demo has halted: 1 of 3 workers has the change; worker demo/1 did not come up: "
        "EXITED: it ended with 1; the others keep their former settings"
    )


class Nodes:
    """Nodes and workloads, as the gateway lists them."""

    def __init__(self, *others: Node, carried: tuple[str, ...] = (), pinned: tuple[str, ...] = ()) -> None:
        spec = NodeSpec(cordoned=True, draining=True)
        self.nodes = [Node(name="n1", spec=spec, status=NodeStatus(pinned_workloads=pinned)), *others]
        self.workloads = [Workload(name=name, node="n1") for name in carried] + [Workload(name="worker/x/0", node="n2")]

    async def list(self, kind: Kind) -> Any:
        return self.nodes if kind is NODES else self.workloads


def node(name: str, state: str, **spec: bool) -> Node:
    return Node(name=name, spec=NodeSpec(**spec), status=NodeStatus(state=f"NODE_STATE_{state}"))


CARRIED = ("broker/default/0", "spark/n1", "worker/a/0", "worker/b/0")


async def lines(nodes: Nodes) -> list[str]:
    return (await leaving(cast("Gateway", nodes), "n1")).lines("n1")


async def test_a_drain_names_what_leaves_and_what_stays() -> None:
    pinned = ("broker/default/0", "worker/b/0")
    assert await lines(Nodes(node("n2", "ONLINE"), carried=CARRIED, pinned=pinned)) == [
        "to leave: worker/a/0",
        "pinned to node n1, and so stays: broker/default/0, worker/b/0",
    ]
    assert await lines(Nodes(node("n2", "ONLINE"), carried=("spark/n1",))) == []
    carried = ("spark/n1", "spark/@big/0")
    assert await lines(Nodes(node("n2", "ONLINE"), carried=carried)) == ["to leave: spark/@big/0"]


async def test_a_drain_with_nowhere_to_go_says_why_at_once() -> None:
    alone = Nodes(carried=("worker/a/0",))
    assert await lines(alone) == [
        "no other node takes the workloads that leave: no other node exists; stays: worker/a/0"
    ]
    others = [node("n2", "OFFLINE"), node("n3", "ONLINE", cordoned=True), node("n4", "ONLINE", draining=True)]
    with pytest.raises(NotReached, match=r"node n1 is not drained: .* n2 is OFFLINE, n3 is cordoned, n4 is draining"):
        await wait_for_drain(cast("Gateway", Nodes(*others, carried=CARRIED)), "n1", seconds=60)
    drained = await wait_for_drain(cast("Gateway", Nodes(carried=("spark/n1",))), "n1", seconds=60)
    assert not drained.movable


async def test_a_worker_that_is_to_end_needs_no_other_node() -> None:
    alone = Nodes(carried=("worker/a/0",))
    alone.workloads[0].goal = WORKLOAD_GOAL_REMOVED
    assert await lines(alone) == ["to leave: worker/a/0"]


async def test_a_node_whose_state_is_not_known_yet_may_take_it() -> None:
    assert await lines(Nodes(node("n2", "UNKNOWN"), carried=("worker/a/0",))) == ["to leave: worker/a/0"]
