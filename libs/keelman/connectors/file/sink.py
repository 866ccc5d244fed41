"""FileStreamSink: one line a record value, appended to a file, exactly once with the help of a side journal."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector, Direction, KeptOffset, SinkTask, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.connectors.file.appending import AppendedFile, lines, make_durable, write_all
from keelman.connectors.file.journaled_writer import JournaledWriter

STANDARD_OUTPUT = "standard output"


class FileStreamSink(Connector):
    """One task that appends to one file: a file has one writer, so `tasks.max` above 1 adds nothing.

    Without `file` it prints to standard output, at least once and with as many tasks as wanted.
    """

    names = ("org.apache.kafka.connect.file.FileStreamSinkConnector", "FileStreamSinkConnector", "FileStreamSink")
    version = "4.3.0"
    direction = Direction.SINK
    runs_on = "node"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`file`."""
        doc = "Path of the file to append to; standard output when absent."
        return ConfigDef(ConfigKey("file", Type.STRING, None, Importance.HIGH, doc))

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """One task for a file, `max_tasks` for standard output."""
        return [dict(config) for _ in range(1 if config.get("file") else max_tasks)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True for a regular file, existing or not; a device or pipe cannot be cut back."""
        path = config.get("file")
        if not path:
            return False
        try:
            return stat.S_ISREG(os.stat(path).st_mode)
        except OSError:
            return True

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Accepts any offsets: lines are written from the group's offset on."""
        return True

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """The writer. Raises ConnectError; retriable when another process still writes the file."""
        return cls._writer_for(config, connector, None, exactly_once=exactly_once)

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """Returns the writer; while a pipe is full it keeps beating."""
        return cls._writer_for(config, task.connector, task.beat, exactly_once=exactly_once)

    @classmethod
    def _writer_for(
        cls, config: Mapping[str, str], connector: str, beat: Callable[[], None] | None, *, exactly_once: bool
    ) -> Writer:
        path = cls.config_def().parse(config)["file"]
        if not path:
            return StreamWriter(sys.stdout.fileno(), STANDARD_OUTPUT, beat)
        if exactly_once and cls.supports_exactly_once(config):
            return JournaledWriter(Path(path).absolute(), connector)
        return FileWriter(Path(path), beat)


class StreamWriter(Writer):
    """Appends to standard output: at least once."""

    def __init__(self, descriptor: int, name: str, beat: Callable[[], None] | None = None) -> None:
        """`name` is what errors call it. `beat` is called while a pipe has no room."""
        self._descriptor = descriptor
        self._name = name
        self._beat = beat

    def write(self, batch: SinkBatch) -> None:
        """Appends one line a value; to a pipe as fast as its reader takes them."""
        write_all(self._descriptor, lines(batch.values), self._name, self._beat)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes a file durable; a pipe or terminal is as durable as it gets. Raises RetriableConnectError."""
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            make_durable(self._descriptor, self._name)


class FileWriter(Writer):
    """Appends to a file, pipe or device, without a journal: at least once. Like Connect it stays with a file that is
    renamed."""

    def __init__(self, path: Path, beat: Callable[[], None] | None = None) -> None:
        """Opens or creates the file; `beat` is called while a pipe has no room. Raises ConnectError."""
        self._file = AppendedFile(path)
        self._beat = beat
        self._written = False

    def write(self, batch: SinkBatch) -> None:
        """Appends one line a value; to a pipe as fast as its reader takes them."""
        self._file.append(lines(batch.values), self._beat)
        self._written = True

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes a file durable; raises RetriableConnectError, also if the file has lost written data."""
        if self._written:
            self._file.settle()
        self._file.settled()
        self._written = False

    def close(self) -> None:
        """Closes it."""
        self._file.close()
