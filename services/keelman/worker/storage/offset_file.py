"""Reads and writes the file in which a standalone worker keeps the offsets of its sources: connect-standalone reads it
too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from keelman.connect.errors import DataError
from keelman.connect.java.maps import dump_map, load_map
from keelman.model.errors import InvalidArgument
from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.lock_file import take_lock
from keelman.workers.properties.typed import OFFSET_FILE

log = get_logger()
NEW_MODE = 0o644
WRITABLE = "a file that can be written, in a folder that can be"
NOWHERE = Path(os.devnull)  # as for Connect: offsets that are not kept


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keeps other workers of ours from the file until the block is left, whatever ends the process.

    The lock is on `<file>.lock` beside it, since the file itself is replaced with each writing; Connect's own workers
    know nothing of it. Raises InvalidArgument when another worker has the file, where no lock can be kept, and for a
    device or the like, which must not be replaced.
    """
    path = path.resolve()
    if path == NOWHERE:
        yield
        return
    if path.exists() and not path.is_file():
        raise InvalidArgument.of(
            OFFSET_FILE, str(path), f"a regular file, or {NOWHERE} for offsets that are not stored"
        )
    lock = path.with_name(f"{path.name}.lock")
    try:
        file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, NEW_MODE), "r+", errors="replace")
    except OSError as error:
        raise InvalidArgument.of(OFFSET_FILE, str(path), f"{WRITABLE} ({error.strerror})") from None
    with file:
        if other := take_lock(file):
            legal = f"a file that no other worker uses: the worker with process id {other} uses it"
            raise InvalidArgument.of(OFFSET_FILE, str(path), legal)
        yield


class OffsetFile:
    """`entries` are keys and values as in an offset topic; entries that are no offsets stay unchanged."""

    def __init__(self, path: Path, *, flush_seconds: float) -> None:
        """Reads the file; a missing or empty one has no offsets. Raises InvalidArgument for another kind of file, or
        for a place where none can be written."""
        self._path = path
        self._seconds = flush_seconds
        self._changed = asyncio.Event()
        self._logged = ""
        try:
            self.entries = load_map(path.read_bytes())
        except FileNotFoundError:
            self.entries = {}
        except OSError as error:
            raise InvalidArgument.of(OFFSET_FILE, str(path), f"a readable file ({error.strerror})") from None
        except DataError as error:
            raise InvalidArgument.of(OFFSET_FILE, str(path), f"a file of Connect's offsets: {error}") from None
        try:
            self._save()  # now or never: an unwritable place is refused before anything is copied
        except OSError as error:
            raise InvalidArgument.of(OFFSET_FILE, str(path), f"{WRITABLE} ({error.strerror})") from None

    def set(self, key: bytes, value: bytes | None) -> None:
        """Sets one offset, or deletes it; written soon."""
        if self.entries.get(key) == value:
            return
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = value
        self._changed.set()

    async def keep(self) -> None:
        """Writes changes, now and then, until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._seconds)
            self.write()

    def write(self) -> None:
        """Writes the changes since the last time; a full disk is logged, and tried again with the next change."""
        if not self._changed.is_set():
            return
        try:
            self._save()
        except OSError as error:
            if self._logged != str(error):
                log.error("offsets_unwritten", file=str(self._path), error=str(error), note="it is tried again")
            self._logged = str(error)
        else:
            self._changed.clear()
            self._logged = ""

    def _save(self) -> None:
        path = self._path.resolve()  # not in place of a link to it
        if path == NOWHERE:
            return
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else NEW_MODE
        write_file(path, dump_map(self.entries), mode=mode)
