"""Files that lost their name and may still grow: a program keeps writing to a renamed file until it reopens the
path."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import time

from keelman.connectors.file.followed_file import FollowedFile, read_mark
from keelman.connectors.file.former_files import find_renamed
from keelman.runtime.logs.logging import get_logger

MOST_FILES = 16
KEEP_SECONDS = 300.0
LOOK_SECONDS = 0.5

_log = get_logger()


class LateFiles:
    """The late files of one reader, the oldest first. One thread uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: dict[FollowedFile, float] = {}
        self._seen: dict[FollowedFile, int] = {}
        self._looked_at = float("-inf")

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: FollowedFile) -> None:
        """Takes over a file that was read to its end."""
        self._files[file] = time.monotonic()
        self._seen[file] = file.size()
        if len(self._files) > MOST_FILES:
            oldest = next(iter(self._files))
            left = oldest.size() - oldest.position
            _log.warning("late_file_left", file=self._path, bytes=left, note="too many of its former files are open")
            self._leave(oldest)

    def resume(self, marks: str) -> None:
        """Finds the late files of an offset again."""
        for mark in filter(None, map(read_mark, marks.split())):
            renamed = find_renamed(self._path, mark.inode, mark.fits)
            if renamed is None:
                note = "a former file is no longer found: text that was written to it since is not copied"
                _log.warning("late_file_gone", file=self._path, inode=mark.inode, read_to=mark.position, note=note)
            else:
                self.add(FollowedFile(renamed.descriptor, mark.position))
                self._seen[next(reversed(self._files))] = -1

    def marks(self) -> str:
        """Returns the files' marks at their read positions, for an offset."""
        return " ".join(str(file.mark()) for file in self._files)

    def left(self) -> int:
        """Returns the number of unread bytes in the files."""
        return sum(max(0, file.state()[0] - file.position) for file in list(self._files))

    def glance(self) -> bool:
        """Returns whether any file has grown."""
        return any(file.state()[0] != seen for file, seen in list(self._seen.items()))

    def grown(self) -> FollowedFile | None:
        """Returns a file that has grown since the last look."""
        for file, seen in self._seen.items():
            size = file.size()
            if size != seen:
                self._seen[file] = size
                self._files[file] = time.monotonic()
                if size > file.position:
                    return file
        return None

    def read_again(self, file: FollowedFile) -> None:
        """Notes that the file has more to read."""
        self._seen[file] = -1

    def ended(self) -> FollowedFile | None:
        """Returns a file without a writer whose last line has no end; closes files without a writer that are read."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return None
        self._looked_at = now
        for file, grown_at in list(self._files.items()):
            writer = has_writer(file.descriptor)
            if file.size() != self._seen[file] or writer or (writer is None and now - grown_at < KEEP_SECONDS):
                continue
            if file.size() > file.position:
                return file
            self._leave(file)
        return None

    def close(self) -> None:
        """Closes all files."""
        for file in list(self._files):
            self._leave(file)

    def _leave(self, file: FollowedFile) -> None:
        del self._files[file], self._seen[file]
        file.close()


def has_writer(descriptor: int) -> bool | None:
    """Returns whether a process on this host has the file open for writing; None if the kernel does not tell.

    The kernel tells it by refusing a read lease (fcntl(2)), to the file's owner and to root. A process that opens the
    file just then waits until the lease is given back; processes ignore the signal for it.
    """
    lease = getattr(fcntl, "F_SETLEASE", None)
    if lease is None:
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, lease, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, lease, fcntl.F_UNLCK)
    return False
