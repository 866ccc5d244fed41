"""Verifiable source and sink: copy numbered records and write a line of JSON for each step of each record.

Names, keys, offsets and lines are those of org.apache.kafka.connect.tools.Verifiable{Source,Sink}{Connector,Task}.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least, non_empty
from keelman.connect.errors import ConnectError
from keelman.connect.java.text import json_text, utf8_text
from keelman.connect.offsets import in_json
from keelman.connect.plugin import Connector, Direction, KeptOffset, Reader, Writer
from keelman.connect.records import Column, Offset, Partition, SinkBatch, SourceBatch, TopicPartition
from keelman.connect.schema import Field, Schema, Struct
from keelman.connectors.file.appending import open_append, write_all
from keelman.connectors.file.sink import STANDARD_OUTPUT

BATCH_RECORDS = 1000
INT32, INT64 = Schema("int32"), Schema("int64")
COMPLETE = Schema(
    "struct",
    fields=(
        Field("name", Schema("string")),
        Field("task", INT32),
        Field("topic", Schema("string")),
        Field("time_ms", INT64),
        Field("seqno", INT64),
    ),
)
_NAME = ConfigKey("name", Type.STRING, REQUIRED, Importance.HIGH, "Name of the connector, in each line.")
_ID = ConfigKey("id", Type.INT, 0, Importance.LOW, "Number of the task; set by the connector.")
_OUTPUT = ConfigKey(
    "output.file", Type.STRING, None, Importance.LOW, "File to append the lines to; standard output when absent."
)


class _Verifiable(Connector):
    version = "4.3.0"
    runs_on = "anywhere"

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns `max_tasks` tasks."""
        return [{**config, "id": str(number)} for number in range(max_tasks)]


