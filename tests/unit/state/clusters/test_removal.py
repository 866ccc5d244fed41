"""Which brokers may be removed, and the message about those that may not."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.kafka.cluster_state import Partition
from keelman.model.cluster import BrokerCluster, ClusterGoal, ManagedBrokers
from keelman.model.errors import Conflict, FailedPrecondition
from keelman.model.workload import BrokerSpec, Goal, Workload
from keelman.state.clusters.removal import check_nothing_lost, check_removal, check_same_removed
from keelman.state.resources.snapshot import Snapshot
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = ("n0", "n1", "n2", "n3", "n4")
CLUSTER = BrokerCluster("b", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, ManagedBrokers(NODES), "id")


def broker(number: int, *, has_run: bool = True) -> Workload:
    spec = BrokerSpec("b", "id", number, "127.0.0.1", 9092 + number, 0, controller=number < 3)
    return Workload(f"broker/b/{number}", f"n{number}", 1, Goal.RUNNING, spec, has_run=has_run)


def world(**flags: bool) -> Snapshot:
    return snapshot_of(
        broker_clusters={"b": CLUSTER}, workloads={w.name: w for w in (broker(n, **flags) for n in range(5))}
    )


async def test_a_controller_is_never_removed() -> None:
    with pytest.raises(FailedPrecondition, match="node n1 carries broker/b/1, a controller") as refused:
        await check_removal(world(has_run=False), CLUSTER, ManagedBrokers(("n0", "n2", "n3", "n4")))
    assert refused.value.reason == "CONTROLLER"


async def test_a_broker_that_never_ran_has_nothing_to_lose() -> None:
    assert await check_removal(world(has_run=False), CLUSTER, ManagedBrokers(NODES[:4])) == {"broker/b/4"}


async def test_of_a_cluster_that_does_not_run_it_is_not_known() -> None:
    stopped = dataclasses.replace(CLUSTER, goal=ClusterGoal.STOPPED)
    with pytest.raises(FailedPrecondition, match="start it first"):
        await check_removal(world(), stopped, ManagedBrokers(NODES[:4]))


def test_what_would_be_lost_is_named_up_to_twenty() -> None:
    everywhere = [Partition("t", n, 0, (0, 3), frozenset({0, 3})) for n in range(23)]
    elsewhere = [Partition("u", 0, 0, (0, 1), frozenset({0, 1}))]
    check_nothing_lost([broker(4)], everywhere + elsewhere)
    with pytest.raises(
        FailedPrecondition, match=r"without n3 .* 23 partitions .*\(t-0, t-1, .*t-19 and 3 more\)"
    ) as refused:
        check_nothing_lost([broker(3)], everywhere + elsewhere)
    assert (refused.value.reason, refused.value.metadata["count"]) == ("WOULD_LOSE_PARTITIONS", "23")
    assert refused.value.metadata["partitions"].count("t-") == 20


def test_what_was_not_checked_is_not_written() -> None:
    check_same_removed(world(), CLUSTER, ManagedBrokers(NODES[:4]), frozenset({"broker/b/4"}))
    with pytest.raises(Conflict):
        check_same_removed(world(), CLUSTER, ManagedBrokers(NODES[:3]), frozenset({"broker/b/4"}))
