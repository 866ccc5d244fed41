"""FileStreamSource: the lines of a file as records, with byte positions as offsets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, non_empty
from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import valid_utf8
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Column, Offset, Partition, Repeated, SourceBatch
from keelman.connect.schema import STRING
from keelman.connect.watches import FileWatch, Watch
from keelman.connectors.file.followed_file import (
    FollowedFile,
    LineEnds,
    check_positions,
    checked_position,
    first_lines,
    line_end,
    open_regular,
    parse_mark,
    resume,
    split_lines,
)
from keelman.runtime.logs.logging import get_logger

BLOCK_BYTES = 900_000  # about one record batch: brokers that replicate pay by the batch
SMALLEST_BLOCK_BYTES = 1 << 14
LONGEST_LINE_BYTES = 1 << 28
MISSING_LOG_SECONDS = 10.0
QUIET_SECONDS = 1.0
LOOK_SECONDS = 1.0

_log = get_logger()


class FileStreamSource(Connector):
    """One task that follows one file. Without `file` Connect reads its own standard input; copying here happens in
    processes without one, so such a task finds its input empty, as Connect does when it runs as a service."""

    names = ("org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSourceConnector", "FileStreamSource")
    version = "4.3.0"
    direction = Direction.SOURCE
    runs_on = "node"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`file`, `topic`, `batch.size`."""
        return ConfigDef(
            ConfigKey("file", Type.STRING, None, Importance.HIGH, "Path of the file to read; empty input when absent."),
            ConfigKey("topic", Type.STRING, REQUIRED, Importance.HIGH, "Topic to write the lines to.", non_empty),
            ConfigKey(
                "batch.size",
                Type.INT,
                2000,
                Importance.LOW,
                "Most lines to read at a time; when it is not set, as many as there are in a block of 256 KiB.",
            ),
        )

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Always one task: a file has one order."""
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """With a file; standard input has no position to go back to."""
        return bool(config.get("file"))

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Positions of files by name, also of files that it read with an earlier configuration."""
        return check_positions(config, offsets)

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """The file, when its offset says which it was; what it is by now the reader finds out once it has changed."""
        path = config.get("file", "").strip()
        found = offset({"filename": path})
        mark = parse_mark(found, checked_position(found))
        return FileWatch(path, mark.position, mark.inode) if path and mark is not None else None

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """The reader, at the committed position. Raises ConnectError when that is no position."""
        parsed = cls.config_def().parse(config)
        if not parsed["file"]:
            return EmptyReader()
        most = parsed["batch.size"] if "batch.size" in config else None
        return FileReader(parsed["file"], parsed["topic"], offset({"filename": parsed["file"]}), most)


class EmptyReader(Reader):
    """Standard input where there is none."""

    def partitions(self) -> Sequence[Partition]:
        """None."""
        return ()

    def read(self) -> SourceBatch | None:
        """Never anything."""
        return None


