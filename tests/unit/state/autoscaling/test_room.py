from __future__ import annotations

import pytest

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_TYPE_SINK, CONNECTOR_TYPE_SOURCE, Connector, ConnectorTask
from keelman.state.autoscaling.room import room, topics_of

PARTITIONS = {"orders": 3, "lines": 1}


def connector(tasks: int, *, topics: str = "", **more: str) -> Connector:
    config = {"topics": topics, **more} if topics else more
    kind = CONNECTOR_TYPE_SINK if topics or "topics.regex" in more else CONNECTOR_TYPE_SOURCE
    return Connector(type=kind, config=config, tasks=[ConnectorTask(task=number) for number in range(tasks)])


@pytest.mark.parametrize(
    ("connectors", "tasks_follow", "count"),
    [
        ([connector(2, topics="orders")], False, 2),
        ([connector(8, topics=" orders, lines")], False, 4),
        ([connector(8, topics="orders,lines")], True, 4),
        ([connector(1, topics="orders")], True, 3),
        ([connector(1, topics="orders,unknown")], True, None),
        ([connector(5, topics="orders,unknown")], False, 5),
        ([connector(5)], True, None),
        ([connector(5), connector(2, topics="lines")], False, 6),
        ([connector(4, **{"topics.regex": "or.*"})], True, None),
        ([], False, None),
    ],
)
def test_workers_have_something_to_do_up_to(connectors: list[Connector], tasks_follow: bool, count: int | None) -> None:
    assert room(connectors, PARTITIONS, tasks_follow=tasks_follow) == count


def test_only_sinks_name_topics() -> None:
    values = [connector(1, topics="orders, lines"), connector(1, topic="copied"), connector(1, **{"topics.regex": "x"})]
    assert topics_of(values) == {"orders", "lines"}
