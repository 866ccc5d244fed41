"""A sink with a lasting backlog that scales from 1 to 20 workers by default settings: the time until it has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from bench.clusters.dedicated import in_rounds
from bench.measuring.figures import Figure
from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.state.dedicated import SUCCEEDED, Dedicated
from support.state.scaled import Scaled

WORKERS = 20
PER_SECOND = 500
"""The limit of each task, so that the machine can bear all workers: 20 of them need a minute for the backlog."""
BACKLOG = 700_000
GOALS = {"decided": "<= 60", "all-run": ""}
CAPACITY = DedicatedCapacity(
    autoscale=Autoscale(
        max_workers=WORKERS, tasks_per_worker=1, scale_out_lag_records=1000, scale_out_cpu_percent=100_000
    )
)
"""The times are the default ones. The lag decides: the processors of a small machine cannot show 20 workers' load."""


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """One round: seconds from the first copied record until 20 workers are decided, and until all run."""
    return await in_rounds("autoscale-20", _round, GOALS, folder, rounds=1, say=say)


async def _round(dedicated: Dedicated, folder: Path, servers: str, turn: int) -> dict[str, float]:
    topic, name = f"backlog-{turn}", f"c{turn}"
    await asyncio.to_thread(_fill, servers, topic)
    config = {
        "connector.class": "keelman.connectors.KafkaSinkConnector", "topics": topic, "topic": f"copied-{turn}",
        "tasks.max": "1", "keelman.limit.records.per.second": str(PER_SECOND),
    }  # fmt: skip
    made = await dedicated.ended(await dedicated.create(name, config, servers, capacity=CAPACITY), seconds=300)
    assert made.state == SUCCEEDED, made
    begun, scaled = time.time(), Scaled(dedicated, name)
    result = await scaled.scaled(WORKERS)
    await eventually(lambda: _all_run(scaled), seconds=300, what="all workers run")
    created, ended = (stamp.ToNanoseconds() / 1e9 for stamp in (result.create_time, result.end_time))
    await dedicated.ended(await dedicated.delete(name), seconds=300)
    return {"decided": created - begun, "all-run": ended - begun}


async def _all_run(scaled: Scaled) -> bool:
    return (await scaled.shown())[0] == WORKERS


def _fill(servers: str, topic: str) -> None:
    create_topic(servers, topic, WORKERS)
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": BACKLOG})
    for number in range(BACKLOG):
        producer.produce(topic, b"%d" % number, partition=number % WORKERS)
    assert producer.flush(120) == 0
