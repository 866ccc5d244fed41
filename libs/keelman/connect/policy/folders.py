"""The folders in which this process opens files for connectors, and the opening itself, which no link leads out of.

A path is judged where its links lead. The folder of the file is opened first and judged by its descriptor; the file is
opened in it, without following a link that has taken its place since.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from keelman.connect.errors import ConfigValueError
from keelman.connect.policy.policy import ANY, policies_of

_OPEN_FILES = "/proc/self/fd"
Folders = Sequence[str]


class PathOutside(ConfigValueError):
    """A file is not below the folders that connectors may name."""

    def __init__(self, path: str, why: str = "") -> None:
        self.path = path
        super().__init__("file", path, why or "it leads out of the folders that connectors may name")


_held: list[tuple[str, ...]] = []
"""The folders of each policy that this process holds to; none is held where any is allowed."""


def hold_files(worker: Mapping[str, str]) -> None:
    """Has this process open files for connectors only where the policies of these worker properties allow it. For
    processes with the connectors of one worker. Raises InvalidArgument."""
    _held[:] = [policy.paths_allowed for policy in policies_of(worker) if ANY not in policy.paths_allowed]


def open_file(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Opens a file as `os.open` does. Raises PathOutside where this process may not, and OSError."""
    return open_inside(os.fspath(path), flags, mode, _held) if _held else os.open(path, flags, mode)


def opener(path: str, flags: int) -> int:
    """Opens a file for the built-in `open`, as `open_file`."""
    return open_file(path, flags)


def open_inside(path: str, flags: int, mode: int, held: Sequence[Folders]) -> int:
    """Opens a file that is below a folder of each of these, where all links lead. Raises PathOutside, OSError."""
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    if not name or not all(is_inside(real, folders) for folders in held):
        raise PathOutside(path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not all(is_inside(os.path.join(_path_of(descriptor, folder), name), folders) for folders in held):
            raise PathOutside(path)
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathOutside(path, "a link has taken its place") from None
        raise
    finally:
        os.close(descriptor)


def is_inside(path: str, folders: Folders) -> bool:
    """Returns whether an absolute path leads to one of the folders or into it, all links and `..` followed."""
    if not os.path.isabs(path) or "\0" in path:
        return False
    real = os.path.realpath(path)
    known = (folder for folder in folders if folder == ANY or os.path.isabs(folder))
    return any(folder == ANY or _within(real, os.path.realpath(folder)) for folder in known)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _path_of(descriptor: int, folder: str) -> str:
    """Returns where an open folder is; where the kernel does not tell it, where it was."""
    try:
        return os.readlink(f"{_OPEN_FILES}/{descriptor}")
    except OSError:
        return folder
