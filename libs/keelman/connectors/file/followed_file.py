"""One open file and the position in it; and which file an offset speaks of, whatever that file is called by now.

An offset has Connect's `position`, and beside it a `mark` that Connect ignores:
"inode:position:fingerprint:head:modified". The inode finds a file that was renamed, but file systems give it to the
next new file at once; the fingerprint distinguishes such a file, also one that was truncated and written again, and
knows a file that was copied. The head, of the first bytes alone, passes other files over at once, and the time at which
the file had been modified when it was read tells what was written later. A mark of another position than the offset's
is void: a person or Connect has set the offset since. Marks of older versions have three parts, with a digest of the
first and the last bytes before the position.
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


class Mark(NamedTuple):
    """The mark of an offset, by which its file is known again."""

    inode: int
    position: int
    digest: str
    head: str = ""
    modified: int = 0

    def __str__(self) -> str:
        return f"{self.inode}:{self.position}:{self.digest}:{self.head}:{self.modified}"

    def fits(self, descriptor: int) -> bool:
        """Whether a file has what was read before the position."""
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
        """Takes the descriptor over. `until` is when a former file was modified while it bore its name, as far as that
        is known; `unpacked_from` the inode that a compressed file had, or has where it was never read before."""
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
        """The first byte that was not read."""
        return self._fingerprint.position

    def size(self) -> int:
        """Bytes in it now; also takes note of when it was modified."""
        status = os.fstat(self.descriptor)
        self.modified = status.st_mtime_ns
        return status.st_size

    @property
    def until(self) -> int:
        """When it was modified last while it bore its name, in ns since 1970: what followed it was modified later."""
        return self._confirmed if self._until is None else self._until

    def lose_name(self) -> None:
        """It is a former file from now on, and may be written to still."""
        self._until = self.until

    def state(self) -> tuple[int, int]:
        """Its size and when it was modified; takes note of nothing, so that another thread may ask."""
        status = os.fstat(self.descriptor)
        return status.st_size, status.st_mtime_ns

    def removed(self) -> bool:
        """Whether it has no name any more."""
        return os.fstat(self.descriptor).st_nlink == 0

    def is_same(self) -> bool:
        """Whether what was read still stands at both ends, before the position."""
        edges = self._fingerprint.first, self._fingerprint.last
        return former_files.read_edges(self.descriptor, self.position) == edges

    def is_whole(self) -> bool:
        """The same by the whole fingerprint."""
        whole = Fingerprint.of(self.descriptor, self.position).digest() == self._fingerprint.digest()
        if whole:
            self._confirmed = self.modified
        return whole

    def advance(self, block: bytes, taken: int) -> None:
        """Moves the position over the first `taken` bytes of a block that was just read there."""
        self._fingerprint.advance(block if taken == len(block) else block[:taken])
        self._confirmed = self.modified

    def mark(self) -> Mark:
        """Its mark at the position."""
        found = self._fingerprint
        return Mark(self.inode, self.position, found.digest(), found.head(), self.until)

    def offset(self) -> dict[str, Any]:
        """The offset to commit."""
        return {"position": self.position, "mark": str(self.mark())}

    def close(self) -> None:
        """Closes it."""
        os.close(self.descriptor)


class FormerContent(NamedTuple):
    """What is known of a file that was read to its end, so that what was written behind it is found."""

    until: int
    born: int
    inodes: tuple[int, int]
    begun: bytes

    @classmethod
    def of(cls, file: FollowedFile) -> FormerContent:
        """Of a file that is still open."""
        begun = os.pread(file.descriptor, COMPARED_BYTES, 0)
        return cls(file.until, file.born, (file.inode, file.packed_inode), begun)

    def next_behind(self, path: str) -> str | None:
        """The rotated file that was written next."""
        return next_rotated(path, modified=self.until, born=self.born, inodes=self.inodes, like=self.begun)


def resume(path: str, offset: Offset | None, *, unpack: bool = True) -> FollowedFile | Unpacking | None:
    """The file to go on with: the one the offset speaks of if it can be found, else what was written next, from its
    first byte; None while there is none. Raises ConnectError.

    A file that was renamed, or copied away before it was truncated, is looked for in the folder of the path and in that
    of what the path links to; with `unpack` also one that was compressed, which is to be unpacked first.
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
        os.close(renamed.descriptor)  # nothing but its inode identifies it, which another file may have by now
        renamed = None
    if renamed is not None:
        if named is not None:
            os.close(named)
        log.info("file_rotated", note="reads the renamed file to its end first")
        return FollowedFile(renamed.descriptor, position, until=mark.modified or None)
    return _replaced(path, named, mark, unpack=unpack)


def _replaced(path: str, named: int | None, mark: Mark, *, unpack: bool) -> FollowedFile | Unpacking | None:
    """What to read where another file, other content, or nothing has taken the name. Takes the descriptor over."""
    log = _log.bind(file=path, position=mark.position)
    if named is not None and mark.position and mark.fits(named):
        log.info("file_replaced", note="what was read stands in the new file too: goes on behind it")
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
        note="what was read is not found, so nothing that was written behind it is copied: "
        "begins at the first byte of what was written next",
    )
    if after is None or (is_packed(after) and not unpack):
        return None if named is None else FollowedFile(named)
    if named is not None:
        os.close(named)
    return begin(after)


def _copied(path: str, mark: Mark) -> former_files.FormerFile | None:
    """A copy of the file. Other files, too, may begin with the few bytes of a short one: its copy has a rotated name
    and is not older."""
    if mark.position > MARK_BYTES:
        return former_files.find_copied(path, mark.inode, mark.fits)
    if not mark.position or not mark.modified:
        return None
    found = former_files.find_copied(path, mark.inode, mark.fits, since=mark.modified)
    if found is not None and not is_rotated_name(path, Path(found.path).name):
        os.close(found.descriptor)
        return None
    return found


def begin(path: str) -> FollowedFile | Unpacking | None:
    """A file from its first byte."""
    if is_packed(path):
        return Unpacking([path], fresh=True)
    descriptor = open_regular(path)
    return None if descriptor is None else FollowedFile(descriptor)


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
    mark = read_mark(None if offset is None else offset.get("mark"))
    return mark if mark is not None and mark.position == position else None


def read_mark(text: Any) -> Mark | None:
    """A mark from its text, None for what is none."""
    parts = text.split(":") if isinstance(text, str) else []
    if len(parts) not in (3, 5) or not all(part.isdecimal() for part in (*parts[:2], *parts[4:])):
        return None
    head, modified = (parts[3], int(parts[4])) if len(parts) > 3 else ("", 0)
    return Mark(int(parts[0]), int(parts[1]), parts[2], head, modified)
