"""What a service asks of a standalone cluster follows from its slots, and leaves room for others."""

from __future__ import annotations

import pytest

from keelman.model.errors import InvalidArgument
from keelman.runtime.processes.processors import processors
from keelman.spark.masters.resources import cores_of, resources
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master

FAR, NEAR = Master.of("spark://far:7077"), Master.of("spark://127.0.0.1:7077")
SMALL = Settings(max_slots=7, executor_cores=2)


def test_cores_and_memory_are_always_set_and_follow_from_the_slots() -> None:
    asked = resources(SMALL, FAR, {})
    assert asked["spark.cores.max"] == "8", "one a slot, in whole executors"
    assert (asked["spark.executor.cores"], asked["spark.dynamicAllocation.maxExecutors"]) == ("2", "4")
    assert (asked["spark.executor.memory"], asked["spark.executor.memoryOverhead"]) == ("512m", "256m")
    assert resources(SMALL, NEAR, {})["spark.executor.memoryOverhead"] == "1280m", "a near one can run Java"


def test_executors_come_and_go_with_the_slots() -> None:
    asked = resources(SMALL, FAR, {})
    assert asked["spark.dynamicAllocation.enabled"] == "true"
    assert asked["spark.dynamicAllocation.minExecutors"] == "0"


def test_a_users_own_numbers_win_and_the_others_follow() -> None:
    own = {"spark.executor.cores": "4", "spark.executor.memory": "1g"}
    asked = resources(SMALL, FAR, own)
    assert own.keys().isdisjoint(asked)
    assert (asked["spark.cores.max"], asked["spark.executor.memoryOverhead"]) == ("8", "512m")
    assert cores_of(SMALL, FAR, {"spark.cores.max": "5"}) == 5


def test_a_fixed_number_of_executors_does_not_change() -> None:
    asked = resources(SMALL, FAR, {"spark.executor.instances": "3"})
    assert (asked["spark.cores.max"], asked["spark.dynamicAllocation.enabled"]) == ("6", "false")
    assert "spark.dynamicAllocation.minExecutors" not in asked


@pytest.mark.parametrize("text", ["many", "0", "-1"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spark\.executor\.cores"):
        resources(SMALL, FAR, {"spark.executor.cores": text})


@pytest.mark.parametrize("url", ["local[256,1]", "sc://far:15002"])
def test_other_masters_have_their_own(url: str) -> None:
    assert resources(SMALL, Master.of(url), {}) == {}


def test_slots_are_planned_by_the_cores_of_a_cluster_not_of_this_host() -> None:
    assert cores_of(SMALL, Master.of("local[256,1]"), {}) is None
    assert cores_of(SMALL, Master.of("sc://far:15002"), {}) == 7
    far = SMALL.limits(cores_of(SMALL, FAR, {}))
    assert (far.slots_per_worker, far.busy_slots, far.max_slots, far.max_warm) == (4, 8, 7, 2)
    assert SMALL.limits(1).slots_per_worker == 1
    here = SMALL.limits()
    assert (here.busy_slots, here.max_warm) == (processors(), 4 * processors())
