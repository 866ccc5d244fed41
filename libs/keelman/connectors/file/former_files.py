"""Finds a file again that does not bear its name any more: renamed, or copied before it was truncated."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.policy.folders import open_file
from keelman.connectors.file.fingerprint import MARK_BYTES


class FormerFile(NamedTuple):
    """A file with the content that was searched for, open for reading."""

    path: str
    descriptor: int


def find_renamed(path: str, inode: int, fits: Callable[[int], bool]) -> FormerFile | None:
    """The file with this inode under another name, where its descriptor fits."""
    return _first_fit((e.path for e in files_beside(path) if e.inode() == inode), fits)


def find_copied(path: str, inode: int, fits: Callable[[int], bool], *, since: int = 0) -> FormerFile | None:
    """The newest file whose name begins with the path's, or with that less its suffix, other than this inode, whose
    descriptor fits, and that was modified then (ns since 1970) or later."""
    base = Path(path)
    names = [
        (e.stat(follow_symlinks=False).st_mtime_ns, e.path)
        for e in files_beside(path)
        if e.name.startswith((base.name, base.stem)) and e.name != base.name and e.inode() != inode
    ]
    return _first_fit((name for modified, name in sorted(names, reverse=True) if modified >= since), fits)


def find_former(path: str, inode: int, fits: Callable[[int], bool], *, since: int = 0) -> FormerFile | None:
    """The file with this inode, or else the newest copy that was modified then or later, whose descriptor fits."""
    return find_renamed(path, inode, fits) or find_copied(path, inode, fits, since=since)


def files_beside(path: str) -> list[os.DirEntry[str]]:
    """Returns the regular files in the folder of the path and in the folder of its link target."""
    regular = []
    for folder in {Path(path).absolute().parent, Path(os.path.realpath(path)).parent}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            regular += [e for e in entries if e.is_file(follow_symlinks=False)]
    return regular


def open_regular(path: str) -> int | None:
    """A descriptor to read from, None when there is no such file.

    Raises ConnectError for what is not a regular file, RetriableConnectError when it may be readable later.
    """
    try:
        descriptor = open_file(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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


def fits(descriptor: int, position: int, edges: str) -> bool:
    """Returns whether a file has these edges before the position."""
    return os.fstat(descriptor).st_size >= position and digest(read_edges(descriptor, position)) == edges


def _first_fit(names: Iterable[str], fits: Callable[[int], bool]) -> FormerFile | None:
    for name in names:
        with contextlib.suppress(ConnectError, OSError):
            descriptor = open_regular(name)
            if descriptor is not None and fits(descriptor):
                return FormerFile(name, descriptor)
            if descriptor is not None:
                os.close(descriptor)
    return None
