"""Topics whose log files are of Kafka 0.8 to 0.10, on a broker of today, which returns them unchanged."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from component.kafka.test_batch_fetcher import fetching, rows, until_ends
from keelman.engine.reading import time_ms
from support.brokers.broker import BrokerProcess
from support.kafka.topics import create_topic, messages
from support.places import RECORDED_FOLDER

pytestmark = pytest.mark.component

RECORDED = json.loads((RECORDED_FOLDER / "batches" / "batches.json").read_text())
SOME = {"java-none-v0", "java-lz4-v0", "java-gzip-v1-LogAppendTime", "java-snappy-v1-CreateTime"}
OLD = [entry for entry in RECORDED if entry["name"] in SOME]


def topic_of(entry: dict[str, Any]) -> str:
    return f"old-{entry['name']}"


def hexed(value: Any) -> str | None:
    return None if value is None else bytes(value).hex()


def put_old_files(home: Path) -> None:
    """Replaces the empty files of each topic."""
    for entry in OLD:
        (folder,) = home.rglob(f"{topic_of(entry)}-0")
        for path in folder.glob("0*"):
            path.unlink()
        (folder / f"{0:020d}.log").write_bytes(bytes.fromhex(entry["bytes"]))


async def test_old_messages_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Both by the mirror's fetcher, and by librdkafka, with which other sinks read."""
    broker = BrokerProcess(tmp_path)
    await broker.start()
    try:
        for item in OLD:
            await asyncio.to_thread(create_topic, broker.bootstrap, topic_of(item))
        await broker.end()
        put_old_files(tmp_path)
        await broker.start()
        for entry in OLD:
            expected = [
                (record["offset"], record["timestamp"], record["key"], record["value"])
                for batch in entry["batches"]
                for record in batch["records"]
            ]
            positions = {(topic_of(entry), 0): 0}
            async with fetching(broker.bootstrap, positions) as fetcher:
                taken = rows(await until_ends(fetcher, positions))
            assert [(*row[1:3], hexed(row[3]), hexed(row[4])) for row in taken] == expected, entry["name"]
            actual_messages = await asyncio.to_thread(messages, broker.bootstrap, topic_of(entry))
            by_library = [(m.offset(), time_ms(m) or -1, hexed(m.key()), hexed(m.value())) for m in actual_messages]
            assert by_library == expected, entry["name"]
    finally:
        await broker.end()
