"""The connectors of the rounds: sources, sinks, and two that fail when a file orders it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = "org.apache.kafka.connect.tools"
SOURCE_OF_FILE, SINK_TO_FILE = "FileStreamSource", "FileStreamSink"
COUNTING, TAKING = f"{TOOLS}.VerifiableSourceConnector", f"{TOOLS}.VerifiableSinkConnector"
FAILING_SOURCE, FAILING_SINK = f"{TOOLS}.MockSourceConnector", f"{TOOLS}.MockSinkConnector"
CLASSES = {
    **dict.fromkeys(("file0", "file1", "file2"), SOURCE_OF_FILE),
    **dict.fromkeys(("counting0", "counting1", "counting2"), COUNTING),
    **dict.fromkeys(("lines0", "lines1"), SINK_TO_FILE),
    **dict.fromkeys(("taking0", "taking1"), TAKING),
    "failing-source": FAILING_SOURCE,
    "failing-sink": FAILING_SINK,
}
ALTERED = ("file0", "file1", "lines0", "lines1")
"""The connectors whose offsets clients alter: their deliveries are not judged."""
WHOLE = ("file2", "counting0", "counting1", "counting2")
"""Sources that deliver every number, whatever is done to them but that."""
MANY = (COUNTING, TAKING)
"""Classes with as many tasks as permitted; the others have one."""
FAULTS = ("none", "none", "fail", "fail-retriable", "fail open", "fail commit", "fail configure")


@dataclass
class Connectors:
    """The connectors of one round, whose names and topics begin with its prefix."""

    prefix: str
    folder: Path
    written: int = 0
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = [self.full(word) for word in CLASSES]
        for word in self.of_class(SOURCE_OF_FILE):
            self.input(word).touch()

    def full(self, word: str) -> str:
        """A connector's name, from its word in the table."""
        return f"{self.prefix}-{word}"

    def of_class(self, kind: str) -> list[str]:
        """The words of all connectors of a class."""
        return [word for word, value in CLASSES.items() if value == kind]

    def word(self, name: str) -> str:
        """The word of a connector's name."""
        return name.removeprefix(f"{self.prefix}-")

    def topics(self, word: str) -> list[str]:
        """The two topics that a source chooses from."""
        return [f"{self.prefix}-{word}-{letter}" for letter in "ab"]

    @property
    def all_topics(self) -> list[str]:
        """The topics of all sources that write any."""
        return [t for kind in (SOURCE_OF_FILE, COUNTING) for word in self.of_class(kind) for t in self.topics(word)]

    def input(self, word: str) -> Path:
        """The input file of a source."""
        return self.folder / f"{word}.in"

    def config(self, name: str, chance: random.Random) -> dict[str, str]:
        """A new configuration: its `tag` is another number each time."""
        self.written += 1
        word = self.word(name)
        kind = CLASSES[word]
        fields = {"connector.class": kind, "tag": str(self.written), "tasks.max": str(chance.randint(1, 4))}
        read = ",".join(sorted(chance.sample(self.all_topics, chance.randint(1, 3))))
        written = chance.choice(self.topics(word))
        output = str(self.folder / f"{word}.out")
        if kind == SOURCE_OF_FILE:
            return {**fields, "file": str(self.input(word)), "topic": written}
        if kind == COUNTING:
            return {**fields, "name": name, "topic": written, "throughput": "5", "output.file": output}
        if kind == SINK_TO_FILE:
            return {**fields, "file": output, "topics": read}
        if kind == TAKING:
            return {**fields, "name": name, "topics": read, "output.file": output}
        fields |= {"control_file": str(self.control)}
        if kind == FAILING_SOURCE:  # by itself it never recovers
            return {**fields, "keelman.restart.max.attempts": "0"}
        return {**fields, "topics": read, "keelman.restart.backoff.ms": "200", "keelman.restart.backoff.max.ms": "1000"}

    def offset(self, name: str, number: int) -> dict[str, object]:
        """An entry with which clients alter the connector's offsets."""
        word = self.word(name)
        if CLASSES[word] == SOURCE_OF_FILE:
            return {"partition": {"filename": str(self.input(word))}, "offset": {"position": number}}
        partition = {"kafka_topic": self.topics("file0")[0], "kafka_partition": 0}
        return {"partition": partition, "offset": {"kafka_offset": number}}

    @property
    def control(self) -> Path:
        """The file that failing connectors read."""
        return self.folder / "control"

    def order(self, fault: str) -> None:
        """Makes the failing connectors fail in this way from now on; empty: no more."""
        beside = self.control.with_suffix(".new")
        beside.write_text(fault)
        beside.replace(self.control)


def tasks_of(config: dict[str, str]) -> int:
    """The number of a connector's tasks with this configuration."""
    return int(config.get("tasks.max", 1)) if config["connector.class"] in MANY else 1