class FileReader(Reader):
    """Follows a file by its name, from an offset on.

    Lines end with \\n, \\r or \\r\\n; one without its end stays in the file until there is more. Bytes that are not
    UTF-8 become U+FFFD, as Java reads them. The file may come into being later. When another file takes its name, the
    old one is read until it has not grown for a while, its last line also without an end, and then the new one from its
    first byte. A file that was truncated is read from its first byte too. Records carry the time of their read.
    """

    limits_bytes = True

    def __init__(self, path: str, topic: str, offset: Offset | None = None, most_lines: int | None = None) -> None:
        """`most_lines` a read. Raises ConnectError when the offset is none."""
        checked_position(offset)
        self._path = path
        self._topic = topic
        self._partition = {"filename": path}
        self._offset = offset
        self._most_lines = most_lines
        self._file: FollowedFile | None = None
        self._seen_size = -1
        self._line_bytes = 0.0
        self._scanned = 0
        self._successor_since: float | None = None
        self._missing = False
        self._missing_logged_at = self._looked_at = float("-inf")

    def partitions(self) -> Sequence[Partition]:
        """The file."""
        return (self._partition,)

    def read(self) -> SourceBatch | None:
        """The lines of the next block; None when no line has ended since the last read. Raises ConnectError."""
        try:
            if self._file is None and not self._open():
                return None
            return self._next(cast("FollowedFile", self._file))
        except OSError as error:
            raise RetriableConnectError(f"{self._path}: {error.strerror}") from error

    def left(self) -> int | None:
        """Bytes behind the position, those of a file that took the name included."""
        if self._file is None:
            return None
        named = self._stat()
        behind = named.st_size if named is not None and named.st_ino != self._file.inode else 0
        return max(0, self._file.size() - self._file.position) + behind

    def glance(self) -> bool | None:
        """Whether the open file is of another size than it was; None while another file is waited for."""
        file = self._file
        if file is None or self._successor_since is not None:
            return None
        return file.size() not in (self._seen_size, file.position)

    def watch(self) -> Watch | None:
        """The file, as far as it was read; None while more of it or another one waits to be read."""
        named = self._stat()
        if self._file is None:
            return FileWatch(self._path, 0, 0) if named is None else None
        if named is None:
            # Under another name its writer may still go on with it, and nobody else would look.
            return FileWatch(self._path, 0, 0) if self._file.removed() else None
        if named.st_ino != self._file.inode or named.st_size != max(self._seen_size, self._file.position):
            return None
        return FileWatch(self._path, named.st_size, named.st_ino)

    def waits_for(self) -> str:
        """The file, while there is none."""
        return f"waits for the file {self._path}" if self._missing else ""

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> bool:
        now = time.monotonic()
        if self._missing and now - self._looked_at < LOOK_SECONDS and self._stat() is None:
            return False
        self._looked_at = now
        self._file = resume(self._path, self._offset)
        self._missing = self._file is None
        if self._missing and now - self._missing_logged_at >= MISSING_LOG_SECONDS:
            self._missing_logged_at = now
            _log.warning("file_missing", file=self._path, note="waits for it to be created")
        self._forget()
        return not self._missing

    def _forget(self) -> None:
        self._seen_size, self._scanned, self._successor_since = -1, 0, None

    def _next(self, file: FollowedFile) -> SourceBatch | None:
        size = file.size()
        if size in (self._seen_size, file.position):
            return self._go_over(file, size)
        self._successor_since = None
        if size < self._scanned:
            self._scanned = 0
        length = self._length(file, size)
        if length is None:
            self._seen_size = size
            return None
        # Room for all that is there and little more: a large block is mapped and given back at each read.
        length = min(length, max(0, size - file.position) + SMALLEST_BLOCK_BYTES)
        block = os.pread(file.descriptor, length, file.position)
        if size < file.position or not file.is_same():
            # Not what it was: the next read looks for what was read so far, as after a start.
            self._offset = file.offset()
            self.close()
            return None
        lines, taken = split_lines(block)
        if not taken:
            self._scanned = max(self._scanned, file.position + len(block) - block.endswith(b"\r"))
            if len(block) == length:
                return self._next(file)
            self._seen_size = file.position + len(block)
            return None
        most = self._most()
        cut = most is not None and len(lines) > most
        if most is not None and cut:
            lines, taken = first_lines(block, most)
        self._line_bytes = taken / len(lines)
        return self._batch(file, block, lines, taken, short=len(block) < length and not cut)

    def _batch(self, file: FollowedFile, block: bytes, lines: list[bytes], taken: int, *, short: bool) -> SourceBatch:
        position = partial(self._behind, LineEnds(file.position, block))
        file.advance(block, taken)
        offsets = ((self._partition, file.offset()),)
        values = Column(lines, STRING, utf8=True)
        read_at = Repeated(time.time_ns() // 1_000_000, len(lines))
        return SourceBatch(
            self._topic, values, timestamps_ms=read_at, offsets=offsets, short=short, position=position, passed=taken
        )

    def _behind(self, ends: LineEnds, index: int) -> tuple[Partition, Offset]:
        """Where the file goes on behind a line."""
        return self._partition, {"position": ends.behind(index)}

    def _most(self) -> int | None:
        given = [n for n in (self.most_records, self._most_lines) if n is not None]
        return max(1, min(given)) if given else None

    def _length(self, file: FollowedFile, size: int) -> int | None:
        """How many bytes to read so that at least one line ends in them; None when none has ended."""
        most = self._most()
        usual = BLOCK_BYTES if self.most_bytes is None else max(SMALLEST_BLOCK_BYTES, min(BLOCK_BYTES, self.most_bytes))
        if most is not None:
            usual = min(usual, max(SMALLEST_BLOCK_BYTES, int(most * self._line_bytes * 1.2)))
        while file.position < self._scanned < size:
            if self._scanned - file.position >= LONGEST_LINE_BYTES:
                raise ConnectError(f"{self._path}: the line at byte {file.position} is over {LONGEST_LINE_BYTES} bytes")
            block = os.pread(file.descriptor, BLOCK_BYTES, self._scanned)
            end = line_end(block)
            if end:
                return max(usual, self._scanned + end + 1 - file.position)
            if not block[:-1] and block.endswith(b"\r"):
                return None
            self._scanned += len(block) - block.endswith(b"\r")
        return None if file.position < self._scanned else usual

    def _go_over(self, file: FollowedFile, size: int) -> SourceBatch | None:
        """To the file that took the name, once the old one is read and has been quiet for a while."""
        named = self._stat()
        if named is None or named.st_ino == file.inode:
            self._successor_since = None
            return None
        now = time.monotonic()
        if self._successor_since is None:
            self._successor_since = now
        if now - self._successor_since < QUIET_SECONDS:
            return None
        if file.position < size:
            rest = os.pread(file.descriptor, size - file.position, file.position)
            return self._batch(file, rest, valid_utf8(rest).splitlines(), len(rest), short=True)
        descriptor = open_regular(self._path)
        if descriptor is None:
            return None
        _log.info("file_rotated", file=self._path, note="the old one is read to its end: goes on with the new one")
        file.close()
        self._file = FollowedFile(descriptor)
        self._forget()
        return self._next(self._file)

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self._path)
        except OSError:
            return None
