"""Offsets of sinks' groups are committed again whatever their state, so that brokers do not forget them."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from component.kafka.test_group_changes import written
from keelman.kafka.groups.changes import NONE, GroupChanges
from keelman.testing.worker_properties import alone
from keelman.worker.config.typed import checked
from keelman.worker.offsets.sink_groups import DAY_SECONDS, SinkGroups, due
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from support.kafka.topics import create_topic
from support.waiting import until
from support.worker.store import store_callbacks

pytestmark = pytest.mark.component


@pytest.mark.parametrize("target", [records.STARTED, records.PAUSED, records.STOPPED])
async def test_the_leader_commits_the_offsets_of_every_sink_again(
    bootstrap: str, name: str, tmp_path: Path, target: str
) -> None:
    create_topic(bootstrap, name)
    properties = checked({**alone(tmp_path / "offsets"), "bootstrap.servers": bootstrap}, standalone=True)
    store = StandaloneStore(properties, worker_id="w:1", callbacks=store_callbacks())
    config = {"connector.class": "FileStreamSink", "topics": name}
    await store.config_topic.write([records.connector_record(name, config), records.target_record(name, target)])
    changes = GroupChanges({"bootstrap.servers": bootstrap}, f"connect-{name}", client_id="test")
    await changes.commit({(name, 0): NONE}, "noted\0")
    leading = False
    groups = SinkGroups(store, lambda: leading)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{name}"})
    try:
        before = written(bootstrap, f"connect-{name}")
        await groups.keep()
        assert written(bootstrap, f"connect-{name}") == before, "it does not lead"
        leading = True
        await groups.keep()
        assert written(bootstrap, f"connect-{name}") == before + 1
        await groups.keep()
        assert written(bootstrap, f"connect-{name}") == before + 1, "once a day"
        (kept,) = consumer.committed([TopicPartition(name, 0)], timeout=60)
        assert kept.metadata == "noted"
        # It runs: its group has a member, and nothing is to be kept.
        consumer.subscribe([name])
        until(lambda: consumer.poll(0.1) is None and consumer.assignment(), "a member")
        await SinkGroups(store, lambda: leading).keep()
    finally:
        consumer.close()


def test_what_is_due() -> None:
    assert due(["b", "a", "c"], {"a": 10.0, "b": 11.0}, DAY_SECONDS + 10) == ["a", "c"]
