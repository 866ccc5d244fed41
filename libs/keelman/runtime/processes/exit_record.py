"""Writes a process's end into a file, for a starter that may be away when it happens.

The starter names the file in the environment; `run_process` takes the name out of it, so that no grandchild inherits
it, and writes the file last. A killed process leaves no record, and that is information too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.home import read_json, write_json

VARIABLE = "KEELMAN_EXIT_RECORD"
MAX_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """A process's end: its id, its exit code, and the error that ended it (empty when it ended as asked)."""

    pid: int
    exit_code: int
    reason: str = ""
    message: str = ""


def take_path() -> Path | None:
    """Returns the file for this process's record; None if its starter wants none. Call once."""
    path = os.environ.pop(VARIABLE, "")
    return Path(path) if path else None


def write(path: Path | None, exit_code: int, *, reason: str = "", message: str = "") -> None:
    """Writes this process's record. A folder that is gone or full costs the record and nothing else."""
    if path is None:
        return
    record = ExitRecord(os.getpid(), exit_code, reason, message)
    try:
        write_json(path, record)
    except OSError:
        return


def read(path: Path, pid: int) -> ExitRecord | None:
    """Returns the record of process `pid`; None if it left none. The file is not trusted."""
    try:
        tree = read_json(path, MAX_BYTES)
        record = ExitRecord(int(tree["pid"]), int(tree["exit_code"]), str(tree["reason"]), str(tree["message"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return record if record.pid == pid and abs(record.exit_code) < 1 << 31 else None
