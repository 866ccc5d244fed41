"""Appends to a file that others may touch meanwhile: rename, remove, truncate, rewrite, or append to."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import java_text, valid_utf8
from keelman.connect.policy.folders import open_file
from keelman.connect.records import Column

LOOK_SECONDS = 0.5
EDGE_BYTES = 256
FULL = (errno.ENOSPC, errno.EDQUOT)


class AppendedFile:
    """An open file that one thread appends to, and the end of its own bytes.

    Others may write between any two of its writes, so it takes each write's place from the kernel's file position.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates the file. Raises ConnectError."""
        self.path = path
        self.descriptor = open_append(path)
        status = os.fstat(self.descriptor)
        self.inode = status.st_ino
        self.device = status.st_dev
        self.regular = stat.S_ISREG(status.st_mode)
        self.end = status.st_size
        self.readable = fcntl.fcntl(self.descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
        self._last = b""

    def size(self) -> int:
        """Returns the file's present size. Raises RetriableConnectError if it was removed, truncated or rewritten."""
        status = os.fstat(self.descriptor)
        if status.st_nlink == 0:
            raise self._gone("was removed")
        if status.st_size < self.end:
            raise self._gone(f"was truncated from {self.end} to {status.st_size} bytes")
        if self._last and not self.last_bytes().endswith(self._last):
            raise self._gone("was rewritten")
        return status.st_size

    def append(self, data: bytes, beat: Callable[[], None] | None = None) -> int:
        """Writes all data. Returns the position where it begins. Raises as `write_all` does."""
        write_all(self.descriptor, data, str(self.path), beat)
        if not self.regular:
            return 0
        before, self.end = self.end, os.lseek(self.descriptor, 0, os.SEEK_CUR)
        begin = self.end - len(data)
        joined = self._last + data if begin == before and len(data) < EDGE_BYTES else data
        self._last = joined[-EDGE_BYTES:]
        return begin

    def settle(self) -> None:
        """Makes written data durable. Raises RetriableConnectError, also if the file has lost the data."""
        if not self.regular:
            return
        self.size()
        make_durable(self.descriptor, str(self.path))

    def settled(self) -> None:
        """Notes that all written data is committed: later checks do not look for it."""
        self._last = b""

    def last_bytes(self) -> bytes:
        """Returns the bytes before its end; the bytes last written if the file may not be read."""
        if not self.readable:
            return self._last
        begin = max(0, self.end - EDGE_BYTES)
        try:
            return os.pread(self.descriptor, self.end - begin, begin)
        except OSError as error:
            raise RetriableConnectError(f"{self.path}: cannot be read: {error.strerror}") from error

    def bears_its_name(self) -> bool:
        """Returns whether the path still leads to this file."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (self.device, self.inode)

    def close(self) -> None:
        """Closes the file, which releases its lock."""
        os.close(self.descriptor)

    def _gone(self, what: str) -> RetriableConnectError:
        return RetriableConnectError(
            f"{self.path}: {what} while it was written to: what was written since the last commit is written again"
        )


def open_append(path: Path) -> int:
    """Opens or creates the file for appending, and for reading where that is allowed; does not wait for a pipe. Raises
    ConnectError naming the path, retriable when the disk is full or the pipe has no reader."""
    flags = os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    with suppress(OSError):
        if not path.exists() or path.is_file():
            return open_file(path, flags | os.O_RDWR, 0o666)
    try:
        return open_file(path, flags | os.O_WRONLY, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise RetriableConnectError(f"{path}: no process has the pipe open for reading") from error
        kind = RetriableConnectError if error.errno in FULL else ConnectError
        raise kind(f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}") from error


def make_durable(descriptor: int, name: str) -> None:
    """Returns once written data would survive a power cut. Raises RetriableConnectError naming the file."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        raise RetriableConnectError(f"{name}: cannot be made durable: {error.strerror}") from error


def write_all(descriptor: int, data: bytes, name: str, beat: Callable[[], None] | None = None) -> None:
    """Writes all data, or none if it fails and no other process appends to the regular file; beats while there is no
    room in a pipe.

    Raises RetriableConnectError naming the file, for instance for a full disk, and what `beat` raises.
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
        with suppress(OSError):  # then the recovery handles a torn write
            status, end = os.fstat(descriptor), os.lseek(descriptor, 0, os.SEEK_CUR)
            if written and stat.S_ISREG(status.st_mode) and status.st_size == end:
                os.ftruncate(descriptor, end - written)
        raise RetriableConnectError(f"{name}: cannot be written: {error.strerror}") from error


def lines(column: Column) -> bytes:
    """Returns one line a value, in Java's text forms; null is the line `null`. Bytes stay unchanged."""
    values = column.values
    if not column.utf8:
        values = [v if isinstance(v, bytes) else java_text(v).encode("utf-8", "replace") for v in values]
    try:
        data = b"\n".join([*values, b""])
    except TypeError:
        data = b"\n".join([*(b"null" if v is None else v for v in values), b""])
    return valid_utf8(data) if column.utf8 else data
