"""Iceberg's sink in a worker: it uses Connect's internal context and commits by its task's membership in the group.

Its table has every row once, whatever is killed.
"""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.eventually import eventually
from support.java.iceberg import plugin_path, rows, sink_config
from support.java.kit import needs_java
from support.kafka.topics import commit, create_topic
from support.spark.service import SparkService, kill_slot_of
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, pytest.mark.slow, needs_java()]
PARTITIONS, ROWS = 3, 3000


def send(bootstrap: str, topic: str, numbers: range) -> None:
    """Writes one row a number."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in numbers:
        producer.produce(topic, json.dumps({"id": n, "name": f"row {n}"}).encode(), partition=n % PARTITIONS)
    assert producer.flush(300) == 0


def committed(bootstrap: str, name: str, topic: str) -> int:
    """The number of records before the offsets of the sink's group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{name}"})
    committed = consumer.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], timeout=300)
    consumer.close()
    return sum(max(0, partition.offset) for partition in committed)


def begin_at_the_start(bootstrap: str, name: str, control: str) -> None:
    """Gives the sink's coordinator an offset in its control topic before it has one by itself.

    Otherwise its group begins at the end, once it has joined: earlier messages of tasks never reach the table, though
    their offsets are committed. With a commit each second that happens where joining takes longer.
    """
    commit(bootstrap, f"connect-{name}-coord", control, 0)


async def test_every_row_is_in_the_table_once_over_kills_of_slot_and_worker(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    name, topic, warehouse = "lake", "lake-rows", tmp_path / "warehouse"
    create_topic(bootstrap, topic, PARTITIONS)
    create_topic(bootstrap, f"{topic}-control")
    begin_at_the_start(bootstrap, name, f"{topic}-control")
    # Its tasks read their control topic when they are called, which is each flush if there are no records.
    properties = {"plugin.path": await plugin_path(tmp_path), "offset.flush.interval.ms": "1000"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "lake", spark.address, properties)
    table = warehouse / "db" / topic

    async def in_kafka(count: int) -> bool:
        return await asyncio.to_thread(committed, bootstrap, name, topic) == count

    async def in_table(count: int) -> list[int]:
        ints = [int(row["id"]) for row in await rows(table)]
        return ints if len(set(ints)) >= count else []

    async with workers(worker):
        await asyncio.to_thread(send, bootstrap, topic, range(ROWS))
        config = {**sink_config(bootstrap, topic, warehouse), "tasks.max": "2"}
        response = await worker.ask("PUT", f"/connectors/{name}/config", config)
        assert (response.status_code, response.json().get("type")) == (201, "sink"), response.text
        await worker.reaches(name, "RUNNING", "RUNNING", "RUNNING", seconds=300)
        await eventually(lambda: in_kafka(ROWS), seconds=300, what="the sink has committed by its membership")
        assert sorted(await eventually(lambda: in_table(ROWS), seconds=300, what="rows are read back")) == list(
            range(ROWS)
        )

        await asyncio.to_thread(send, bootstrap, topic, range(ROWS, 2 * ROWS))
        await kill_slot_of(name, spark)
        await asyncio.to_thread(send, bootstrap, topic, range(2 * ROWS, 3 * ROWS))
        await eventually(lambda: in_kafka(3 * ROWS), seconds=300, what="all is committed after the slot was killed")
        await worker.end(signal.SIGKILL)
        await asyncio.to_thread(send, bootstrap, topic, range(3 * ROWS, 4 * ROWS))
        await worker.start()
        await eventually(lambda: in_kafka(4 * ROWS), seconds=300, what="all is committed after the worker was killed")
        outcome = await eventually(lambda: in_table(4 * ROWS), seconds=300, what="all rows are read back")
        assert sorted(outcome) == list(range(4 * ROWS)), "each once"
        assert await worker.end() == 0
