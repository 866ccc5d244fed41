"""Finds files written between a file that was read to its end and the present file of its name.

Rotation gives numbers or dates to names: `a.log.1`, `a.log-20261128`, `a-2026-11-28.log`, with or without compression.
Files with other names may not belong to the rotation, and are not read.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import struct
from collections.abc import Collection
from pathlib import Path

from keelman.connectors.file.former_files import files_beside
from keelman.connectors.file.packed_files import first_bytes, is_packed
from keelman.runtime.logs.logging import get_logger

COMPARED_BYTES = 1 << 16
EMPTY = "it is empty"
_AT_FDCWD, _AT_EMPTY_PATH, _STATX_BTIME = -100, 0x1000, 0x800
_PACKED = r"(\.[A-Za-z][A-Za-z0-9]{0,4})?"
_NUMBER = r"[.\-_]?\d[\d.\-_T]*"

_log = get_logger()


def next_rotated(
    path: str, *, modified: int, born: int = 0, inodes: Collection[int] = (), like: bytes = b""
) -> str | None:
    """Returns the rotated file that was written next after a file born and modified at these times (ns since 1970; 0
    for an unknown birth), and before the path's file; None without one.

    `inodes` are those of the former file, and `like` is its beginning: copies of it, or of the path's file, are passed
    over."""
    named = _status(path)
    candidates = []
    for entry in files_beside(path):
        status = entry.stat(follow_symlinks=False)
        if not is_rotated_name(path, entry.name) or not status.st_size:
            continue
        if named is not None and (status.st_dev, status.st_ino) == (named.st_dev, named.st_ino):
            continue
        its = 0 if is_packed(entry.name) else born_of(entry.path)
        if status.st_mtime_ns >= modified and (its > born or not its or not born):
            candidates.append((status.st_mtime_ns, entry.path, status))
    for _, candidate, status in sorted(candidates):
        reason = _not_to_be_read(candidate, path, like)
        if not reason:
            return candidate
        if reason != EMPTY and status.st_ino not in inodes and status.st_mtime_ns != modified:
            _log.warning("file_passed_over", file=path, passed=candidate, bytes=status.st_size, note=reason)
    return None


def is_rotated_name(path: str, name: str) -> bool:
    """Returns whether a rotation may have given this name to a file of the path's."""
    base = Path(path)
    patterns = (
        re.escape(base.name) + _NUMBER + _PACKED,
        re.escape(base.stem) + _NUMBER + re.escape(base.suffix) + _PACKED,
    )
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def born_of(file: str | int) -> int:
    """Returns a file's birth time in ns since 1970, by its path or descriptor; 0 if its file system has none."""
    if _statx is None:
        return 0
    answer = ctypes.create_string_buffer(256)
    name, folder, flags = (b"", file, _AT_EMPTY_PATH) if isinstance(file, int) else (os.fsencode(file), _AT_FDCWD, 0)
    if _statx(folder, name, flags, _STATX_BTIME, answer) != 0:
        return 0
    (mask,) = struct.unpack_from("=I", answer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, 80)  # stx_btime of statx(2)
    return int(seconds * 1_000_000_000 + nanoseconds) if mask & _STATX_BTIME else 0


def _not_to_be_read(candidate: str, path: str, like: bytes) -> str:
    """Returns the reason to pass a file over; empty if it must be read."""
    begun = first_bytes(candidate, COMPARED_BYTES)
    if begun is None:
        return "nothing here unpacks it"
    if not begun:
        return EMPTY
    for other in (first_bytes(path, COMPARED_BYTES) or b"", like):
        common = min(len(begun), len(other))
        if common and begun[:common] == other[:common]:
            return "it begins as the file before or behind it does: taken for a copy"
    return ""


def _status(path: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(path)
    return None


_statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None) if os.name == "posix" else None
