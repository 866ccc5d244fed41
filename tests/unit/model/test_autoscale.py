from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from keelman.model.autoscale import Autoscale, check_autoscale, check_no_tasks
from keelman.model.errors import InvalidArgument

WANTED = Autoscale(1, 4)


def test_what_is_legal_passes() -> None:
    for expected in (WANTED, Autoscale(3, 3), Autoscale(1, 2, tasks_per_worker=2, max_tasks=2, cool_down_seconds=0)):
        check_autoscale("spec.autoscale", expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"min_workers": 0}, "spec.autoscale.min_workers.*1 to 1000"),
        ({"max_workers": 0}, "spec.autoscale.max_workers.*1 to 1000"),
        ({"min_workers": 5}, "spec.autoscale.max_workers: '4' .*5 to 1000"),
        ({"max_workers": 1001}, "spec.autoscale.max_workers: '1001'"),
        ({"scale_in_cpu_percent": 80.0}, r"scale_in_cpu_percent: 80.* less than scale_out_cpu_percent \(80\)"),
        ({"scale_in_cpu_percent": float("nan")}, "scale_in_cpu_percent"),
        ({"scale_out_cpu_percent": float("inf")}, "scale_out_cpu_percent"),
        ({"scale_out_cpu_percent": 0.5}, "scale_out_cpu_percent: '0.5'.*1 to 1000"),
        ({"scale_out_lag_records": -1}, "scale_out_lag_records: -1.*0 or more"),
        ({"max_tasks": 4}, "max_tasks: 4.*0 where tasks_per_worker is 0"),
        ({"tasks_per_worker": 2, "max_tasks": 3}, r"max_tasks: 3.*at least max_workers \(4\)"),
        ({"tasks_up_to_partitions": True}, "tasks_up_to_partitions: True.*false where tasks_per_worker is 0"),
        ({"samples": 0}, "samples: '0'"),
        ({"sample_seconds": 0.1}, "sample_period: '0.1 s'.*1 to 86400 s"),
        ({"cool_down_seconds": -1.0}, "cool_down"),
    ],
)
def test_what_is_not_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_autoscale("spec.autoscale", dataclasses.replace(WANTED, **change))


def test_only_a_dedicated_connectors_tasks_follow_its_workers() -> None:
    check_no_tasks("spec.autoscale", WANTED)
    with pytest.raises(InvalidArgument, match=r"spec.autoscale.tasks_per_worker: 2.*dedicated connector"):
        check_no_tasks("spec.autoscale", dataclasses.replace(WANTED, tasks_per_worker=2))


def test_tasks_are_so_many_for_each_worker_up_to_a_bound() -> None:
    assert Autoscale(1, 4).tasks_max(3) == 0
    assert Autoscale(1, 4, tasks_per_worker=8).tasks_max(2) == 16
    assert Autoscale(1, 4, tasks_per_worker=8, max_tasks=10).tasks_max(2) == 10
    up_to = Autoscale(1, 4, tasks_per_worker=8, max_tasks=10, tasks_up_to_partitions=True)
    assert [up_to.tasks_max(2, partitions) for partitions in (0, 3, 12)] == [10, 3, 10]
    assert Autoscale(1, 4, tasks_per_worker=8).tasks_max(2, 3) == 16
    assert [Autoscale(2, 4).bounded(number) for number in (0, 3, 9)] == [2, 3, 4]
