"""Tasks of acme.ScriptedSink, which act as their configuration orders and note the arguments of their calls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from support.copying.harness import latest
from support.java.shared_host import HostedRun, hosted_java
from support.waiting import until


class Scripted:
    """Tasks of acme.ScriptedSink: their configuration, their notes, and their group's offsets."""

    def __init__(self, bootstrap: str, name: str, classes: Path, folder: Path) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.sent_ms = time.time_ns() // 1_000_000
        self.calls, self.log = folder / "calls", folder / "log"
        self.config = {
            "name": name,
            "connector.class": "acme.ScriptedSink",
            "task.class": "acme.ScriptedSink$ScriptedTask",
            "classes": str(classes),
            "log": str(self.calls),
            "topics": name,
        }

    def hosted(
        self, die: list[Any] | None = None, worker: dict[str, str] | None = None, task: int = 0, **config: Any
    ) -> Any:
        """A run that copies, with additional keys, in which an underscore replaces a dot."""
        workers = {"keelman.commit.interval.ms": "300", **(worker or {})}
        spec: dict[str, Any] = {"fields": {"worker_config": workers, "task": task}, **({"die": die} if die else {})}
        fields = {**self.config, **{key.replace("_", "."): value for key, value in config.items()}}
        self.log.unlink(missing_ok=True)
        return hosted_java(self.bootstrap, fields, self.log, **spec)

    def send(self, values: list[str], topic: str = "", **more: Any) -> None:
        """Writes records with keys, headers and a time."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for n, value in enumerate(values):
            fields = {"key": f"k{n}", "headers": [("h", str(n).encode())], "timestamp": self.sent_ms + n, **more}
            producer.produce(topic or self.name, value.encode(), **fields)
        assert producer.flush(300) == 0

    def noted(self, word: str) -> list[str]:
        """The task's notes under a word, in order."""
        text = self.calls.read_text() if self.calls.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines() if line.split(" ")[0] == word]

    def values(self) -> list[str]:
        """The values that were put, in order; half a line after a kill does not count."""
        lines = [line.split(" ") for line in self.noted("record")]
        return [fields[4] for fields in lines if len(fields) == 7]

    def group(self, topic: str = "", partition: int = 0) -> int:
        """The group's offset."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{self.name}"})
        (result,) = consumer.committed([TopicPartition(topic or self.name, partition)], timeout=300)
        consumer.close()
        return int(result.offset)

    def until_put(self, process: HostedRun, values: list[str]) -> None:
        """Returns once exactly these were put, in any order."""

        def done() -> bool:
            assert process.poll() is None, self.ended_with()
            return sorted(self.values()) == sorted(values)

        try:
            until(done, self.name)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.values()[-5:]}\n{self.ended_with()}") from error

    def ended_with(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def stopped(self, process: HostedRun) -> None:
        """Drains it."""
        process.terminate()
        assert process.wait(120) == 0, self.ended_with()

    def ends(self, process: HostedRun) -> dict[str, Any]:
        """The last report of a process that is about to end by itself."""
        until(lambda: process.poll() is not None, f"{self.name} ends: {self.ended_with()}")
        return latest(self.log)
