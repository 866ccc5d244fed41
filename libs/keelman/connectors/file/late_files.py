"""Files that lost their name and may still be written to: a program goes on with a renamed file until it reopens it."""

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
    """Those of one reader, the oldest first. One thread uses it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: dict[FollowedFile, float] = {}
        self._seen: dict[FollowedFile, int] = {}
        self._looked_at = float("-inf")

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: FollowedFile) -> None:
        """Keeps a file that was read to its end; takes it over."""
        self._files[file] = time.monotonic()
        self._seen[file] = file.size()
        if len(self._files) > MOST_FILES:
            oldest = next(iter(self._files))
            left = oldest.size() - oldest.position
            _log.warning("late_file_left", file=self._path, bytes=left, note="too many of its former files are kept")
            self._leave(oldest)

    def resume(self, marks: str) -> None:
        """Finds those of an offset again."""
        for mark in filter(None, map(read_mark, marks.split())):
            found = find_renamed(self._path, mark.inode, mark.fits)
            if found is None:
                note = "a former file is not found any more: what was written to it since is not copied"
                _log.warning("late_file_gone", file=self._path, inode=mark.inode, read_to=mark.position, note=note)
            else:
                self.add(FollowedFile(found.descriptor, mark.position))
                self._seen[next(reversed(self._files))] = -1

    def marks(self) -> str:
        """Where they were read to, for an offset."""
        return " ".join(str(file.mark()) for file in self._files)

    def left(self) -> int:
        """Bytes in them that were not read."""
        return sum(max(0, file.state()[0] - file.position) for file in list(self._files))

    def glance(self) -> bool:
        """Whether one of them has grown."""
        return any(file.state()[0] != seen for file, seen in list(self._seen.items()))

    def grown(self) -> FollowedFile | None:
        """One that has grown since it was last seen."""
        for file, seen in self._seen.items():
            size = file.size()
            if size != seen:
                self._seen[file] = size
                self._files[file] = time.monotonic()
                if size > file.position:
                    return file
        return None

    def read_again(self, file: FollowedFile) -> None:
        """There is more to read in it."""
        self._seen[file] = -1

    def ended(self) -> FollowedFile | None:
        """One that nobody writes to any more, and that has a last line without an end; others like it are left."""
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
        """Closes them all."""
        for file in list(self._files):
            self._leave(file)

    def _leave(self, file: FollowedFile) -> None:
        del self._files[file], self._seen[file]
        file.close()


def has_writer(descriptor: int) -> bool | None:
    """Whether somebody on this host has the file open to write to it; None where the kernel does not say.

    It says so by refusing a lease for reading (fcntl(2)), to the file's owner and to root. Whoever opens the file just
    then waits until the lease is given back; the signal for it is one that processes ignore.
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
