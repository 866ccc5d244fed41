"""FileStreamSink: one line a record value, appended to a file, exactly once with the help of a side journal."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import java_text, valid_utf8
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Assignment, Connector, Direction, KeptOffset, SinkTask, Writer
from keelman.connect.records import Column, SinkBatch, TopicPartition
from keelman.engine.sink.exactly_once.journal import Entry, Journal, owner_of
from keelman.engine.sink.positions.offsets import is_ours
from keelman.runtime.home import sync_folder
from keelman.runtime.logs.logging import get_logger

LOCK_SECONDS = 5.0
LOOK_SECONDS = 0.5
STANDARD_OUTPUT = "standard output"
FULL = (errno.ENOSPC, errno.EDQUOT)

_log = get_logger()


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
        """With a regular file, existing or to be made; a device or pipe cannot be cut back."""
        path = config.get("file")
        if not path:
            return False
        try:
            return stat.S_ISREG(os.stat(path).st_mode)
        except OSError:
            return True

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Any: lines are written from wherever the group stands."""
        return True

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """The writer. Raises ConnectError; retriable when another process still writes the file."""
        return cls._writer_for(config, connector, None, exactly_once=exactly_once)

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """The writer; while a pipe is full it goes on beating."""
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
        return StreamWriter(open_append(Path(path)), path, beat, own=True)


class StreamWriter(Writer):
    """Appends to a descriptor, without a journal: at least once."""

    def __init__(
        self, descriptor: int, name: str, beat: Callable[[], None] | None = None, *, own: bool = False
    ) -> None:
        """`name` is what errors call it. `beat` is called while a pipe has no room. With `own` the descriptor is closed
        at the end."""
        self._descriptor = descriptor
        self._name = name
        self._own = own
        self._beat = beat

    def write(self, batch: SinkBatch) -> None:
        """Appends one line a value; to a pipe as fast as its reader takes them."""
        write_all(self._descriptor, lines(batch.values), self._name, self._beat)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes a file durable; a pipe or terminal is as durable as it gets. Raises RetriableConnectError."""
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            make_durable(self._descriptor, self._name)

    def close(self) -> None:
        """Closes a file of its own."""
        if self._own:
            os.close(self._descriptor)


class JournaledWriter(Writer):
    """Appends to a regular file and keeps the offsets in its journal; holds the file's lock while it is open."""

    keeps_offsets = True

    def __init__(self, path: Path, connector: str) -> None:
        """Locks the file and brings it to where its journal says. Raises ConnectError."""
        self._path = path
        self._connector = self._owner = connector
        self._journal = Journal(path)
        made = not path.exists()
        self._descriptor = open_append(path)
        try:
            self._lock()
            if made:
                sync_folder(path.parent)
            self._inode = os.fstat(self._descriptor).st_ino
            self._length, offsets = self._recover()
        except BaseException:
            os.close(self._descriptor)
            raise
        self._all = {owner: dict(kept) for owner, kept in offsets.items()}

    def kept(self) -> Mapping[TopicPartition, KeptOffset]:
        """The journaled offsets of its reader; before it has one, those of the connector's name."""
        return dict(self._all.get(self._owner, {}))

    def take_over(self, assignment: Assignment) -> Mapping[TopicPartition, KeptOffset]:
        """The offsets of this reader, and those journaled by the connector's name alone that are surely its own."""
        self._owner = owner_of(self._connector, assignment.reader)
        mine, old = self._all.setdefault(self._owner, {}), self._all.get(self._connector, {})
        for partition, shown in assignment.offsets.items():
            shared = any(partition in kept for one, kept in self._all.items() if one != self._connector)
            if partition in old and partition not in mine and is_ours(old[partition], shown, shared=shared):
                mine[partition] = old.pop(partition)
        return dict(mine)

    def write(self, batch: SinkBatch) -> None:
        """Appends one line a value; visible at once, durable with the next commit."""
        data = lines(batch.values)
        write_all(self._descriptor, data, str(self._path))
        self._length += len(data)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Data first, then the journal that speaks of it. Raises RetriableConnectError, as `write` does."""
        self._all.setdefault(self._owner, {}).update(offsets)
        make_durable(self._descriptor, str(self._path))
        self._save(Entry(self._length, clean, self._inode, {one: kept for one, kept in self._all.items() if kept}))

    def close(self) -> None:
        """Closes the file, which gives the lock back."""
        os.close(self._descriptor)

    def _save(self, entry: Entry) -> None:
        try:
            self._journal.save(entry)
        except OSError as error:
            raise RetriableConnectError(f"{self._journal.path}: cannot be written: {error.strerror}") from error

    def _lock(self) -> None:
        """Waits a little for a predecessor that is about to end."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RetriableConnectError(f"{self._path}: another writer holds the file's lock") from None
                time.sleep(0.02)

    def _recover(self) -> tuple[int, Mapping[str, Mapping[TopicPartition, KeptOffset]]]:
        """The length to go on from and the kept offsets; cuts off what an unfinished commit left behind."""
        size = os.fstat(self._descriptor).st_size
        entry = self._journal.load()
        if entry is None:
            # Before the first data: so that a crash from here on leaves a journal that says whose the bytes are.
            self._save(Entry(size, False, self._inode))
            return size, {}
        log = _log.bind(file=str(self._path), length=size, journaled=entry.length)
        if entry.inode != self._inode:
            log.warning("file_replaced", note="goes on at the end of the new file, from the journal's offsets")
            entry = Entry(size, False, self._inode, entry.offsets)
        elif size < entry.length:
            log.warning("file_shortened", note="goes on at its end, from the journal's offsets")
            entry = Entry(size, False, self._inode, entry.offsets)
        elif size > entry.length and entry.clean:
            log.info("file_grew_while_stopped", note="what others appended stays")
            entry = Entry(size, False, self._inode, entry.offsets)
        elif size > entry.length:
            log.info("torn_tail_cut", bytes=size - entry.length)
            os.ftruncate(self._descriptor, entry.length)
        self._save(Entry(entry.length, False, self._inode, entry.offsets))
        return entry.length, entry.offsets


