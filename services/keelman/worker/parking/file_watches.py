"""Looks at the files that parked tasks wait for, as often as possible for little of a processor."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from keelman.connect.watches import FileWatch
from keelman.runtime.ticks import tick

LOOK_SECONDS = 0.15
CALM_SECONDS, CALM_LOOK_SECONDS = 30.0, 0.5
SHARE = 0.005
BATCH = 500


@dataclass(frozen=True, slots=True, eq=False)
class WatchedFile:
    """One file under watch; `wake` is called once, when it differs, and then the watch ends."""

    watch: FileWatch
    wake: Callable[[], None]


class FileWatches:
    """`run()` must run while there is anything to watch.

    Plain polling, since it works on every file system, also where a file comes from another host. Seven looks a second
    while these take less than half a hundredth of a processor (some 250 files), fewer beyond: one in three seconds for
    5,000. Where no file has changed for half a minute there are two: wake-ups cost an idle worker most.
    """

    def __init__(self) -> None:
        self._files: dict[WatchedFile, None] = {}
        self._some = asyncio.Event()
        self._changed_at = time.monotonic()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: WatchedFile) -> None:
        """Watches it from now on."""
        self._files[file] = None
        self._changed_at = time.monotonic()
        self._some.set()

    def remove(self, file: WatchedFile) -> None:
        """Ends its watch; does nothing when it is not watched."""
        self._files.pop(file, None)

    async def run(self) -> None:
        """Looks for ever; waits without looking while there are no files."""
        while True:
            if not self._files:
                self._some.clear()
                await self._some.wait()
            spent, files = 0.0, list(self._files)
            for start in range(0, len(files), BATCH):
                if start:
                    await asyncio.sleep(0)
                begun = time.thread_time()
                self._look_at(files[start : start + BATCH])
                spent += time.thread_time() - begun
            calm = time.monotonic() - self._changed_at > CALM_SECONDS
            if (pause := spent / SHARE) > CALM_LOOK_SECONDS or not calm:
                await asyncio.sleep(max(LOOK_SECONDS, pause))
            else:
                await tick(CALM_LOOK_SECONDS)

    def _look_at(self, files: list[WatchedFile]) -> None:
        for file in files:
            if differs(file.watch) and self._files.pop(file, file) is None:
                file.wake()


def differs(watch: FileWatch) -> bool:
    """Returns whether the file has changed: longer, cut, written to, another, there or gone, or unreadable for a
    look."""
    try:
        now = os.stat(watch.path)
    except FileNotFoundError:
        return watch.inode != 0
    except OSError:
        return True  # its reader reports why
    if watch.modified and now.st_mtime_ns != watch.modified:
        return True
    return (now.st_size, now.st_ino) != (watch.size, watch.inode)
