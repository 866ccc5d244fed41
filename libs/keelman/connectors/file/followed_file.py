"""One open file and the position in it; and which file an offset speaks of, whatever that file is called by now.

An offset has Connect's `position`, and beside it a `mark` that Connect ignores: "inode:position:digest", with a digest
of the first and the last bytes before the position. The inode finds a file that was renamed, but file systems give it
to the next new file at once; the digest distinguishes such a file, also one that was truncated and written again, and
knows a file that was copied. A mark of another position than the offset's is void: a person or Connect has set the
offset since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import valid_utf8
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.records import Offset
from keelman.runtime.logs.logging import get_logger

MARK_BYTES = 256
_log = get_logger()


def check_positions(config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
    """True, or ConnectError in Connect's words for what is no file's position; whether the file has it is not asked."""
    if not config.get("file"):
        raise ConnectError(
            "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used for "
            "input and offsets are not tracked."
        )
    for partition, offset in offsets:
        if offset is None:
            continue
        if "position" not in offset:
            raise ConnectError("Offset objects should either be null or contain the key 'position'")
        position = offset["position"]
        if not isinstance(position, int) or isinstance(position, bool):
            raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
        if position < 0:
            raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
        if partition is None:
            raise ConnectError("Partition objects cannot be null")
        if "filename" not in partition:
            raise ConnectError("Partition objects should contain the key 'filename'")
    return True


def line_end(block: bytes) -> int:
    """The index behind the first byte that ends a line, 0 without one; a \\r that is the last byte ends nothing yet."""
    ends = [i + 1 for i in (block.find(b"\n"), block.find(b"\r", 0, len(block) - 1)) if i >= 0]
    return min(ends, default=0)


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


def first_lines(block: bytes, most: int) -> tuple[list[bytes], int]:
    """The first lines of a block that has more of them, and how many bytes they take with their ends."""
    taken = sum(map(len, block.splitlines(keepends=True)[:most]))
    return valid_utf8(block[:taken]).splitlines(), taken


class LineEnds:
    """Where in a file the lines of a block end, which begins there; counted when first asked for."""

    def __init__(self, begin: int, block: bytes) -> None:
        self._begin = begin
        self._block = block
        self._ends: list[int] = []

    def behind(self, index: int) -> int:
        """The first byte behind a line and its end."""
        if not self._ends:
            self._ends = list(accumulate(map(len, self._block.splitlines(keepends=True)), initial=self._begin))
        return self._ends[index + 1]


class Mark(NamedTuple):
    """The mark of an offset, by which its file is known again."""

    inode: int
    position: int
    digest: str

    def __str__(self) -> str:
        return f"{self.inode}:{self.position}:{self.digest}"


class FollowedFile:
    """An open regular file, read by one thread."""

    def __init__(self, descriptor: int, position: int = 0) -> None:
        """Takes the descriptor over."""
        self.descriptor = descriptor
        self.inode = os.fstat(descriptor).st_ino
        self.position = position
        self._edges = read_edges(descriptor, position)

    def size(self) -> int:
        """Bytes in it now."""
        return os.fstat(self.descriptor).st_size

    def removed(self) -> bool:
        """Whether it has no name any more."""
        return os.fstat(self.descriptor).st_nlink == 0

    def is_same(self) -> bool:
        """Whether what was read still is what stands before the position."""
        return read_edges(self.descriptor, self.position) == self._edges

    def advance(self, block: bytes, taken: int) -> None:
        """Moves the position over the first `taken` bytes of a block that was just read there."""
        self.position += taken
        first, last = self._edges
        first += block[: min(taken, MARK_BYTES - len(first))]
        last = (last + block[max(0, taken - MARK_BYTES) : taken])[-MARK_BYTES:]
        self._edges = (first, last)

    def offset(self) -> dict[str, Any]:
        """The offset to commit."""
        mark = Mark(self.inode, self.position, digest(self._edges))
        return {"position": self.position, "mark": str(mark)}

    def close(self) -> None:
        """Closes it."""
        os.close(self.descriptor)


def resume(path: str, offset: Offset | None) -> FollowedFile | None:
    """The file to go on with: the one the offset speaks of if it can be found, else what bears the name, from its first
    byte; None while there is none. Raises ConnectError.

    A file that was renamed, or copied away before it was truncated, is looked for in the folder of the path and in that
    of what the path links to.
    """
    position = checked_position(offset)
    mark = parse_mark(offset, position)
    named = open_regular(path)
    log = _log.bind(file=path, position=position)
    if named is not None and (mark is None or (os.fstat(named).st_ino == mark.inode and _fits(named, mark))):
        if os.fstat(named).st_size < position:
            log.warning("file_truncated", note="it is shorter than the position: begins at its first byte")
            position = 0
        return FollowedFile(named, position)
    renamed = None if mark is None else _renamed(path, mark)
    if renamed is not None:
        if named is not None:
            os.close(named)
        log.info("file_rotated", note="reads the renamed file to its end first")
        return FollowedFile(renamed, position)
    return None if named is None or mark is None else _replaced(path, named, mark)


def _replaced(path: str, named: int, mark: Mark) -> FollowedFile:
    """What to read where another file, or other content, has taken the name. Takes the descriptor over."""
    log = _log.bind(file=path, position=mark.position)
    if _fits(named, mark):
        log.info("file_replaced", note="what was read stands in the new file too: goes on behind it")
        return FollowedFile(named, mark.position)
    event = "file_truncated" if os.fstat(named).st_ino == mark.inode else "file_replaced"
    copied = _copied(path, mark)
    if copied is not None:
        os.close(named)
        log.info(event, note="reads a copy of the former content to its end first")
        return FollowedFile(copied, mark.position)
    log.warning(event, note="what was read is not in it: begins at its first byte")
    return FollowedFile(named)


def checked_position(offset: Offset | None) -> int:
    """The byte position of an offset, 0 without one. Raises ConnectError."""
    if offset is None or offset.get("position") is None:
        return 0
    position: Any = offset["position"]
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise ConnectError(f"Offset position is the incorrect type or negative: {position!r}")
    return position


def parse_mark(offset: Offset | None, position: int) -> Mark | None:
    """The offset's mark, None when it has none that is of this position."""
    text = None if offset is None else offset.get("mark")
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) != len(Mark._fields) or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    mark = Mark(int(parts[0]), int(parts[1]), parts[2])
    return mark if mark.position == position else None


