"""Numbered lines that are copied between hosts, and whether all of them came, each once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.eventually import eventually
from support.numbered import Number, line
from support.oracle import Report, judge

TICK_SECONDS = 0.05


class Lines:
    """Files that grow by numbered lines, each copied to a topic of its own; the lines written and the lines seen.

    `client`: how its clients connect, in librdkafka's properties; in plain text without.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        topics: Sequence[str],
        *,
        brokers: int = 3,
        client: Mapping[str, str] | None = None,
    ) -> None:
        self._brokers = brokers
        self.files = {topic: folder / f"{topic}.txt" for topic in topics}
        self.written = dict.fromkeys(topics, 0)
        self.seen: dict[str, list[bytes | None]] = {topic: [] for topic in topics}
        self._client = {"bootstrap.servers": bootstrap, **(client or {})}
        self._over = threading.Event()
        self._writing = threading.Event()

    def config(self, topic: str) -> dict[str, str]:
        """The configuration of the connector that copies one of the files."""
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(self.files[topic]),
            "topic": topic,
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        }

    @contextlib.contextmanager
    def flowing(self) -> Iterator[None]:
        """Makes the topics, writes and reads until the block is left."""
        admin = AdminClient(dict(self._client))
        count, config = self._brokers, {"min.insync.replicas": str(min(2, self._brokers))}
        # Each broker in turn leads one of them.
        led = {t: [[(first + n) % count for n in range(count)]] for first, t in enumerate(self.files)}
        topics = admin.create_topics(
            [NewTopic(t, num_partitions=1, replica_assignment=replicas, config=config) for t, replicas in led.items()]
        )
        for item in topics.values():
            item.result(300)
        for file in self.files.values():
            file.touch()
        self._writing.set()
        threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._read)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(300)

    async def passes(self, topics: Sequence[str] = (), *, seconds: float = 300.0) -> float:
        """Returns when a line written now is seen; the seconds that it took."""
        return await self._until_seen({t: self.written[t] + 1 for t in topics or self.files}, seconds)

    async def judged(self) -> Report:
        """Stops writing; the oracle's report, once the last line is seen."""
        await self._ended({topic: topic for topic in self.files})
        return judge(dict(enumerate(self.written.values())), self.seen)

    async def _until_seen(self, expected: Mapping[str, int], seconds: float) -> float:
        """Returns when so many records of these topics are seen; the seconds that it took."""
        begun = time.monotonic()

        def there() -> bool:
            left = {t: (len(self.seen[t]), n) for t, n in expected.items() if len(self.seen[t]) < n}
            assert not left, f"seen, wanted: {left}"
            return True

        await eventually(there, seconds=seconds, what="records pass")
        return time.monotonic() - begun

    async def _ended(self, sources: Mapping[str, str]) -> None:
        """Stops writing; returns when the last records are seen in these topics.

        `sources` maps each topic to the topic whose lines it receives.
        """
        self._writing.clear()
        await asyncio.sleep(2 * TICK_SECONDS)  # the tick under way

        def there() -> bool:
            return all(len(self.seen[seen]) >= self.written[topic] for seen, topic in sources.items())

        await eventually(there, what="the last records are seen")
        await asyncio.sleep(1.0)  # a duplicate may come late

    def _write(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            if self._writing.is_set():
                for task, (topic, file) in enumerate(self.files.items()):
                    with file.open("ab") as stream:
                        stream.write(line(Number(task, self.written[topic]), 60) + b"\n")
                    self.written[topic] += 1

    def _read(self) -> None:
        settings = {**self._client, "group.id": "lines", "isolation.level": "read_committed"}
        settings |= {"enable.auto.commit": "false", "socket.timeout.ms": "3000", "reconnect.backoff.max.ms": "300"}
        consumer = Consumer({**settings, "error_cb": lambda _: None, "log_level": 0})
        consumer.assign([TopicPartition(topic, 0, 0) for topic in self.seen])
        while not self._over.is_set():
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    self.seen[message.topic()].append(message.value())
        consumer.close()
