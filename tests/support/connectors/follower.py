"""A reader of a followed file under test, with the records it has read and the offset that would be committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keelman.connect.watches import FileWatch
from keelman.connectors.file.file_reader import FileReader
from keelman.connectors.file.fingerprint import MARK_BYTES
from keelman.connectors.file.source import FileStreamSource


class Follower:
    """A reader under test, the records it has read, and the offset that would be committed."""

    def __init__(self, path: Path, **config: str) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self.passed = 0
        self.offset: Mapping[str, Any] | None = None
        self._config = {"file": str(path), "topic": "t", **config}
        self.reader = self._open()

    def _open(self) -> FileReader:
        reader = FileStreamSource.open_reader(self._config, lambda _: self.offset)
        assert isinstance(reader, FileReader)
        return reader

    def read(self) -> int:
        """Reads once; returns the number of lines."""
        batch = self.reader.read()
        if batch is None:
            return 0
        ((partition, self.offset),) = batch.offsets
        assert partition == {"filename": str(self.path)}
        self.lines += batch.values.values
        self.passed += batch.passed or 0
        return len(batch.values.values)

    def all(self) -> list[bytes]:
        """Reads until nothing more comes, a few times: a change of files takes reads without lines."""
        idle = 0
        while idle < 5:
            idle = 0 if self.read() else idle + 1
        return self.lines

    def restart(self) -> None:
        """Restarts as after a crash or a stop: only the offset is left."""
        self.reader.close()
        self.reader = self._open()


def watched(path: Path, size: int) -> FileWatch:
    """The watch on a file in its present state."""
    status = path.stat()
    return FileWatch(str(path), size, status.st_ino, status.st_mtime_ns)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def known(follower: Follower) -> bool:
    """Whether enough of the present file was read to find it again: two files back, nothing would identify it."""
    follower.all()
    inode, position, *_ = (follower.offset or {"mark": "0:0:"})["mark"].split(":")
    return int(inode) == follower.path.stat().st_ino and int(position) > MARK_BYTES
