"""Leader epochs and topic ids of a real broker."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from keelman.kafka.clients import low_level_client
from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.epoch_ends import epoch_ends
from keelman.kafka.fetching.offset_requests import EpochEnd
from keelman.kafka.leaders.metadata import metadata_of
from support.eventually import eventually
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component


async def test_epochs_end_where_their_records_do_and_a_topic_made_anew_has_another_id(
    bootstrap: str, name: str
) -> None:
    create_topic(bootstrap, name, 2)
    writer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(3):
        writer.produce(name, b"x", partition=1)
    assert writer.flush(300) == 0
    async with low_level_client({"bootstrap.servers": bootstrap}, client_id="asks", timeout_ms=10_000) as client:
        topics = (await metadata_of(client, [name, f"{name}-none"])).topics
        assert len(topics[name].id) == 22
        assert [leader.epoch for leader in topics[name].partitions.values()] == [0, 0]
        assert topics[f"{name}-none"].code == CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        request = {(name, 0): 0, (name, 1): 0, (name, 2): 0, (f"{name}-none", 0): 0}
        ends = await epoch_ends(client, request, seconds=5.0)
        assert ends[name, 0] == EpochEnd(0, 0)
        assert ends[name, 1] == EpochEnd(0, 3)
        unknown = CODES["UNKNOWN_TOPIC_OR_PARTITION"]
        assert [ends[name, 2].code, ends[f"{name}-none", 0].code] == [unknown, unknown]
        later = await epoch_ends(client, {(name, 1): 7}, seconds=60.0)
        assert later[name, 1].offset == -1, "an epoch that the leader has not had yet has no end"

        admin = AdminClient({"bootstrap.servers": bootstrap})  # held until it has answered
        for done in admin.delete_topics([name]).values():
            done.result(300)
        create_topic(bootstrap, name, 2)

        async def another_id() -> bool:
            now = (await metadata_of(client, [name])).topics[name]
            return now.code == 0 and now.id not in ("", topics[name].id)

        await eventually(another_id)
