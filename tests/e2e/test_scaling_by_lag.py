"""A sink gets one more worker for its backlog, and none for which no partition is left.

It loses and repeats nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Producer

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.rpc.channels import channel
from keelman.rpc.times import to_duration
from support.cli.system import Keelman
from support.copying.loads import COSTLY
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.state.dedicated import Dedicated
from support.state.scaled import Scaled

pytestmark = pytest.mark.e2e
GIVEN, COPIED, PARTITIONS = "given", "copied", 2
BATCH, EVERY_SECONDS = 5_000, 0.3
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SINK = {
    "connector.class": "keelman.connectors.KafkaSinkConnector", "topics": GIVEN, "topic": COPIED, "tasks.max": "1",
    "key.converter": BYTES, "value.converter": BYTES, **COSTLY,
}  # fmt: skip
BY_LAG = Autoscale(
    min_workers=1, max_workers=3, scale_out_lag_records=100, scale_out_cpu_percent=1000, scale_in_cpu_percent=0.1,
    tasks_per_worker=3, tasks_up_to_partitions=True, sample_period=to_duration(1), samples=2, cool_down=to_duration(2),
)  # fmt: skip


class Records:
    """Numbered records that are written while it is loaded, one partition after the other."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    @contextlib.asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self._come())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert await asyncio.to_thread(self._producer.flush, 60) == 0

    async def _come(self) -> None:
        while True:
            for number in range(self.count, self.count + BATCH):
                self._producer.produce(GIVEN, b"%d" % number, partition=number % PARTITIONS)
                self.count += 1
            await asyncio.to_thread(self._producer.flush, 60)
            await asyncio.sleep(EVERY_SECONDS)


async def test_lag_brings_workers_up_to_the_partitions(own: Keelman) -> None:
    await own.ok("up", "--detach", "--free-ports")
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    await asyncio.to_thread(create_topic, servers, GIVEN, PARTITIONS)
    records = Records(servers)
    async with channel(own.system["gateway"]) as link:
        dedicated = Dedicated(link)
        answer = await dedicated.create("sink", SINK, servers, capacity=DedicatedCapacity(autoscale=BY_LAG))
        assert (await dedicated.ended(answer, seconds=300)).state == OPERATION_STATE_SUCCEEDED, own.logs()
        scaled = Scaled(dedicated, "sink")

        async def has_a_task_a_partition() -> bool:
            return await scaled.shown() == (1, PARTITIONS, "1")

        await eventually(has_a_task_a_partition, what="it has no more tasks than partitions")
        async with records.load():
            await scaled.scaled(2)
            log = own.home / "logs" / "state.log"
            await eventually(lambda: "scaling_for_nothing" in log.read_text(), what="no third worker comes")
        assert await scaled.shown() == (2, PARTITIONS, "1")
        steps = await scaled.steps()
        assert [step.target.goal for step in steps] == ["2 workers", "1 worker"], "the tasks came first"
        assert "lag" in steps[0].steps[0].message, "each step has its reason"
        assert "tasks.max follows" in steps[1].steps[0].message
        assert "lag" in (await own.item("wc", "sink"))["status"]["scaling"]["reason"]

        async def all_copied() -> bool:
            return len(await asyncio.to_thread(messages, servers, COPIED)) >= records.count

        await eventually(all_copied, every=2.0, what="all records are copied")
        actual_messages = await asyncio.to_thread(messages, servers, COPIED)
        for partition in range(PARTITIONS):
            numbers = [
                int(actual_message.value() or b"")
                for actual_message in actual_messages
                if actual_message.partition() == partition
            ]
            assert numbers == list(range(partition, records.count, PARTITIONS))
