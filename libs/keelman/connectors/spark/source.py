"""SparkSource: copies a data set in any format that Spark reads, once and whole, in the parts that Spark makes of it.

The task itself splits the data set and keeps the books; its rows are copied by parts, each in a slot that gets the rows
of one partition from Spark (keelman.connect.tasks.data_set). Each part's progress is in the offset topic
under an extra key; when all are read, one transaction replaces these keys by the task's normal offset.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least, non_empty
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Column, Offset, Partition, SourceBatch
from keelman.connect.tasks.data_set import PART, PARTS, PASSING, PROBLEM, SPLIT, DataSet
from keelman.engine.slot.part_rows import PartRows, claim_rows
from keelman.model.keys import under

MAX_SLOTS = 63
MAX_PARTS = 2_000
BEGUN = "keelman.data.begun"
OPTION, SETTING = "spark.option.", "spark.conf."
# Formats of files: Spark returns the rows of a file's range in the order of the file.
ORDERED = ("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml")
_COORDINATES = re.compile(r"[\w.-]+:[\w.-]+:[\w.+-]+", re.ASCII)
_CLASS = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
WAIT_SECONDS = 0.25
PART_TIMEOUT_MS = "900000"  # the most that brokers allow by their default


class SparkConnector(Connector):
    """Base of the source and the sink: one task, whose work Spark does."""

    version = "1.0.0"
    runs_on = "anywhere"

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """One."""
        return [dict(config)]


class SparkSource(SparkConnector):
    """One task; Spark's partitions are its parts."""

    names = ("keelman.connectors.SparkSourceConnector", "SparkSourceConnector", "SparkSource")
    direction = Direction.SOURCE
    reads_data_sets = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`spark.*`, `topic`, `key.column`."""
        high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, Type.STRING
        ordered = "Whether a part's rows come in the same order each time; by default for formats of files."
        return ConfigDef(
            ConfigKey("spark.format", text, REQUIRED, high, "The argument of spark.read.format.", non_empty),
            ConfigKey("spark.path", text, "", high, "The argument of load; empty where options name the data set."),
            ConfigKey("spark.schema", text, "", medium, "Columns and types as DDL, for formats that need them."),
            ConfigKey("topic", text, "", high, "Topic of the rows that name none in a column `topic`."),
            ConfigKey("key.column", text, "", medium, "Column that gives the keys of rows that are sent as JSON."),
            ConfigKey("spark.slots", Type.INT, 4, medium, "Parts that are read at the same time.", slots),
            ConfigKey("spark.every.ms", Type.LONG, 0, medium, "Time between two reads; 0: once.", at_least(0)),
            ConfigKey("spark.ordered", Type.BOOLEAN, None, low, ordered),
            ConfigKey("spark.python.source", text, "", low, "module:Class of a Python data source.", python_class),
            ConfigKey("spark.packages", Type.LIST, [], low, "Jars it needs: group:artifact:version.", coordinates),
        )

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Always; and in no other way."""
        return True

    @classmethod
    def data_set(cls, config: Mapping[str, str]) -> DataSet | None:
        """As configured. Raises ConfigValueError."""
        parsed = cls.config_def().parse(config)
        return DataSet(
            parsed["spark.format"],
            parsed["spark.path"],
            under(OPTION, config),
            parsed["spark.schema"],
            parsed["key.column"],
            under(SETTING, config),
            tuple(parsed["spark.packages"]),
            parsed["spark.python.source"],
        )

    @classmethod
    def data_slots(cls, config: Mapping[str, str]) -> int:
        """`spark.slots`. Raises ConfigValueError."""
        return int(cls.config_def().parse(config)["spark.slots"])

    @classmethod
    def split(
        cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None], *, slots: int, least: int
    ) -> list[dict[str, str]]:
        """Returns every part that is not read yet, whatever `slots` and `least`; none when all are, or no read is due.

        Raises ConnectError when Spark cannot read the data set, or it has changed while it was read.
        """
        books = Books(config, offset)
        if not books.due:
            return []
        todo = books.todo()
        if not todo:
            return []
        return [{BEGUN: "true"}, *({PART: str(part), **cls._of_part(config)} for part in todo)]

    @classmethod
    def _of_part(cls, config: Mapping[str, str]) -> dict[str, str]:
        limits = {SPLIT: config[SPLIT]}
        if not _ordered(config):
            timeout = "producer.override.transaction.timeout.ms"
            limits |= {"transaction.boundary": "connector", timeout: config.get(timeout, PART_TIMEOUT_MS)}
        return limits

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """Returns the reader of a part, or the reader that keeps the books. Raises ConnectError."""
        books = Books(config, offset)
        if PART not in config:
            return BooksReader(books, begun=BEGUN in config)
        part = int(config[PART])
        at = books.progress.get(part)
        read = 0 if at is None else int(at["rows"])
        return SparkRows(
            config.get("topic", "").strip(),
            books.partition(part),
            config[SPLIT],
            name=f"part {part} of {books.name}",
            read=read,
            done=at is not None and bool(at.get("done")),
            ordered=_ordered(config),
        )


