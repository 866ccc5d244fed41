"""The state service is away while records are copied: as many are copied as before.

`make partitions` keeps it away for five minutes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.rpc.channels import channel
from support.eventually import eventually
from support.state.nodes import running_nodes
from support.state.service import RUNNING, Clients

pytestmark = [pytest.mark.component, pytest.mark.fault]
LONG = os.environ.get("KEELMAN_STATE_DOWN_SECONDS")
DOWN_SECONDS = float(LONG or 25)
BEFORE_SECONDS = 10.0
PER_SECOND = 20_000 if LONG else 5_000
"""Beside other tests far less than a machine copies: only what the worker does is measured."""
WAITS_SECONDS = 120.0 if LONG else 600.0
"""The longest that all of it takes beside the measurements."""
GOAL = 0.9
TOPIC = "state-down"


def end_of(consumer: Consumer) -> int:
    """The number of records in the topic."""
    return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=300)[1])


async def copied(consumer: Consumer, seconds: float) -> float:
    """Measures the records a second over this time."""
    first, begun = await asyncio.to_thread(end_of, consumer), time.monotonic()
    await asyncio.sleep(seconds)  # the measurement is a time
    last = await asyncio.to_thread(end_of, consumer)
    return (last - first) / (time.monotonic() - begun)


async def test_copying_goes_on_as_fast_without_the_state_service(bootstrap: str, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    with lines.open("w") as stream:
        for number in range(int((DOWN_SECONDS + 2 * BEFORE_SECONDS + WAITS_SECONDS) * PER_SECOND)):
            stream.write(f"{number:040}\n")
    small = {"retention.bytes": "100000000", "segment.bytes": "50000000"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=small)])[TOPIC].result(300)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": TOPIC})
    async with running_nodes(tmp_path, ["n1"]) as nodes:
        nodes.start_agent("n1")
        async with channel(f"127.0.0.1:{nodes.state.port}") as connection:
            clients = Clients(connection)
            await nodes.are_online(clients)
            await clients.create_external("default", bootstrap)
            await clients.create_workers("demo", count=1)
            await clients.start_workers("demo")

            async def runs() -> bool:
                return (await clients.workloads())["worker/demo/0"].status.state == RUNNING

            await eventually(runs, what="the worker runs")
            (url,) = (await clients.worker_cluster("demo")).status.rest_urls
            config = {
                "connector.class": "FileStreamSource", "file": str(lines), "topic": TOPIC,
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
                "keelman.limit.records.per.second": str(PER_SECOND),
            }  # fmt: skip
            async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
                assert (await client.put(f"{url}/connectors/lines/config", json=config)).status_code == 201
            await eventually(lambda: end_of(consumer) > 5 * PER_SECOND, what="it copies")
            before = await copied(consumer, BEFORE_SECONDS)
            await nodes.state.end(signal.SIGKILL)
            without = await copied(consumer, DOWN_SECONDS)
            await nodes.state.start()
            await eventually(runs, what="the worker is known again")
            after = await copied(consumer, BEFORE_SECONDS)
    consumer.close()
    print(
        f"\nwith the state service {before:,.0f} records/s, {DOWN_SECONDS:g} s without it {without:,.0f} records/s, "
        f"with it again {after:,.0f} records/s"
    )
    assert without >= GOAL * min(before, after), "the machine itself may have become slower"