class VerifiableSource(_Verifiable):
    """Each task counts from 0, one record a number: key the task, value the number.

    With `transaction.boundary=connector` it ends a transaction after every `transaction.records` numbers, and aborts
    each `transaction.abort.every`-th of them: those numbers are never seen.
    """

    names = (
        "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "VerifiableSourceConnector",
        "VerifiableSource",
    )
    direction = Direction.SOURCE

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns upstream's keys, then ours: `max.records`, `output.file` and the keys of transactions."""
        high, low = Importance.HIGH, Importance.LOW
        return ConfigDef(
            _NAME,
            _ID,
            ConfigKey("topic", Type.STRING, REQUIRED, high, "Topic to write to.", non_empty),
            ConfigKey("throughput", Type.LONG, -1, high, "Records a second of each task; negative without limit."),
            ConfigKey(
                "complete.record.data", Type.BOOLEAN, False, low, "Whether values are structs with all of a line."
            ),
            ConfigKey(
                "max.records", Type.LONG, -1, low, "Numbers after which a task reads no more; negative for never."
            ),
            _OUTPUT,
            ConfigKey("transaction.records", Type.LONG, 100, low, "Records of a transaction.", at_least(1)),
            ConfigKey(
                "transaction.abort.every", Type.LONG, 0, low, "Which transactions to abort; 0 for none.", at_least(0)
            ),
        )

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True: a number has one position."""
        return True

    @classmethod
    def transaction_boundary_connector(cls, config: Mapping[str, str]) -> bool:
        """Returns True."""
        return True

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """Returns the reader, behind the last committed number. Raises ConnectError."""
        return CountingReader(cls.config_def().parse(config), config.get("transaction.boundary", ""), offset)


class CountingReader(Reader):
    """Reads consecutive numbers."""

    def __init__(self, config: Mapping[str, Any], boundary: str, offset: Callable[[Partition], Offset | None]) -> None:
        """`config` is parsed. Raises ConnectError when the offset holds no number."""
        self._config = config
        self._task: int = config["id"]
        self._partition = {"id": self._task}
        self._next = _next_number(offset(self._partition))
        self._bounded = boundary.strip().lower() == "connector"
        self._first = self._next
        self._started = time.monotonic()
        self._uncommitted: list[int] = []
        self._lines = Lines(config["output.file"])

    def partitions(self) -> Sequence[Partition]:
        """Returns the partition of the task's number."""
        return (self._partition,)

    def read(self) -> SourceBatch | None:
        """Returns the numbers that are due; None without any."""
        first, last = self._next, self._end()
        if last <= first:
            return None
        numbers = list(range(first, last))
        now = time.time_ns() // 1_000_000
        self._lines.write([self._line(number, now) for number in numbers])
        values = Column(list(numbers), INT64)
        if self._config["complete.record.data"]:
            values = Column([Struct(COMPLETE, self._line(number, now)) for number in numbers], COMPLETE)
        self._next = last
        self._uncommitted += numbers
        boundary = self._boundary(last)
        if boundary == "abort":
            self._uncommitted.clear()
        return SourceBatch(
            self._config["topic"],
            values,
            keys=Column([self._task] * len(numbers), INT32),
            offsets=((self._partition, {"seqno": last - 1}),),
            short=len(numbers) < BATCH_RECORDS,
            boundary=boundary,
        )

    def committed(self) -> None:
        """Writes a line for each number that is committed now."""
        now = time.time_ns() // 1_000_000
        self._lines.write([{**self._line(number, now), "committed": True} for number in self._uncommitted])
        self._uncommitted.clear()

    def close(self) -> None:
        """Closes the file of its lines."""
        self._lines.close()

    def _end(self) -> int:
        """Returns the number after the last number to read now."""
        ends = [self._next + BATCH_RECORDS]
        if self.most_records is not None:
            ends.append(self._next + self.most_records)
        if self._config["throughput"] >= 0:
            ends.append(self._first + int((time.monotonic() - self._started) * self._config["throughput"]))
        if self._config["max.records"] >= 0:
            ends.append(self._config["max.records"])
        if self._bounded:
            length = self._config["transaction.records"]
            ends.append((self._next // length + 1) * length)
        return min(ends)

    def _boundary(self, last: int) -> Literal["commit", "abort"] | None:
        if not self._bounded or last % self._config["transaction.records"]:
            return None
        every = self._config["transaction.abort.every"]
        return "abort" if every and last // self._config["transaction.records"] % every == 0 else "commit"

    def _line(self, number: int, now: int) -> dict[str, Any]:
        config = self._config
        return {"name": config["name"], "task": self._task, "topic": config["topic"], "time_ms": now, "seqno": number}


class VerifiableSink(_Verifiable):
    """Takes records of the verifiable source and writes lines: one when a record comes, one when it is flushed."""

    names = ("org.apache.kafka.connect.tools.VerifiableSinkConnector", "VerifiableSinkConnector", "VerifiableSink")
    direction = Direction.SINK

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns upstream's keys and `output.file`."""
        return ConfigDef(_NAME, _ID, _OUTPUT)

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns False: a line cannot be taken back."""
        return False

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """Returns the writer. Raises ConnectError."""
        return TellingWriter(cls.config_def().parse(config))


class TellingWriter(Writer):
    """Writes a line for each record."""

    wants_keys = True
    wants_origin = True

    def __init__(self, config: Mapping[str, Any]) -> None:
        """`config` is parsed."""
        self._config = config
        self._unflushed: list[dict[str, Any]] = []
        self._lines = Lines(config["output.file"])

    def write(self, batch: SinkBatch) -> None:
        """Writes one line a record."""
        now = time.time_ns() // 1_000_000
        values = batch.values.texts().values
        keys = batch.keys.texts().values if batch.keys is not None else [None] * len(values)
        origin = batch.origin
        if origin is None:
            raise ConnectError("the records' origin was not given")
        lines = [
            {
                "name": self._config["name"],
                "task": _plain(key),
                "sinkTask": self._config["id"],
                "topic": origin.topics[index],
                "time_ms": now,
                "seqno": _plain(value),
                "offset": origin.offsets[index],
            }
            for index, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
        self._lines.write(lines)
        self._unflushed += lines

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Writes a second line for each record since the last commit, with `flushed`."""
        now = time.time_ns() // 1_000_000
        self._lines.write([{**line, "time_ms": now, "flushed": True} for line in self._unflushed])
        self._unflushed.clear()

    def close(self) -> None:
        """Closes the file of its lines."""
        self._lines.close()


class Lines:
    """Lines of JSON on standard output or in a file; the lines of one call stay together."""

    def __init__(self, path: str | None) -> None:
        """Opens the file. Raises ConnectError."""
        self._own = open_append(Path(path)) if path else None
        self._name = path or STANDARD_OUTPUT

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Writes lines. Raises RetriableConnectError, for instance when the disk is full."""
        if lines:
            data = "".join(f"{json_text(line)}\n" for line in lines).encode()
            write_all(sys.stdout.fileno() if self._own is None else self._own, data, self._name)

    def close(self) -> None:
        """Closes the file; standard output stays."""
        if self._own is not None:
            os.close(self._own)


def _next_number(offset: Offset | None) -> int:
    if offset is None:
        return 0
    number: Any = offset.get("seqno")
    if isinstance(number, bool) or not isinstance(number, int):
        raise ConnectError(f"the offset holds no seqno: {in_json(offset)}")
    return number + 1


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _plain(inner) for name, inner in value.values.items()}
    return utf8_text(value) if isinstance(value, bytes) else value
