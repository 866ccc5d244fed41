"""One open file and the position in it; and the search for the file of an offset, whatever its present name.

An offset has Connect's `position`, and beside it a `mark` that Connect ignores:
"inode:position:fingerprint:head:modified". The inode finds a file that was renamed, but file systems give it to the
next new file at once; the fingerprint distinguishes such a file, also one that was truncated and written again, and
recognizes a file that was copied. The head, of the first bytes alone, rules other files out quickly, and the file's
modification time when it was read shows which files were written later. A mark whose position differs from the
offset's is void: a person or Connect has set the offset since. Marks of older versions have three parts, with a digest
of the first and the last bytes before the position.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.records import Offset
from keelman.connectors.file import former_files
from keelman.connectors.file.fingerprint import MARK_BYTES, Fingerprint
from keelman.connectors.file.former_files import open_regular
from keelman.connectors.file.packed_files import Unpacking, is_packed, packed_former
from keelman.connectors.file.rotated_files import COMPARED_BYTES, born_of, is_rotated_name, next_rotated
from keelman.runtime.logs.logging import get_logger

_log = get_logger()


def check_positions(config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
    """Returns True. Raises ConnectError, in Connect's words, for offsets that are no file positions; does not check
    whether the file has such a position."""
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


class Mark(NamedTuple):
    """The mark of an offset, by which its file is recognized."""

    inode: int
    position: int
    digest: str
    head: str = ""
    modified: int = 0

    def __str__(self) -> str:
        return f"{self.inode}:{self.position}:{self.digest}:{self.head}:{self.modified}"

    def fits(self, descriptor: int) -> bool:
        """Returns whether a file has the content that was read before the position."""
        if os.fstat(descriptor).st_size < self.position:
            return False
        if not self.head:
            return former_files.fits(descriptor, self.position, self.digest)
        return Fingerprint.of(descriptor, self.position).digest() == self.digest


class FollowedFile:
    """An open regular file, read by one thread."""

    def __init__(
        self, descriptor: int, position: int = 0, *, until: int | None = None, unpacked_from: int | None = None
    ) -> None:
        """Takes over the descriptor. `until` is the last time that a former file was modified under its name, if that
        is known; `unpacked_from` the inode of the file before compression, or the compressed file's own if it was never
        read before."""
        status = os.fstat(descriptor)
        self.descriptor = descriptor
        self.identity = status.st_dev, status.st_ino
        self.inode = status.st_ino if unpacked_from is None else unpacked_from
        self.modified = self._confirmed = status.st_mtime_ns
        self.unpacked = unpacked_from is not None
        self.packed_inode = 0
        self.born = 0 if self.unpacked else born_of(descriptor)
        self._until = until
        self._fingerprint = Fingerprint.of(descriptor, position)

    @property
    def position(self) -> int:
        """The first unread byte."""
        return self._fingerprint.position

    def size(self) -> int:
        """Returns its present size in bytes; also notes its modification time."""
        status = os.fstat(self.descriptor)
        self.modified = status.st_mtime_ns
        return status.st_size

    @property
    def until(self) -> int:
        """The last time it was modified under its name, in ns since 1970: its successor was modified later."""
        return self._confirmed if self._until is None else self._until

    def lose_name(self) -> None:
        """Marks it as a former file, which programs may still write to."""
        self._until = self.until

    def state(self) -> tuple[int, int]:
        """Returns its size and modification time; changes nothing, so that any thread may call it."""
        status = os.fstat(self.descriptor)
        return status.st_size, status.st_mtime_ns

    def removed(self) -> bool:
        """Returns whether it has no name any more."""
        return os.fstat(self.descriptor).st_nlink == 0

    def is_same(self) -> bool:
        """Returns whether the read part, up to the position, still has the same first and last bytes."""
        edges = self._fingerprint.first, self._fingerprint.last
        return former_files.read_edges(self.descriptor, self.position) == edges

    def is_whole(self) -> bool:
        """Returns whether the read part is unchanged by its whole fingerprint."""
        whole = Fingerprint.of(self.descriptor, self.position).digest() == self._fingerprint.digest()
        if whole:
            self._confirmed = self.modified
        return whole

    def advance(self, block: bytes, taken: int) -> None:
        """Moves the position over the first `taken` bytes of a block that was just read there."""
        self._fingerprint.advance(block if taken == len(block) else block[:taken])
        self._confirmed = self.modified

    def mark(self) -> Mark:
        """Returns its mark at the position."""
        fingerprint = self._fingerprint
        return Mark(self.inode, self.position, fingerprint.digest(), fingerprint.head(), self.until)

    def offset(self) -> dict[str, Any]:
        """Returns the offset to commit."""
        return {"position": self.position, "mark": str(self.mark())}

    def close(self) -> None:
        """Closes the file."""
        os.close(self.descriptor)


class FormerContent(NamedTuple):
    """The facts about a file that was read to its end by which its successor is found."""

    until: int
    born: int
    inodes: tuple[int, int]
    begun: bytes

    @classmethod
    def of(cls, file: FollowedFile) -> FormerContent:
        """Returns the facts about a file that is still open."""
        begun = os.pread(file.descriptor, COMPARED_BYTES, 0)
        return cls(file.until, file.born, (file.inode, file.packed_inode), begun)

    def next_behind(self, path: str) -> str | None:
        """Returns the rotated file that was written next."""
        return next_rotated(path, modified=self.until, born=self.born, inodes=self.inodes, like=self.begun)


def resume(path: str, offset: Offset | None, *, unpack: bool = True) -> FollowedFile | Unpacking | None:
    """Returns the file to read on: the offset's file if it can be found, else the file written next, from its
    first byte; None while there is none. Raises ConnectError.

    Looks for a file that was renamed, or copied away before it was truncated, in the folder of the path and in the
    folder of the path's link target; with `unpack` also for a compressed file, which must be unpacked first.
    """
    position = checked_position(offset)
    mark = parse_mark(offset, position)
    named = open_regular(path)
    log = _log.bind(file=path, position=position)
    if named is not None and (mark is None or (os.fstat(named).st_ino == mark.inode and mark.fits(named))):
        if os.fstat(named).st_size < position:
            log.warning("file_truncated", note="it is shorter than the position: begins at its first byte")
            position = 0
        return FollowedFile(named, position)
    if mark is None:
        return None
    renamed = former_files.find_renamed(path, mark.inode, mark.fits)
    if renamed is not None and not position and not is_rotated_name(path, Path(renamed.path).name):
        os.close(renamed.descriptor)  # only its inode identifies it, and another file may have that by now
        renamed = None
    if renamed is not None:
        if named is not None:
            os.close(named)
        log.info("file_rotated", note="reads the renamed file to its end first")
        return FollowedFile(renamed.descriptor, position, until=mark.modified or None)
    return _replaced(path, named, mark, unpack=unpack)


def _replaced(path: str, named: int | None, mark: Mark, *, unpack: bool) -> FollowedFile | Unpacking | None:
    """Returns the file to read where the name has another file, other content or no file. Takes over the descriptor."""
    log = _log.bind(file=path, position=mark.position)
    if named is not None and mark.position and mark.fits(named):
        log.info("file_replaced", note="the new file begins with the text that was read: continues after it")
        return FollowedFile(named, mark.position)
    truncated = named is not None and os.fstat(named).st_ino == mark.inode
    event = "file_truncated" if truncated else "file_replaced"
    copied = _copied(path, mark)
    if copied is None and unpack and (packed := packed_former(path, mark.position, mark.head)):
        if named is not None:
            os.close(named)
        log.info(event, packed=packed[0], note="unpacks what may hold the former content")
        return Unpacking(packed)
    if copied is not None:
        if named is not None:
            os.close(named)
        log.info(event, note="reads a copy of the former content to its end first")
        return FollowedFile(copied.descriptor, mark.position, until=mark.modified or None)
    after = next_rotated(path, modified=mark.modified) if mark.modified else None
    if named is None and after is None:
        return None
    log.warning(
        event,
        read_to=mark.position,
        next=after or path,
        note="the text that was read is not found, so text after it in the former file is not copied: begins at the "
        "first byte of the new file",
    )
    if after is None or (is_packed(after) and not unpack):
        return None if named is None else FollowedFile(named)
    if named is not None:
        os.close(named)
    return begin(after)


def _copied(path: str, mark: Mark) -> former_files.FormerFile | None:
    """Returns a copy of the file. Other files may begin with the same few bytes as a short file: so its copy must have
    a rotated name and must not be older."""
    if mark.position > MARK_BYTES:
        return former_files.find_copied(path, mark.inode, mark.fits)
    if not mark.position or not mark.modified:
        return None
    copied = former_files.find_copied(path, mark.inode, mark.fits, since=mark.modified)
    if copied is not None and not is_rotated_name(path, Path(copied.path).name):
        os.close(copied.descriptor)
        return None
    return copied


def begin(path: str) -> FollowedFile | Unpacking | None:
    """Returns a file at its first byte."""
    if is_packed(path):
        return Unpacking([path], fresh=True)
    descriptor = open_regular(path)
    return None if descriptor is None else FollowedFile(descriptor)


def checked_position(offset: Offset | None) -> int:
    """Returns the byte position of an offset, 0 without an offset. Raises ConnectError."""
    if offset is None or offset.get("position") is None:
        return 0
    position: Any = offset["position"]
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise ConnectError(f"Offset position is the incorrect type or negative: {position!r}")
    return position


def parse_mark(offset: Offset | None, position: int) -> Mark | None:
    """Returns the offset's mark, None if it has none of this position."""
    mark = read_mark(None if offset is None else offset.get("mark"))
    return mark if mark is not None and mark.position == position else None


def read_mark(text: Any) -> Mark | None:
    """Parses a mark. Returns None for any other value."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) not in (3, 5) or not all(part.isdecimal() for part in (*parts[:2], *parts[4:])):
        return None
    head, modified = (parts[3], int(parts[4])) if len(parts) > 3 else ("", 0)
    return Mark(int(parts[0]), int(parts[1]), parts[2], head, modified)
