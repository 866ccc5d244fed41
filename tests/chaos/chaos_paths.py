"""The five paths over which records are copied: what they are fed, what is seen, and the expected offsets."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.chaos_kafka import Partition, Topics
from chaos.chaos_system import System
from keelman.engine.sink.exactly_once.journal import Journal
from support.connectors import touched
from support.numbered import Number, Stream, line, parsed

Says = dict[str, tuple[Any, Any]]
PARTITIONS = 2
OTHERS = 98
"""The task by whose number the lines of others are known in a file that a path shares with them."""
OTHERS_BYTES = 60
MOST_FORMER = 9
"""More than a file is ever renamed or copied in a run."""


@dataclass
class Run(ABC):
    """One path in one scenario. `streams` are fed in parallel, each in its order."""

    system: System
    folder: Path
    name: str
    records: int
    seed: int
    streams: list[Stream] = field(default_factory=list)
    gone: frozenset[Number] = frozenset()
    """The records that the source itself has lost, by an unclean election."""
    others: int = 0
    """Lines that others appended to its file."""

    kind = ""
    tasks = PARTITIONS
    aborting = False
    """Whether aborted records of a stranger are mixed into the fed records."""

    def __post_init__(self) -> None:
        count = self.records // self.tasks
        self.streams = [Stream(t, count, 40, 160, self.seed) for t in range(self.tasks)]

    @property
    def sent(self) -> dict[int, int]:
        """The number of records that each task sends, and that others send."""
        return {**{s.task: s.count for s in self.streams}, OTHERS: self.others}

    @property
    def feed_topic(self) -> str:
        """The topic that is fed; empty for a file."""
        return f"{self.name}-in"

    @property
    def output(self) -> tuple[Partition, ...]:
        """The partitions that it writes to; empty for a file."""
        return tuple((self.out_topic, p) for p in range(self.partitions)) if self.out_topic else ()

    @property
    def transactional(self) -> tuple[str, ...]:
        """The topics of its own that it writes in transactions."""
        return (self.out_topic,) if self.out_topic else ()

    partitions = PARTITIONS
    """The partitions of the topic that it writes to."""
    fed_partitions = PARTITIONS
    out_topic = ""
    transactional_id = ""

    @property
    def group(self) -> str:
        """A sink's consumer group."""
        return f"connect-{self.name}" if "sink" in self.kind else ""

    @abstractmethod
    def config(self) -> dict[str, str]:
        """The connector's configuration."""

    def prepare(self, topics: Topics) -> None:
        """Creates its topics."""
        if self.feed_topic:
            topics.create(self.feed_topic, PARTITIONS)
        if self.out_topic:
            topics.create(self.out_topic, self.partitions)

    def seen(self, topics: Topics) -> Mapping[str, Sequence[bytes | None]]:
        """All records that it wrote, as committed readers see them."""
        return {f"{t}-{p}": [v for _, v in topics.read((t, p))] for t, p in self.output}

    @abstractmethod
    def says(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        """Its offsets in Connect's API, compared with the data."""

    def _group(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        told = {
            (row["partition"]["kafka_topic"], row["partition"]["kafka_partition"]): row["offset"]["kafka_offset"]
            for row in offsets
        }
        return {f"group of {t}-{p}": (told.get((t, p)), self._next(topics, p, told.get((t, p)))) for t, p in self.read}

    @property
    def read(self) -> list[Partition]:
        """The fed partitions."""
        return [(self.feed_topic, p) for p in range(self.fed_partitions)] if self.feed_topic else []

    def _next(self, topics: Topics, partition: int, says: int | None) -> int:
        """The expected offset of a sink.

        It is past the last visible record, and before or past the records that no reader sees. A topic that was made
        again may have no visible record in a partition.
        """
        read = topics.read((self.feed_topic, partition))
        most = topics.ends((self.feed_topic, partition))[1]
        least = read[-1][0] + 1 if read else 0
        return says if says is not None and least <= says <= most else least


class FileRun(Run):
    """A run that shares its file with others."""

    @property
    @abstractmethod
    def file(self) -> Path:
        """The file, which may be renamed and copied while it is read or written."""

    @property
    def files(self) -> list[Path]:
        """The file and its former or copied files, the oldest first."""
        former = (touched.beside(self.file, number) for number in range(MOST_FORMER, 0, -1))
        return [file for file in (*former, self.file) if file.exists()]

    def append_as_others(self) -> None:
        """Appends a line of another writer."""
        with self.file.open("ab", buffering=0) as file:
            file.write(line(Number(OTHERS, self.others), OTHERS_BYTES) + b"\n")
        self.others += 1


class FileSource(FileRun):
    """A growing file to a topic."""

    kind = "file source"
    tasks = 1
    partitions = 1

    @property
    def feed_topic(self) -> str:
        """Empty: a file is fed."""
        return ""

    @property
    def file(self) -> Path:
        """The source's file."""
        return self.folder / f"{self.name}.in"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.out_topic = f"{self.name}-out"
        self.transactional_id = f"wc-{self.name}-0"

    def config(self) -> dict[str, str]:
        return {"connector.class": "FileStreamSource", "file": str(self.file), "topic": self.out_topic}

    def says(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        seen = sum(len(value or b"") + 1 for values in self.seen(topics).values() for value in values)
        # Records that its topic has lost were copied too; lines of former files are before the position in this one.
        visible = self.file.stat().st_size if self.gone or len(self.files) > 1 else seen
        told = [row["offset"]["position"] for row in offsets]
        return {"file position": (told, [visible])}


class JavaSource(FileSource):
    """The same by a Java task: each of its polls is a transaction with one offset for all of its records."""

    kind = "Java source"

    def config(self) -> dict[str, str]:
        expected = {"transaction.boundary": "poll", "exactly.once.support": "required"}
        return {**super().config(), **expected, "connector.class": "acme.PolledLines"}


class FileSink(FileRun):
    """A topic to a file."""

    kind = "file sink"
    aborting = True
    _file: Path | None = None

    @property
    def file(self) -> Path:
        """The sink's file."""
        return self._file or self.folder / f"{self.name}.out"

    def move(self, file: Path) -> None:
        """Writes to another file; called before it starts."""
        self._file = file

    def config(self) -> dict[str, str]:
        return {"connector.class": "FileStreamSink", "file": str(self.file), "topics": self.feed_topic}

    def seen(self, topics: Topics) -> Mapping[str, Sequence[bytes | None]]:
        lines: list[bytes | None] = []
        for file in self.files:
            if data := file.read_bytes():
                assert data.endswith(b"\n"), f"{file} ends in the middle of a line"
                lines += data[:-1].split(b"\n")
        return {self.file.name: lines}

    def says(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        entry = Journal(self.file).load()
        assert entry is not None
        (of_reader,) = entry.offsets.values()
        stored_offsets = {tuple(p): k.offset for p, k in of_reader.items()}
        says = self._group(topics, offsets)
        least, most = self._ends()
        says["journal's length"] = (entry.length, entry.length if least <= entry.length <= most else most)
        for at in self.read:
            says[f"journal of {at[0]}-{at[1]}"] = (
                stored_offsets.get(at),
                self._next(topics, at[1], stored_offsets.get(at)),
            )
        return says

    def _ends(self) -> tuple[int, int]:
        """The file's end, before and after the lines that others appended last."""
        data = self.file.read_bytes() if self.file.exists() else b""
        least = len(data)
        for single_line in reversed(data.splitlines(keepends=True)):
            number = parsed(single_line[:-1])
            if number is None or number.task != OTHERS:
                break
            least -= len(single_line)
        return least, len(data)


class Mirror(Run):
    """A topic to a topic of the same cluster under another name, as MirrorMaker 2 does."""

    kind = "mirror"
    aborting = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.out_topic = f"src.{self.feed_topic}"
        self.transactional_id = f"wc-{self.name}-0"

    def prepare(self, topics: Topics) -> None:
        topics.create(self.feed_topic, PARTITIONS)
        topics.create(self.out_topic, PARTITIONS)

    def config(self) -> dict[str, str]:
        converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
        return {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": "src",
            "target.cluster.alias": "dst",
            "source.cluster.bootstrap.servers": self.system.bootstrap,
            "target.cluster.bootstrap.servers": self.system.bootstrap,
            **{f"{end}.cluster.{k}": v for end in ("source", "target") for k, v in self.system.client.items()},
            "topics": self.feed_topic,
            "tasks.max": str(PARTITIONS),
            "refresh.topics.interval.seconds": "2",
            "replication.factor": str(self.system.replicas),
            "offset-syncs.topic.replication.factor": str(self.system.replicas),
            "sync.topic.acls.enabled": "false",
            "source.consumer.isolation.level": "read_committed",
            "source.consumer.auto.offset.reset": "earliest",
            "key.converter": converter,
            "value.converter": converter,
        }

    def says(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        told = {row["partition"]["partition"]: row["offset"]["offset"] for row in offsets}
        return {f"offset of {topic}-{p}": (told.get(p), topics.read((topic, p))[-1][0]) for topic, p in self.read}


class KafkaSink(Run):
    """A topic to a topic, by the sink."""

    kind = "Kafka sink"
    aborting = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.out_topic = f"{self.name}-out"
        self.transactional_id = f"wc-{self.name}-0-sink"

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "keelman.connectors.KafkaSinkConnector",
            "topics": self.feed_topic,
            "tasks.max": str(PARTITIONS),
            "topic": self.out_topic,
        }

    @property
    def transactional(self) -> tuple[str, ...]:
        """Includes the topic in which it keeps its offsets."""
        return self.out_topic, self.kept_topic

    @property
    def kept_topic(self) -> str:
        """The topic of its own offsets, beside those of the group."""
        return f"connect-{self.name}-exactly-once"

    def says(self, topics: Topics, offsets: list[dict[str, Any]]) -> Says:
        table = topics.table((self.kept_topic, 0))
        rows = ((json.loads(key), json.loads(value)) for key, value in table)
        at = {(k["topic"], k["partition"]): v["offset"] for k, v in rows if "offset" in v}
        says = self._group(topics, offsets)
        for read in self.read:
            says[f"kept for {read[0]}-{read[1]}"] = (at.get(read), self._next(topics, read[1], at.get(read)))
        return says


PATHS: dict[str, type[Run]] = {kind.kind: kind for kind in (FileSource, JavaSource, Mirror, FileSink, KafkaSink)}