def open_append(path: Path) -> int:
    """Opens or makes the file for appending; a pipe is not waited for. Raises ConnectError naming the path, retriable
    when the disk is full or nobody reads the pipe."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise RetriableConnectError(f"{path}: nobody has the pipe open to read from it") from error
        kind = RetriableConnectError if error.errno in FULL else ConnectError
        raise kind(f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}") from error


def make_durable(descriptor: int, name: str) -> None:
    """Returns once what was written would outlive a power cut. Raises RetriableConnectError naming it."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise RetriableConnectError(f"{name}: cannot be made durable: {error.strerror}") from error


def write_all(descriptor: int, data: bytes, name: str, beat: Callable[[], None] | None = None) -> None:
    """Writes all of it, or nothing to a regular file; beats while there is no room in a pipe.

    Raises RetriableConnectError naming it, for instance for a full disk, and what `beat` raises.
    """
    written = 0
    try:
        while written < len(data):
            try:
                written += os.write(descriptor, memoryview(data)[written:] if written else data)
            except BlockingIOError:
                if beat is not None:
                    beat()
                select.select((), (descriptor,), (), LOOK_SECONDS)
    except OSError as error:
        with suppress(OSError):  # what is torn is left to the recovery then
            status = os.fstat(descriptor)
            if written and stat.S_ISREG(status.st_mode):
                os.ftruncate(descriptor, status.st_size - written)
        raise RetriableConnectError(f"{name}: cannot be written: {error.strerror}") from error


def lines(column: Column) -> bytes:
    """One line a value, in Java's text forms; null is the line `null`. Bytes are written as they are."""
    values = column.values
    if not column.utf8:
        values = [v if isinstance(v, bytes) else java_text(v).encode("utf-8", "replace") for v in values]
    try:
        data = b"\n".join([*values, b""])
    except TypeError:
        data = b"\n".join([*(b"null" if v is None else v for v in values), b""])
    return valid_utf8(data) if column.utf8 else data
