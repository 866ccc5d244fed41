"""The metrics that a connector's task counts itself, as its copy run reports them."""

import math
from collections.abc import Iterator, Sequence

import pytest

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.connect.expected import WrongAnswer
from keelman.connect.tasks.own_metric import OwnMetric
from keelman.engine.own_metrics import EVERY_SECONDS, MAX_METRICS, OwnMetrics, reported


def told(metrics: OwnMetrics) -> list[tuple[str, float]]:
    progress = CopyProgress()
    metrics.add_to(progress)
    return [(own_metric.name, own_metric.value) for own_metric in progress.own_metrics]


def test_a_task_is_asked_now_and_then_and_what_is_other_is_news() -> None:
    now, present, request = [0.0], [OwnMetric("polls", 1, "Polls.", {"kind": "x"})], [0]

    def ask() -> Sequence[OwnMetric]:
        request[0] += 1
        return list(present)

    metrics = OwnMetrics(ask, lambda: now[0])
    assert (metrics.news(), told(metrics)) == (True, [("polls", 1)])
    present[:] = [OwnMetric("polls", 2), OwnMetric("average", math.nan)]
    assert (metrics.news(), request) == (False, [1])
    now[0] += EVERY_SECONDS
    assert (metrics.news(), told(metrics)) == (True, [("polls", 2)])
    now[0] += EVERY_SECONDS
    assert (metrics.news(), request) == (False, [3])
    present.clear()
    now[0] += EVERY_SECONDS
    assert (metrics.news(), told(metrics)) == (True, [])


def test_many_and_long_ones_are_cut() -> None:
    metrics = OwnMetrics(lambda: [OwnMetric("x" * 9999, n, "y" * 9999, {"t": "z" * 9999}) for n in range(9999)])
    assert metrics.news()
    progress = CopyProgress()
    metrics.add_to(progress)
    assert (len(progress.own_metrics), progress.ByteSize() < 50_000) == (MAX_METRICS, True)


def test_no_more_are_taken_than_are_reported() -> None:
    taken: list[int] = []

    def found() -> Iterator[OwnMetric]:
        for number in range(9999):
            taken.append(number)
            yield OwnMetric("x", math.nan if number < 10 else number)

    assert len(reported(found())) == MAX_METRICS
    assert len(taken) == MAX_METRICS + 10


@pytest.mark.parametrize(
    "wrong",
    [
        "7",
        OwnMetric("polls", None),  # type: ignore[arg-type]
        OwnMetric("polls", "7"),  # type: ignore[arg-type]
        OwnMetric(7, 7),  # type: ignore[arg-type]
        OwnMetric("polls", 7, None),  # type: ignore[arg-type]
        OwnMetric("polls", 7, "", {"shard": 3}),  # type: ignore[dict-item]
        OwnMetric("polls", 7, "", None),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_metric_is_the_connectors_fault(wrong: OwnMetric) -> None:
    with pytest.raises(WrongAnswer, match=r"metrics returned is of type list: .*; expected a list of OwnMetric, each"):
        OwnMetrics(lambda: [wrong]).news()
