"""Records batches written by other clients, and the records that Kafka's own classes read from them.

`python -m recorded.batches.record_batches` writes batches.json beside it, a line for each writer, codec and format:
Java's classes in formats 0 to 2, with the broker's time and with the writer's, in transactions and with their markers;
librdkafka and sarama (in Go) through a broker, whose log files are read. It needs a JDK and Go, and fetches jars and
modules. Bytes are hex. `batches` has the records that Java reads, batch by batch.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find
from recorded.one_a_line import one_a_line
from support.brokers.broker import running_broker
from support.kafka.topics import create_topic

HERE = Path(__file__).resolve().parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WRITERS = ("librdkafka", "sarama")
TIME = 1_700_000_000_123


def by_librdkafka(bootstrap: str) -> None:
    """Fills a topic per codec, one with the broker's time, and one with an aborted and a committed transaction."""
    for name in (*(f"{writer}-{codec}" for writer in WRITERS for codec in CODECS), "librdkafka-transactions"):
        create_topic(bootstrap, name)
    for codec in CODECS:
        _produce(Producer({"bootstrap.servers": bootstrap, "compression.type": codec}), f"librdkafka-{codec}")
    create_topic(bootstrap, "librdkafka-append-time", **{"message.timestamp.type": "LogAppendTime"})
    _produce(Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"}), "librdkafka-append-time")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "recorder"})
    producer.init_transactions(60)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        _produce(producer, "librdkafka-transactions")
        end(60)


def _produce(producer: Producer, topic: str) -> None:
    for n in range(5):
        headers = [("h", b"1"), ("h", None), ("é", b"")] if n == 2 else []
        value = None if n == 3 else b"" if n == 4 else b"value %d of a text that repeats and repeats and repeats" % n
        key = None if n == 0 else b"k%d" % n
        producer.produce(topic, value, key, partition=0, timestamp=TIME + 5 - n, headers=headers)
    assert producer.flush(60) == 0


def written(home: Path) -> Iterator[dict[str, str]]:
    """Returns the log files of both clients' topics. A marker of today begins a file of its own."""
    topics: dict[str, bytes] = {}
    for path in sorted(home.rglob("0*.log")):
        topic = path.parent.name.removesuffix("-0")
        if topic.startswith(WRITERS):
            topics[topic] = topics.get(topic, b"") + path.read_bytes()
    return ({"name": topic, "bytes": value.hex()} for topic, value in topics.items())


async def main() -> None:
    """Writes the record."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_broker(Path(folder)) as bootstrap:
            await asyncio.to_thread(by_librdkafka, bootstrap)
            command = ["go", "run", ".", bootstrap]
            await asyncio.to_thread(subprocess.run, command, cwd=HERE / "sarama", check=True)
            lines = "".join(json.dumps(item) + "\n" for item in written(Path(folder)))
    jars = await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT))
    command = [str(find().program), "-cp", ":".join(map(str, jars)), str(HERE / "RecordBatches.java")]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    told = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]
    (HERE / "batches.json").write_text(one_a_line(told, ascii_only=True))
    print(f"{len(told)} sets of batches")


if __name__ == "__main__":
    asyncio.run(main())
