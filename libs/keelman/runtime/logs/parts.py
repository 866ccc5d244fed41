"""Keeps a log bounded while its writers keep it open: one file, and compressed parts with its earlier content.

Every byte has one position for ever: its position in the file. When the file is too large, its oldest lines are
compressed into a part, named after the first position in it and the first after it, and then the file's beginning
becomes a hole: it takes no space, writers continue at the end, and lines written meanwhile are not touched. On a file
system without holes that waits until no process writes. A part is in place before its lines leave the file, and the
file's own lines begin where the parts end: if the process is killed in between, nothing is lost or doubled.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.logs.punching import can_punch, punch

PIECE_BYTES = 256 * 1024
COMPRESSION = 3
DAY_SECONDS = 86_400
MAX_NEEDED = 200
"""The most parts that are kept for a reader that has not read them yet: its backlog must not fill the disk."""


@dataclass(frozen=True, slots=True, order=True)
class LogPart:
    """A compressed part: the log's bytes from `begin` to before `end`."""

    begin: int
    end: int
    path: Path


@dataclass(frozen=True, slots=True)
class Keeping:
    """The retention of a log: bytes until a part is cut off, the number of parts, and the age up to which they are
    kept.

    `days` is 0 for any age.
    """

    part_bytes: int = 16 * 1024 * 1024
    parts: int = 10
    days: float = 30.0


class Log:
    """One log. Its keeper calls `keep` periodically, from one thread; any number of readers may read meanwhile."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._name = re.compile(re.escape(file.name) + r"\.(-?\d+)_(-?\d+)\.gz")

    def parts(self) -> list[LogPart]:
        """Returns the existing parts, the oldest first."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.file.parent) as entries:
            named = [match for entry in entries if (match := self._name.fullmatch(entry.name))]
            return sorted(LogPart(int(m[1]), int(m[2]), self.file.parent / m[0]) for m in named)
        return []

    def keep(
        self, keeping: Keeping, *, written: bool, now: Callable[[], float] = time.time, needed: int | None = None
    ) -> int:
        """Cuts parts off while the file is too large, and deletes old ones. Returns how many were cut off.

        `written` means that a process may be appending. Parts with bytes at or after the position `needed` stay however
        many or old they are, at most MAX_NEEDED of them. Takes as long as compressing does: work for a thread. Raises
        OSError, e.g. for a full disk: then the file keeps its content.
        """
        try:
            descriptor = _open(self.file, os.O_RDWR)
        except FileNotFoundError:
            return 0
        try:
            cut_bytes = self._cut(descriptor, keeping.part_bytes, written=written)
        finally:
            os.close(descriptor)
        self._forget(keeping, now(), needed)
        return cut_bytes

    def _cut(self, descriptor: int, part_bytes: int, *, written: bool) -> int:
        holes = can_punch(self.file.parent)
        end = os.fstat(descriptor).st_size
        head = self._head(end)
        if not holes and written:
            return 0
        cuts = 0
        while end - head > part_bytes:
            cut = _line_end(descriptor, head, head + part_bytes)
            self._compress(descriptor, head, cut)
            head, cuts = cut, cuts + 1
        if cuts and not holes:  # compress the rest too, so that truncating loses nothing, whenever this is killed
            self._compress(descriptor, head, end)
            os.ftruncate(descriptor, 0)
            os.ftruncate(descriptor, end)
        elif head > 0 and holes and (cuts or _begins_full(descriptor)):  # else an earlier one was killed before it did
            punch(descriptor, head)
        return cuts

    def _head(self, end: int) -> int:
        """Returns where the file's own lines begin. If the file was truncated, positions start again after the
        parts."""
        parts = self.parts()
        head = parts[-1].end if parts else 0
        if head <= end:
            return max(head, 0)
        for part in parts:  # the newest last: if killed before, all is repeated
            os.rename(part.path, self._path(part.begin - head, part.end - head))
        return 0

    def _path(self, begin: int, end: int) -> Path:
        return self.file.with_name(f"{self.file.name}.{begin}_{end}.gz")

    def _compress(self, descriptor: int, begin: int, end: int) -> None:
        for left in self.file.parent.glob(f".{self.file.name}.part.*"):
            left.unlink()
        number, temporary = tempfile.mkstemp(prefix=f".{self.file.name}.part.", dir=self.file.parent)
        try:
            with os.fdopen(number, "wb") as target:
                with gzip.GzipFile("", "wb", COMPRESSION, target) as packed:
                    for piece in _pieces(descriptor, begin, end):
                        packed.write(piece)
                target.flush()
                os.fsync(target.fileno())
            os.rename(temporary, self._path(begin, end))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    def _forget(self, keeping: Keeping, now: float, needed: int | None) -> None:
        parts, most = self.parts(), keeping.parts
        if needed is not None:
            most = max(most, min(MAX_NEEDED, sum(part.end > needed for part in parts)))
        for part in parts[:-most]:
            part.path.unlink(missing_ok=True)
        for part in parts[-most:]:
            is_old = keeping.days and part.path.stat().st_mtime < now - keeping.days * DAY_SECONDS
            if not is_old or (needed is not None and part.end > needed):
                continue
            if part != parts[-1]:
                part.path.unlink(missing_ok=True)
            elif part.path.stat().st_size:
                os.truncate(part.path, 0)  # its name still shows where the file's own lines begin


