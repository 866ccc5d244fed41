"""Reads the lines of a file by its name, whatever others do to the file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import cast

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import valid_utf8
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, Offset, Partition, Repeated, SourceBatch
from keelman.connect.schema import STRING
from keelman.connect.watches import FileWatch, Watch
from keelman.connectors.file.file_lines import LineEnds, first_lines, line_end, split_lines
from keelman.connectors.file.followed_file import (
    FollowedFile,
    FormerContent,
    begin,
    checked_position,
    parse_mark,
    resume,
)
from keelman.connectors.file.late_files import LateFiles, has_writer
from keelman.connectors.file.packed_files import Unpacking
from keelman.runtime.logs.logging import get_logger

BLOCK_BYTES = 900_000  # about one record batch: brokers that replicate pay by the batch
SMALLEST_BLOCK_BYTES = 1 << 14
LONGEST_LINE_BYTES = 1 << 28
MISSING_LOG_SECONDS = 10.0
QUIET_SECONDS = 1.0
LOOK_SECONDS = 1.0
COMPARE_SECONDS = 1.0

_log = get_logger()


class FileReader(Reader):
    """Follows a file by its name, from an offset on.

    Lines end with \\n, \\r or \\r\\n; a line without its end stays in the file until there is more. Bytes that are not
    UTF-8 become U+FFFD, as Java reads them. The file may be created later. When another file takes its name, the
    reader reads the old file until it has not grown for a while, then files rotated between them, and then the new file
    from its first byte. It watches the old file for as long as a process may write to it; only after that it reads an
    unfinished last line. A file that was truncated is read from its first byte too. Records carry the time of their
    read.
    """

    limits_bytes = True

    def __init__(self, path: str, topic: str, offset: Offset | None = None, most_lines: int | None = None) -> None:
        """A read returns at most `most_lines`. Raises ConnectError for an illegal offset."""
        checked_position(offset)
        self._path = path
        self._topic = topic
        self._partition = {"filename": path}
        self._offset = offset
        self._most_lines = most_lines
        self._file: FollowedFile | None = None
        self._late = LateFiles(path)
        self._late_marks = str((offset or {}).get("late") or "")
        self._unpacking: Unpacking | None = None
        self._former: FormerContent | None = None
        self._unpacked_in_vain = False
        self._seen_size, self._seen_modified = -1, 0
        self._compared_at = float("-inf")
        self._line_bytes = 0.0
        self._scanned = 0
        self._successor_since: float | None = None
        self._missing = False
        self._missing_logged_at = self._looked_at = float("-inf")

    def partitions(self) -> Sequence[Partition]:
        """Returns the file's partition."""
        return (self._partition,)

    def read(self) -> SourceBatch | None:
        """Returns the lines of the next block; None when no line has ended since the last read. Raises ConnectError."""
        try:
            if self._file is None and not self._open():
                return None
            late = self._read_late() if self._late else None
            return late or self._next(cast("FollowedFile", self._file))
        except OSError as error:
            raise RetriableConnectError(f"{self._path}: {error.strerror}") from error

    def left(self) -> int | None:
        """Returns the unread bytes, those of a file that took the name and of former files included."""
        if self._file is None:
            return None
        named = self._stat()
        behind = named.st_size if named is not None and not self._is_open(named) else 0
        return max(0, self._file.size() - self._file.position) + behind + self._late.left()

    def glance(self) -> bool | None:
        """Returns whether an open file has changed; None while the reader waits for another file, or for the end of a
        last line."""
        file = self._file
        if file is None or self._successor_since is not None:
            return None
        size, modified = file.state()
        if size not in (self._seen_size, file.position) or modified != self._seen_modified:
            return True
        return self._late.glance() or (None if self._late.left() else False)

    def watch(self) -> Watch | None:
        """Returns a watch on the file as read so far; None while this file, a former or another one has unread
        bytes."""
        named = self._stat()
        if self._file is None:
            return FileWatch(self._path, 0, 0) if named is None and self._unpacking is None else None
        self._late.ended()
        if self._late:
            return None
        if named is None:
            # Its writer may still write to it under another name, which no watch would see.
            return FileWatch(self._path, 0, 0) if self._file.removed() else None
        if not self._is_open(named) or named.st_size != max(self._seen_size, self._file.position):
            return None
        if named.st_mtime_ns != self._seen_modified:
            return None
        return FileWatch(self._path, named.st_size, named.st_ino, named.st_mtime_ns)

    def waits_for(self) -> str:
        """Returns a text that names the file, while it is missing."""
        return f"waits for the file {self._path}" if self._missing else ""

    def close(self) -> None:
        """Closes all files."""
        self._leave()
        self._late.close()
        if self._unpacking is not None:
            self._unpacking.close()

    def _leave(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _is_open(self, named: os.stat_result) -> bool:
        return self._file is not None and (named.st_dev, named.st_ino) == self._file.identity

    def _open(self) -> bool:
        now = time.monotonic()
        if self._missing and now - self._looked_at < LOOK_SECONDS and self._stat() is None:
            return False
        self._looked_at = now
        marks, self._late_marks = self._late_marks, ""
        self._late.resume(marks)
        unpacking = self._unpacking or resume(self._path, self._offset, unpack=not self._unpacked_in_vain)
        return self._take(self._unpack(unpacking) if isinstance(unpacking, Unpacking) else unpacking)

    def _take(self, file: FollowedFile | None) -> bool:
        """Reads this file from now on. Returns whether there is one."""
        now = time.monotonic()
        self._file = file
        self._missing = file is None and self._unpacking is None and not self._unpacked_in_vain
        self._unpacked_in_vain = self._unpacked_in_vain and file is None
        if self._missing and now - self._missing_logged_at >= MISSING_LOG_SECONDS:
            self._missing_logged_at = now
            _log.warning("file_missing", file=self._path, note="waits for it to be created")
        self._forget()
        return file is not None

    def _unpack(self, unpacking: Unpacking) -> FollowedFile | None:
        """Unpacks a step of a compressed file. Returns the unpacked file once it is complete and fits the offset's
        mark."""
        self._unpacking = unpacking
        outcome = unpacking.step()
        mark = None if unpacking.fresh else parse_mark(self._offset, checked_position(self._offset))
        if outcome is not None and (mark is None or mark.fits(outcome.descriptor)):
            unpacking.close()
            self._unpacking = None
            inode, position = (outcome.inode, 0) if mark is None else (mark.inode, mark.position)
            file = FollowedFile(outcome.descriptor, position, until=outcome.modified, unpacked_from=inode)
            file.packed_inode = outcome.inode
            return file
        if outcome is not None:
            os.close(outcome.descriptor)
        if unpacking.done:
            self._unpacking, self._unpacked_in_vain = None, not unpacking.fresh
            if unpacking.fresh:
                note = "it cannot be unpacked: continues with the file of this name"
                _log.warning("file_passed_over", file=self._path, passed=unpacking.name, note=note)
                self._offset = None
        return None

    def _forget(self) -> None:
        self._seen_size, self._scanned, self._successor_since = -1, 0, None

    def _read_late(self) -> SourceBatch | None:
        """Returns new lines of a file that lost its name."""
        file = self._late.grown()
        if file is None:
            ended = self._late.ended()
            return None if ended is None else self._rest(ended, ended.size())
        size = file.size()
        block = os.pread(file.descriptor, min(BLOCK_BYTES, size - file.position), file.position)
        lines, taken = split_lines(block)
        if not taken and len(block) == BLOCK_BYTES:
            block = os.pread(file.descriptor, min(LONGEST_LINE_BYTES, size - file.position), file.position)
            lines, taken = split_lines(block)
        if not taken:
            return None
        most = self._most()
        if most is not None and len(lines) > most:
            lines, taken = first_lines(block, most)
        if file.position + taken < size:
            self._late.read_again(file)
        return self._batch(file, block, lines, taken, short=True)

    def _rest(self, file: FollowedFile, size: int) -> SourceBatch:
        """Returns the rest of a file that no process writes to any more."""
        rest = os.pread(file.descriptor, size - file.position, file.position)
        return self._batch(file, rest, valid_utf8(rest).splitlines(), len(rest), short=True)

    def _next(self, file: FollowedFile) -> SourceBatch | None:
        size = file.size()
        touched, self._seen_modified = file.modified != self._seen_modified, file.modified
        if touched and not self._is_what_it_was(file, size):
            self._look_again(file)
            return None
        if size in (self._seen_size, file.position):
            return self._go_over(file, size)
        return self._next_lines(file, size)

    def _next_lines(self, file: FollowedFile, size: int) -> SourceBatch | None:
        before = self._copied_before(file)
        if before is not None:
            return self._change_to(before)
        self._successor_since = None
        if size < self._scanned:
            self._scanned = 0
        length = self._length(file, size)
        if length is None:
            self._seen_size = size
            return None
        # Room for the present bytes and little more: a large block is mapped and given back at each read.
        length = min(length, max(0, size - file.position) + SMALLEST_BLOCK_BYTES)
        block = os.pread(file.descriptor, length, file.position)
        if size < file.position or not file.is_same():
            self._look_again(file)
            return None
        lines, taken = split_lines(block)
        if not taken:
            self._scanned = max(self._scanned, file.position + len(block) - block.endswith(b"\r"))
            if len(block) == length:
                return self._next_lines(file, size)
            self._seen_size = file.position + len(block)
            return None
        most = self._most()
        cut = most is not None and len(lines) > most
        if most is not None and cut:
            lines, taken = first_lines(block, most)
        self._line_bytes = taken / len(lines)
        return self._batch(file, block, lines, taken, short=len(block) < length and not cut)

    def _is_what_it_was(self, file: FollowedFile, size: int) -> bool:
        """Returns whether a modified file still has the content that was read; checks a growing file only now and
        then."""
        now = time.monotonic()
        if size > max(file.position, self._seen_size) and now - self._compared_at < COMPARE_SECONDS:
            return True
        self._compared_at = now
        return file.is_whole()

    def _look_again(self, file: FollowedFile) -> None:
        """Leaves a file whose content has changed: the next read searches for the read content, as after a start."""
        self._offset = file.offset()
        self._leave()

    def _batch(self, file: FollowedFile, block: bytes, lines: list[bytes], taken: int, *, short: bool) -> SourceBatch:
        position = partial(self._behind, LineEnds(file.position, block))
        file.advance(block, taken)
        late = {"late": self._late.marks()} if self._late else {}
        offsets = ((self._partition, {**cast("FollowedFile", self._file).offset(), **late}),)
        values = Column(lines, STRING, utf8=True)
        read_at = Repeated(time.time_ns() // 1_000_000, len(lines))
        return SourceBatch(
            self._topic, values, timestamps_ms=read_at, offsets=offsets, short=short, position=position, passed=taken
        )

    def _behind(self, ends: LineEnds, index: int) -> tuple[Partition, Offset]:
        """Returns partition and offset of the first byte behind a line."""
        return self._partition, {"position": ends.behind(index)}

    def _most(self) -> int | None:
        limits = [n for n in (self.most_records, self._most_lines) if n is not None]
        return max(1, min(limits)) if limits else None

    def _length(self, file: FollowedFile, size: int) -> int | None:
        """Returns the number of bytes to read so that at least one line ends in them; None when none has ended."""
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
        """Changes to the file that was written next, once the old file is read and has been quiet for a while."""
        named = self._stat()
        if named is None or self._is_open(named):
            self._successor_since = None
            return None
        now = time.monotonic()
        if self._successor_since is None:
            self._successor_since = now
            file.lose_name()
        if now - self._successor_since < QUIET_SECONDS:
            return None
        may_grow = not file.unpacked and has_writer(file.descriptor) is not False
        if file.position < size and not may_grow:
            return self._rest(file, size)
        former = FormerContent.of(file)
        after = former.next_behind(self._path)
        opened = begin(after or self._path)
        if opened is None:
            return None
        _log.info("file_rotated", file=self._path, next=after or self._path, note="the old one is read to its end")
        self._offset = file.offset()
        self._former = former
        if may_grow:
            self._late.add(file)
        else:
            file.close()
        self._file = None
        return self._change_to(opened)

    def _change_to(self, opened: FollowedFile | Unpacking) -> SourceBatch | None:
        self._leave()
        if isinstance(opened, Unpacking):
            self._unpacking = opened
            return None
        self._take(opened)
        return self._next(opened)

    def _copied_before(self, file: FollowedFile) -> FollowedFile | Unpacking | None:
        """Returns the copy of content that was truncated away from the named file before its first line was read."""
        named = self._stat()
        if file.position or self._former is None or named is None or not self._is_open(named):
            return None
        former, self._former = self._former.next_behind(self._path), None
        return None if former is None else begin(former)

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self._path)
        except OSError:
            return None
