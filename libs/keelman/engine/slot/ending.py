"""Finds out which methods of connectors a slot's process is in, how it ended, and in which method.

An ended process can report neither. It notes each method that it calls in memory shared with its reaper, and the
reaper, which learns how it ended, leaves a line in the folder that the Spark service of this host reads (`end_of`).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from keelman.connect import contract

FOLDER = "KEELMAN_SLOT_ENDS"
"""The variable with the folder; a slot of another host has none, and leaves no line."""
NOTE_BYTES = 256
_CALL = contract.ReturnCheck.of.__code__


class LastCall:
    """The method that a process is in. Created before the fork, so that both processes have it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, NOTE_BYTES)

    def note(self, method: str) -> None:
        """Notes a call of a method, e.g. `SeaReader.read`; empty when it has returned."""
        self._memory[:] = method.encode("utf-8", "replace")[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")

    @property
    def method(self) -> str:
        """The method that was noted last."""
        return self._memory[:].rstrip(b"\0").decode("utf-8", "replace")


_shared: LastCall | None = None


def shared_call() -> LastCall:
    """Returns a new note that this process shares with the slot that it forks next."""
    global _shared  # noqa: PLW0603  one a process
    _shared = LastCall()
    return _shared


def note_calls() -> None:
    """Begins to note the methods of the slot's connector. For a slot with one task loop: several would be mixed up."""
    if _shared is not None:
        contract.note_calls(_shared.note)


def how_ended(code: int, method: str) -> str:
    """Returns the end in words, e.g. `exited with code 9 in SeaReader.read`; a negative code is a signal's number."""
    if code >= 0:
        how = f"exited with code {code}"
    else:
        try:
            how = f"was killed by {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal has no name
            how = f"was killed by signal {-code}"
    return f"{how} in {method}" if method else how


def leave_end(last: LastCall, child: int, code: int) -> None:
    """Leaves the reaper's line about its child, unless the child ended in good order."""
    folder, method = os.environ.get(FOLDER, ""), last.method
    if folder and (code or method):
        with contextlib.suppress(OSError):  # no process waits for it
            file = Path(folder) / str(child)
            file.with_suffix(".new").write_text(how_ended(code, method), encoding="utf-8")
            file.with_suffix(".new").rename(file)


def end_of(folder: Path, pid: int) -> str:
    """Reads and deletes the reaper's line on how the process ended; returns an empty text if there is none."""
    file = folder / str(pid)
    try:
        text = file.read_text(encoding="utf-8")
        file.unlink()
    except OSError:
        return ""
    return text


def calls_under_way() -> str:
    """Returns the methods of connectors that this process is in, e.g. `SeaReader.read, SeaWriter.write`; empty for
    none.

    Methods in a connector's own threads count, and threads that wait for these do not. Needs no earlier note.
    """
    return ", ".join(dict.fromkeys(contract.background_calls() or _called()))


def _called() -> Iterator[str]:
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None and frame.f_code is not _CALL:
            frame = frame.f_back
        if frame is not None:
            yield frame.f_locals["self"].named(frame.f_locals["method"])