class PartsReader:
    """Reads one log from any position on, also while it is cut. Raises FileNotFoundError if the file is missing."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._descriptor = _open(log.file, os.O_RDONLY)
        self._part: tuple[LogPart, gzip.GzipFile, int] | None = None

    def close(self) -> None:
        """Closes the files."""
        self._close_part()
        os.close(self._descriptor)

    def __enter__(self) -> PartsReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def gone(self) -> bool:
        """Whether the log was deleted."""
        return os.fstat(self._descriptor).st_nlink == 0

    @property
    def inode(self) -> int:
        """The file's number: another file has another number while this one is open."""
        return os.fstat(self._descriptor).st_ino

    def end(self) -> int:
        """Returns the position after the last byte."""
        return os.fstat(self._descriptor).st_size

    def begin(self) -> int:
        """Returns the position of the oldest byte that is kept."""
        parts = self._log.parts()
        return parts[0].begin if parts else 0

    def stretches(self) -> list[tuple[int, int]]:
        """Returns begin and end of each part and of the file's own content, the oldest first."""
        parts = self._log.parts()
        head = max(parts[-1].end, 0) if parts else 0
        return [*((part.begin, part.end) for part in parts), (head, max(head, self.end()))]

    def read(self, position: int, limit: int = PIECE_BYTES) -> tuple[bytes, int]:
        """Returns at most `limit` bytes from a position on, and the position after them; no bytes at the end.

        Content that is no longer kept is skipped.
        """
        while True:
            if self._part is not None and self._part[0].begin <= position < self._part[0].end:
                part: LogPart | None = self._part[0]
            else:
                self._close_part()
                data = os.pread(self._descriptor, limit, max(position, 0))
                # Bytes that are in no part now had not left the file when it was read.
                part = next((part for part in self._log.parts() if part.end > position), None)
            if part is None:
                # The position may be past the end: the file was truncated after the last read.
                return data, min(max(position, 0), self.end()) + len(data)
            if data := self._read_part(part, max(position, part.begin), limit):
                return data, max(position, part.begin) + len(data)
            position = part.end

    def _read_part(self, part: LogPart, position: int, limit: int) -> bytes:
        try:
            if self._part is None or self._part[0] != part or self._part[2] != position:
                self._close_part()
                opened = _unpacked(part)
                opened.seek(position - part.begin)
                self._part = (part, opened, position)
            data = self._part[1].read(limit)
        except (OSError, EOFError):  # gone meanwhile, or damaged: the rest of it is skipped
            self._close_part()
            return b""
        self._part = (part, self._part[1], position + len(data))
        return data

    def _close_part(self) -> None:
        if self._part is not None:
            self._part[1].close()
            self._part = None

    def backwards(self) -> Iterator[tuple[int, bytes]]:
        """Yields the log in pieces from its end to its beginning, each with its position."""
        position = self.end()
        while True:
            parts = self._log.parts()
            head = max(parts[-1].end, 0) if parts else 0
            if position > head:
                begin = max(head, position - PIECE_BYTES)
                data = os.pread(self._descriptor, position - begin, begin)
                if self._log.parts() == parts:  # else read again, from the newly cut part
                    yield begin, data
                    position = begin
                continue
            part = next((part for part in reversed(parts) if part.begin < position), None)
            if part is None:
                return
            with contextlib.suppress(OSError, EOFError), _unpacked(part) as opened:
                yield part.begin, opened.read()[: position - part.begin]
            position = part.begin

    def tail(self, lines: int) -> int:
        """Returns the position where the last `lines` lines begin. May unpack parts: work for a thread."""
        missing, last, position = lines, True, self.end()
        for position, piece in self.backwards():
            # The line end of the last line does not begin another.
            at = len(piece) - 1 if last and piece else len(piece)
            last = last and not piece
            while (at := piece.rfind(b"\n", 0, at)) >= 0:
                missing -= 1
                if not missing:
                    return position + at + 1
        return position

    def last_bytes(self, most: int, since: int = 0) -> bytes:
        """Returns the last bytes at or after the position `since`."""
        data = b""
        for begin, piece in self.backwards():
            data = piece[max(0, since - begin) :] + data
            if len(data) >= most or begin <= since:
                break
        return data[-most:]


def _open(path: Path, flags: int) -> int:
    """Opens a plain file. Its folder may belong to another user, who could replace the file by a link to another
    one."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


class _Unpacked(gzip.GzipFile):
    """Closes its underlying file when it is closed."""

    def __init__(self, descriptor: int) -> None:
        self._raw = os.fdopen(descriptor, "rb")
        super().__init__("", "rb", fileobj=self._raw)

    def close(self) -> None:
        super().close()
        self._raw.close()


def _unpacked(part: LogPart) -> gzip.GzipFile:
    return _Unpacked(_open(part.path, os.O_RDONLY))


def _pieces(descriptor: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end:
        piece = os.pread(descriptor, min(PIECE_BYTES, end - begin), begin)
        if not piece:
            raise OSError(f"the log was cut by another process at {begin}")
        yield piece
        begin += len(piece)


def _line_end(descriptor: int, begin: int, end: int) -> int:
    """Returns the position after the last line end in the range; `end` if one line fills it."""
    position = end
    while position > begin:
        first = max(begin, position - PIECE_BYTES)
        at = os.pread(descriptor, position - first, first).rfind(b"\n")
        if at >= 0:
            return first + at + 1
        position = first
    return end


def _begins_full(descriptor: int) -> bool:
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA) == 0
    except OSError:
        return False
