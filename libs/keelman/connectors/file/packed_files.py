"""Reads files that were compressed after their rotation: unpacks them into a file without a name, a piece at a time."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from keelman.connect.policy.folders import PathOutside, open_file, opener
from keelman.connectors.file.fingerprint import MARK_BYTES, head_of
from keelman.connectors.file.former_files import files_beside

OPENERS: dict[str, Callable[[str], object]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".lzma": lzma.open}
OTHERS = (".zst", ".lz4", ".lzo", ".zip", ".7z", ".Z", ".br", ".sz")
PIECE_BYTES, PIECE_SECONDS = 1 << 20, 0.3
BROKEN = (OSError, PathOutside, EOFError, lzma.LZMAError, zlib.error)


class Unpacked(NamedTuple):
    """The content of a compressed file, in a file without a name, and the compressed file's own inode and time."""

    descriptor: int
    inode: int
    modified: int


class _Packed(NamedTuple):
    """A compressed file that is open: its content unpacked, its inode and its modification time."""

    content: BinaryIO
    inode: int
    modified: int

    @classmethod
    def opened(cls, path: str) -> _Packed:
        content = _open(path)
        status = os.fstat(content.fileno())
        return cls(content, status.st_ino, status.st_mtime_ns)


class Unpacking:
    """Unpacks files one after the other, in short steps, for a reader that must not be away for long."""

    def __init__(self, paths: Sequence[str], *, fresh: bool = False) -> None:
        """With `fresh` the file is read from its first byte. Opens all files now, because a rotation gives their names
        to other files. Raises OSError."""
        self.fresh = fresh
        self.name = paths[0]
        self._waiting = [_Packed.opened(path) for path in paths]
        self._packed: _Packed | None = None
        self._made: BinaryIO | None = None

    @property
    def done(self) -> bool:
        """Whether no file is left."""
        return not self._waiting and self._packed is None

    def step(self) -> Unpacked | None:
        """Works for a moment. Returns the next file once it is unpacked. Leaves out a file that is broken, or still
        being written. Raises OSError if there is no room."""
        if self.done:
            return None
        packed, copy = self._opened()
        deadline = time.monotonic() + PIECE_SECONDS
        while time.monotonic() < deadline:
            try:
                piece = packed.content.read(PIECE_BYTES)
            except BROKEN:
                self.close(rest=False)
                return None
            if not piece:
                copy.flush()
                unpacked = Unpacked(os.dup(copy.fileno()), packed.inode, packed.modified)
                self.close(rest=False)
                return unpacked
            copy.write(piece)
        return None

    def close(self, *, rest: bool = True) -> None:
        """Closes the current file; with `rest` also the files still waiting."""
        if self._packed is not None:
            self._packed.content.close()
        if self._made is not None:
            self._made.close()
        self._packed = self._made = None
        while rest and self._waiting:
            self._waiting.pop().content.close()

    def _opened(self) -> tuple[_Packed, BinaryIO]:
        if self._packed is None or self._made is None:
            self._packed = self._waiting.pop(0)
            self._made = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  closed by `close`
        return self._packed, self._made


def is_packed(name: str) -> bool:
    """Returns whether a file is compressed, by its name."""
    return Path(name).suffix in (*OPENERS, *OTHERS)


def packed_former(path: str, position: int, head: str) -> list[str]:
    """Returns the compressed files, the newest first, that may hold the path's content read up to this position."""
    if not head or not position:
        return []
    entries = [e for e in files_beside(path) if e.name.startswith(Path(path).stem) and Path(e.name).suffix in OPENERS]
    entries.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime, reverse=True)
    length = min(MARK_BYTES, position)
    return [e.path for e in entries if head_of(first_bytes(e.path, length) or b"") == head]


def first_bytes(path: str, count: int) -> bytes | None:
    """Returns the first bytes of a file's content, unpacked; None if they cannot be read."""
    if Path(path).suffix in OTHERS:
        return None
    with contextlib.suppress(*BROKEN), _open(path) as file:
        return file.read(count)
    return None


def _open(path: str) -> BinaryIO:
    unpacker = OPENERS.get(Path(path).suffix)
    if unpacker is None:
        return open(path, "rb", opener=opener)
    descriptor = open_file(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return cast("BinaryIO", unpacker(f"/dev/fd/{descriptor}"))  # the same file, opened once more
    finally:
        os.close(descriptor)
