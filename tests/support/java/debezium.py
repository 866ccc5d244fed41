"""Debezium's PostgreSQL source and JDBC sink on a worker, ours or Kafka Connect's, over a table of numbered rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import psycopg
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from support.eventually import eventually
from support.java.numbered_rows import TABLE, Change, NumberedRows, change_of
from support.java.published import DEBEZIUM_JDBC, DEBEZIUM_POSTGRES
from support.kafka.topics import AT_ONCE

JSON = "org.apache.kafka.connect.json.JsonConverter"
COPIED = "copied"
"""The table that the sink creates."""
PATIENCE = 120.0
LOOK_SECONDS = 30.0


class RestWorker(Protocol):
    """The interface that a test uses of a worker of either kind."""

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request to Connect's REST API."""


def source_config(rows: NumberedRows, name: str, **more: str) -> dict[str, str]:
    """Follows the table into the topic `<name>.public.numbered`; keys of `more` have `_` for `.`."""
    url = urlsplit(rows.url)
    return {
        "connector.class": DEBEZIUM_POSTGRES,
        "tasks.max": "1",
        "database.hostname": str(url.hostname),
        "database.port": str(url.port),
        "database.user": str(url.username),
        "database.password": "unused",
        "database.dbname": url.path.lstrip("/"),
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": slot_of(name),
        "publication.name": slot_of(name),
        "publication.autocreate.mode": "filtered",
        "table.include.list": f"public.{TABLE}",
        "tombstones.on.delete": "false",
        "heartbeat.interval.ms": "500",
        "retriable.restart.connector.wait.ms": "1000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "key.converter": JSON,
        "value.converter": JSON,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def sink_config(target: str, topic: str, **more: str) -> dict[str, str]:
    """Upserts the rows of Debezium's topic into a table of another database."""
    url = urlsplit(target)
    return {
        "connector.class": DEBEZIUM_JDBC,
        "tasks.max": "1",
        "topics": topic,
        "connection.url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "connection.username": str(url.username),
        "connection.password": "unused",
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "collection.name.format": COPIED,
        "key.converter": JSON,
        "value.converter": JSON,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def slot_of(name: str) -> str:
    """The replication slot of the connector."""
    return name.replace("-", "_")


def topic_of(name: str) -> str:
    """The topic of the connector's changes."""
    return f"{name}.public.{TABLE}"


async def put(worker: RestWorker, name: str, config: Mapping[str, str]) -> None:
    """Creates the connector, or changes it. Raises AssertionError with the answer."""

    async def taken() -> bool:
        answer = await worker.ask("PUT", f"/connectors/{name}/config", {**config, "name": name})
        assert answer.status_code in (200, 201, 409), answer.text
        return answer.status_code != 409

    await eventually(taken, seconds=PATIENCE, every=0.2, what=f"{name} is taken")


async def states(worker: RestWorker, name: str) -> list[str]:
    """The states of the connector and its tasks; empty while the connector does not exist."""
    answer = await worker.ask("GET", f"/connectors/{name}/status")
    if answer.status_code != 200:
        return []
    status = answer.json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


async def running(worker: RestWorker, name: str, seconds: float = PATIENCE) -> None:
    """Waits until the connector and its task run. Raises AssertionError with its status."""
    try:
        await eventually(lambda: _runs(worker, name), seconds=seconds, every=0.1, what=f"{name} runs")
    except AssertionError as error:
        raise AssertionError(f"{error}: {(await worker.ask('GET', f'/connectors/{name}/status')).text}") from error


async def _runs(worker: RestWorker, name: str) -> bool:
    return await states(worker, name) == ["RUNNING", "RUNNING"]


async def changes(bootstrap: str, name: str) -> list[Change]:
    """The committed change records in the connector's topic; empty while there is no topic."""
    committed = await asyncio.to_thread(_committed, bootstrap, topic_of(name))
    return [change_of(value) for item in committed if (value := item.value()) is not None]


def _committed(bootstrap: str, topic: str) -> list[Message]:
    """The committed messages up to the end at the first look; later ones are left out."""
    level = {"isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"look-{topic}", **AT_ONCE, **level})
    messages: list[Message] = []
    try:
        if consumer.list_topics(topic, LOOK_SECONDS).topics[topic].error is not None:
            return []
        place, deadline = TopicPartition(topic, 0, 0), time.monotonic() + LOOK_SECONDS
        _, end = consumer.get_watermark_offsets(place, timeout=LOOK_SECONDS)
        consumer.assign([place])
        while consumer.position([place])[0].offset < end:
            assert time.monotonic() < deadline, f"{topic} was not read to {end}"
            messages += [item for item in consumer.consume(10_000, 0.1) if item.error() is None]
    except KafkaException as error:
        raise AssertionError(f"{topic} cannot be read: {error}") from None
    finally:
        consumer.close()
    return messages


class Versions(Protocol):
    """A table whose rows have versions, and a table with the last versions of deleted rows."""

    def versions(self, table: str = TABLE) -> dict[int, int]:
        """The present versions, by row."""


async def followed(bootstrap: str, name: str, rows: Versions, seconds: float = PATIENCE) -> None:
    """Waits until the last version of each row is in the topic, and the deletion of each deleted row."""
    versions, gone = await asyncio.to_thread(rows.versions), await asyncio.to_thread(rows.versions, "gone")

    missing: list[str] = []

    async def all_there() -> bool:
        newest = {change.id: change for change in await changes(bootstrap, name)}
        missing[:] = [
            f"{row} in version {version}, not {newest.get(row)}"
            for row, version in versions.items()
            if row not in newest or newest[row].version != version
        ]
        missing.extend(f"the end of {row}" for row in gone if row in newest and newest[row].op != "d")
        return not missing

    try:
        await eventually(all_there, seconds=seconds, every=0.5)
    except AssertionError as error:
        raise AssertionError(f"{len(missing)} are not in {topic_of(name)}: {missing[:5]}") from error


async def streams_on(bootstrap: str, name: str) -> None:
    """Waits until there are more changes than now: the snapshot is at its end, and the stream continues."""

    async def streamed() -> int:
        return sum(change.op == "u" for change in await changes(bootstrap, name))

    before = await streamed()

    async def more() -> bool:
        return await streamed() > before + 50

    await eventually(more, every=0.2, what=f"{name} streams changes")


def copied(target: str) -> dict[int, int]:
    """The versions that the sink has written, by row; empty while its table does not exist."""
    try:
        with psycopg.connect(target, autocommit=True) as connection:
            return dict(connection.execute(f"SELECT id, version FROM {COPIED}").fetchall())
    except psycopg.errors.UndefinedTable:
        return {}


async def in_mid_snapshot(bootstrap: str, name: str, rows: int, *, begun: int = 1) -> None:
    """Waits until a part of so many rows of a snapshot is there, and only a part.

    `begun` is the snapshot's number, from 1.
    """

    async def some() -> int:
        actual_changes = await changes(bootstrap, name)
        starts = [at for at, actual_change in enumerate(actual_changes) if actual_change.first]
        return (
            sum(actual_change.op == "r" for actual_change in actual_changes[starts[begun - 1] :])
            if len(starts) >= begun
            else 0
        )

    there = await eventually(some, seconds=PATIENCE, what=f"snapshot {begun} of {name} has begun")
    assert there < rows, "the snapshot was at its end already"


async def ends_clean(worker: Any, bootstrap: str, name: str, rows: Any, before: Any) -> None:
    """The connector runs, its worker ends by itself, and its output is right; a kill came in mid-snapshot."""
    await running(worker, name)
    assert await worker.end() == 0
    report = rows.judged(await changes(bootstrap, name), before)
    assert report.clean, report
    assert report.snapshots > 1, f"no kill came in mid-snapshot: {report}"