def open_regular(path: str) -> int | None:
    """A descriptor to read from, None when there is no such file.

    Raises ConnectError for what is not a regular file, RetriableConnectError when it may be readable later.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RetriableConnectError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConnectError(f"{path}: not a regular file, so it has no positions to go back to")
    return descriptor


def read_edges(descriptor: int, position: int) -> tuple[bytes, bytes]:
    """The first and the last bytes before a position."""
    length = min(MARK_BYTES, position)
    return os.pread(descriptor, length, 0), os.pread(descriptor, length, position - length)


def digest(edges: tuple[bytes, bytes]) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.blake2b(b"".join(edges), digest_size=8).hexdigest()


def _fits(descriptor: int, mark: Mark) -> bool:
    return (
        os.fstat(descriptor).st_size >= mark.position and digest(read_edges(descriptor, mark.position)) == mark.digest
    )


def _renamed(path: str, mark: Mark) -> int | None:
    """A descriptor of the marked file under another name; None at position 0, where nothing identifies it."""
    if not mark.position:
        return None
    return _first_fit((e.path for e in _beside(path) if e.inode() == mark.inode), mark)


def _copied(path: str, mark: Mark) -> int | None:
    """A descriptor of the newest file whose name begins with the path's and that holds what was read; None where the
    mark is of so few bytes that files have them in common."""
    if mark.position <= MARK_BYTES:
        return None
    found = [e for e in _beside(path) if e.name.startswith(Path(path).name) and e.inode() != mark.inode]
    found.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime, reverse=True)
    return _first_fit((e.path for e in found), mark)


def _beside(path: str) -> list[os.DirEntry[str]]:
    """The regular files in the folder of the path and in that of what it links to."""
    found = []
    for folder in {Path(path).absolute().parent, Path(os.path.realpath(path)).parent}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found += [e for e in entries if e.is_file(follow_symlinks=False)]
    return found


def _first_fit(names: Iterable[str], mark: Mark) -> int | None:
    for name in names:
        with contextlib.suppress(ConnectError, OSError):
            descriptor = open_regular(name)
            if descriptor is not None and _fits(descriptor, mark):
                return descriptor
            if descriptor is not None:
                os.close(descriptor)
    return None
