"""Writes and reads the note of a worker that cannot reach its brokers or Spark service, for its supervisor: reports
need brokers too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.model.workload import REACH_PROBLEMS
from keelman.runtime.home import read_json, write_json

FILE = "brokers.json"
"""The note's file name in a worker's folder."""
MAX_BYTES = 1 << 16
MAX_MESSAGE = 2_000


@dataclass(frozen=True, slots=True)
class ReachNote:
    """Why process `pid` cannot reach a service that it needs: one of REACH_PROBLEMS, and a text."""

    pid: int
    reason: str
    message: str

    def write(self, file: Path) -> None:
        """Writes the note in one step. Raises OSError."""
        write_json(file, self)

    @staticmethod
    def read(file: Path, pid: int) -> ReachNote | None:
        """Returns this process's note; None if there is none. The file is not trusted."""
        try:
            tree = read_json(file, MAX_BYTES)
            note = ReachNote(int(tree["pid"]), str(tree["reason"]), str(tree["message"])[:MAX_MESSAGE])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        return note if note.pid == pid and note.reason in REACH_PROBLEMS else None