class Books:
    """The progress of a data set by the offset topic: the normal offset, and the progress of each part."""

    def __init__(self, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> None:
        """Raises ConfigValueError."""
        data = SparkSource.data_set(config)
        assert data is not None
        self.name = f"{data.format} {data.name}".rstrip()
        self.normal: Partition = {"format": data.format, "path": data.name}
        self.last = offset(self.normal)
        offsets = {part: offset(self.partition(part)) for part in range(MAX_PARTS)}
        self.progress = {part: at for part, at in offsets.items() if at is not None}
        self._every = SparkSource.config_def().parse(config)["spark.every.ms"] / 1000
        self._parts, self._split = config.get(PARTS, "0"), config.get(SPLIT, "")
        self._problem, self._passing = config.get(PROBLEM, ""), PASSING in config

    def partition(self, part: int) -> Partition:
        """The extra key of a part."""
        return {**self.normal, "part": part}

    @property
    def due(self) -> bool:
        """Whether the data set must be read, or is being read."""
        if self.last is None or self.progress:
            return True
        return bool(self._every > 0 and time.time() >= int(self.last["time"]) / 1000 + self._every)

    def todo(self) -> list[int]:
        """The parts that are not read to their end. Raises ConnectError as `split` does."""
        if self._problem:
            kind = RetriableConnectError if self._passing else ConnectError
            raise kind(f"Spark cannot read {self.name}: {self._problem}")
        count = int(self._parts)
        if count > MAX_PARTS:
            raise ConnectError(
                f"Spark makes {count} parts of {self.name}, {MAX_PARTS} are the most: give it larger ones, for files "
                "by spark.conf.spark.sql.files.maxPartitionBytes"
            )
        if any(at.get("split") != self._split for at in self.progress.values()):
            raise ConnectError(
                f"{self.name}, or how Spark splits it, has changed after {len(self.progress)} of its parts were read: "
                "restore the former data, or reset the connector's offsets to read all of it again"
            )
        return [part for part in range(count) if not (self.progress.get(part) or {}).get("done")]

    def closed(self) -> list[tuple[Partition, Offset | None]]:
        """Returns the normal offset of a data set that is read, in place of its parts' offsets."""
        rows = sum(int(at["rows"]) for at in self.progress.values())
        offset = {"parts": int(self._parts), "rows": rows, "split": self._split, "time": int(time.time() * 1000)}
        return [(self.normal, offset), *((self.partition(part), None) for part in self.progress)]


class BooksReader(Reader):
    """The reader of the task's own copy run: keeps the books and copies no rows."""

    lag_unit = "records"

    def __init__(self, books: Books, *, begun: bool) -> None:
        """`begun`: parts are being read. Raises ConnectError when parts are left to read, and are not being read."""
        self._books, self._begun = books, begun
        self._ends = not begun and books.due
        if self._ends and books.todo():
            raise ConnectError(
                "SparkSource delivers exactly once only: the worker has exactly.once.source.support=disabled"
            )

    def partitions(self) -> Sequence[Partition]:
        """The data set."""
        return [self._books.normal]

    def read(self) -> SourceBatch | None:
        """Returns only, at the end, the offset of the whole. Raises RetriableConnectError when the next read is due."""
        if self._ends:
            self._ends = False
            offsets = self._books.closed()
            self._books.last, self._books.progress = offsets[0][1], {}
            return SourceBatch("", Column([]), offsets=offsets, short=True, raw=True)
        if self.glance():
            raise RetriableConnectError(f"it is time to read {self._books.name} again")
        return None

    def glance(self) -> bool:
        """Returns whether the next read is due."""
        return not self._begun and self._books.due

    def left(self) -> int | None:
        """Returns 0 once all parts are read, None before."""
        return None if self._begun or self._books.due else 0

    def caught_up(self) -> bool:
        """It has nothing to read."""
        return True


def _ordered(config: Mapping[str, str]) -> bool:
    parsed = SparkSource.config_def().parse(config)
    ordered = parsed["spark.ordered"]
    return bool(ordered) if ordered is not None else parsed["spark.format"].lower() in ORDERED


def coordinates(name: str, value: Sequence[str]) -> None:
    """Raises ConfigValueError unless each value is group:artifact:version."""
    for coordinate in value or ():
        if not _COORDINATES.fullmatch(coordinate):
            raise ConfigValueError(name, ",".join(value), f"{coordinate!r} is not group:artifact:version")


def python_class(name: str, value: str) -> None:
    """Raises ConfigValueError unless the value is a Python class, or empty."""
    if value and not _CLASS.fullmatch(value):
        raise ConfigValueError(name, value, "Value must be module:Class")


def slots(name: str, value: Any) -> None:
    """Raises ConfigValueError unless Spark may run this number of slots at the same time."""
    if not 1 <= value <= MAX_SLOTS:
        raise ConfigValueError(name, value, f"Value must be a whole number, at least 1 and at most {MAX_SLOTS}")


class SparkRows(Reader):
    """Reads the rows that Spark passes to this slot: columns `value` and, if present, `key`, `topic`, `partition` and
    `headers`, as Spark's own Kafka sink takes them. Payloads are sent unchanged, whatever the converters."""

    lag_unit = "records"
    limits_bytes = True

    def __init__(
        self, topic: str, partition: Partition, split: str, *, name: str, read: int, done: bool, ordered: bool
    ) -> None:
        """`read` rows of it are committed, all when `done`. Without `ordered` the part is one transaction."""
        self._topic, self._partition, self._split, self._name = topic, partition, split, name
        self._ordered = ordered
        self._skip = read
        self._row = 0
        self._done = done
        self._ending = False
        self._batch: Any = None
        self._rows: PartRows | None = None if done else claim_rows()

    def partitions(self) -> Sequence[Partition]:
        """The part."""
        return [self._partition]

    def read(self) -> SourceBatch | None:
        """The next rows for one topic. Raises ConnectError, and RetriableConnectError when Spark fails."""
        while self._batch is None:
            if self._rows is None or self._ending:
                return None
            rows = self._rows.next(WAIT_SECONDS)
            if rows is None:
                return self._end() if self._rows.ended else None
            self._batch = self._skipped(rows)
        batch = self._batch
        topic, count = self._topic, batch.num_rows
        if "topic" in batch.schema.names:
            topics = batch.column("topic").to_pylist()
            topic = topics[0] or self._topic
            count = next((at for at, row_topic in enumerate(topics) if (row_topic or self._topic) != topic), count)
        if not topic:
            raise ConnectError(f"{self._name}: row {self._row} names no topic, and the connector has no `topic`")
        if self.most_records is not None:
            count = max(1, min(count, self.most_records))
        if self.most_bytes is not None and batch.nbytes > self.most_bytes:
            count = max(1, min(count, int(batch.num_rows * self.most_bytes / batch.nbytes)))
        self._batch = batch.slice(count) if count < batch.num_rows else None
        self._row += count
        return self._records(topic, batch.slice(0, count))

    def _skipped(self, batch: Any) -> Any:
        """Returns the batch without its committed rows."""
        if self._row >= self._skip:
            return batch
        over = min(batch.num_rows, self._skip - self._row)
        self._row += over
        return batch.slice(over) if over < batch.num_rows else None

    def _records(self, topic: str, batch: Any) -> SourceBatch:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != "topic"}
        headers = columns.get("headers")
        return SourceBatch(
            topic,
            Column(columns["value"]),
            keys=Column(columns["key"]) if "key" in columns else None,
            partitions=columns.get("partition"),
            headers=None if headers is None else [[(h["key"], h["value"]) for h in header or ()] for header in headers],
            offsets=((self._partition, self._offset()),) if self._ordered else (),
            raw=True,
        )

    def _end(self) -> SourceBatch:
        if self._row < self._skip:
            raise ConnectError(f"{self._name} has {self._row} rows now, and {self._skip} of it were copied before")
        self._ending = True
        offset = {**self._offset(), "done": True}
        offsets = ((self._partition, offset),)
        return SourceBatch(self._topic, Column([]), offsets=offsets, short=True, raw=True, boundary="commit")

    def _offset(self) -> Offset:
        return {"rows": self._row, "split": self._split}

    def committed(self) -> None:
        """After the last commit the part is done."""
        self._done = self._done or self._ending

    def finished(self) -> bool:
        """Returns whether the part is done."""
        return self._done
