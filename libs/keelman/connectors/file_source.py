"""FileStreamSource: the lines of a file as records, with byte positions as offsets."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keelman.connect.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type, non_empty
from keelman.connect.errors import ConnectError
from keelman.connect.java import valid_utf8
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Column, Offset, Partition, SourceBatch
from keelman.connect.schema import STRING
from keelman.runtime.logging import get_logger

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 28
MISSING_LOG_SECONDS = 10.0

_log = get_logger()


class FileStreamSource(Connector):
    """One task that follows one file.

    Without `file` Connect reads its own standard input; copying here happens in processes without one, so such a task
    finds its input empty, as Connect does when it runs as a service.
    """

    names = (
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
    )
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
                "Kept for compatibility: lines are read and written by the block, whatever their number.",
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
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """The reader, at the committed position. Raises ConnectError when that is no position."""
        parsed = cls.config_def().parse(config)
        if not parsed["file"]:
            return EmptyReader()
        partition = {"filename": parsed["file"]}
        return FileReader(parsed["file"], parsed["topic"], checked_position(offset(partition)))


def checked_position(offset: Offset | None) -> int:
    """The byte position of an offset, 0 without one. Raises ConnectError."""
    if offset is None or offset.get("position") is None:
        return 0
    position: Any = offset["position"]
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise ConnectError(f"Offset position is the incorrect type or negative: {position!r}")
    return position


class EmptyReader(Reader):
    """Standard input where there is none."""

    def partitions(self) -> Sequence[Partition]:
        """None."""
        return ()

    def read(self) -> SourceBatch | None:
        """Never anything."""
        return None


class FileReader(Reader):
    """Follows one file from a byte position.

    Lines end with \\n, \\r or \\r\\n; one without its end stays in the file and is read again when there is more, so
    the only state is the position. Bytes that are not UTF-8 become U+FFFD, as Java reads them. The file may come into
    being later; once open it stays open, also when another takes its name.
    """

    def __init__(self, path: str, topic: str, position: int) -> None:
        self._path = path
        self._topic = topic
        self._partition = {"filename": path}
        self._position = position
        self._descriptor: int | None = None
        self._seen_size = -1
        self._block_bytes = BLOCK_BYTES
        self._missing = False
        self._missing_logged_at = float("-inf")

    def partitions(self) -> Sequence[Partition]:
        """The file."""
        return (self._partition,)

    def read(self) -> SourceBatch | None:
        """The lines of the next block; None when no line has ended since the last read."""
        descriptor = self._open()
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        if size == self._seen_size or size <= self._position:
            return None
        while True:
            block = os.pread(descriptor, self._block_bytes, self._position)
            lines, taken = split_lines(block)
            if taken:
                break
            if len(block) < self._block_bytes:
                self._seen_size = self._position + len(block)
                return None
            if self._block_bytes >= LONGEST_LINE_BYTES:
                raise ConnectError(
                    f"{self._path}: the line at byte {self._position} is over {LONGEST_LINE_BYTES} bytes"
                )
            self._block_bytes *= 2
        self._block_bytes = BLOCK_BYTES
        self._position += taken
        offset = {"position": self._position}
        return SourceBatch(
            topic=self._topic,
            values=Column(lines, STRING, utf8=True),
            offsets=((self._partition, offset),),
            short=self._position + BLOCK_BYTES > size and len(block) < BLOCK_BYTES,
        )

    def left(self) -> int | None:
        """Bytes behind the position."""
        if self._descriptor is None:
            return None
        return max(0, os.fstat(self._descriptor).st_size - self._position)

    def waits_for(self) -> str:
        """The file, while there is none."""
        return f"waits for the file {self._path}" if self._missing else ""

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int | None:
        if self._descriptor is not None:
            return self._descriptor
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            self._missing = True
            if time.monotonic() - self._missing_logged_at >= MISSING_LOG_SECONDS:
                self._missing_logged_at = time.monotonic()
                _log.warning("file_missing", file=self._path, note="waits for it to be created")
            return None
        except OSError as error:
            raise ConnectError(f"{self._path}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ConnectError(f"{self._path}: not a regular file, so it has no positions to go back to")
        self._descriptor, self._missing = descriptor, False
        return descriptor


def split_lines(block: bytes) -> tuple[list[bytes], int]:
    """The ended lines of a block as valid UTF-8, and how many bytes they take with their ends.

    A \\r that is the block's last byte ends nothing yet: a \\n may follow it.
    """
    if b"\r" not in block:
        taken = block.rfind(b"\n") + 1
        ended = valid_utf8(block[: taken - 1]) if taken else b""
        return (ended.split(b"\n") if taken else []), taken
    taken = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
    return valid_utf8(block[:taken]).splitlines(), taken
