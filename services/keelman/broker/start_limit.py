"""Remembers how long a broker's next start may take: after one that took too long, twice the time."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

MOST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class StartLimit:
    """The limit of one broker. `first` is the setting; `file` has a longer limit after a start that took too long.

    On a host that is overloaded, or with a long log to recover, every start with a fixed limit would be cut off again.
    """

    file: Path
    first: float

    @property
    def seconds(self) -> float:
        """The limit of the present start."""
        with contextlib.suppress(OSError, ValueError):
            return max(self.first, min(float(self.file.read_text(encoding="utf-8")), MOST_SECONDS))
        return self.first

    def note_slow(self) -> float:
        """Notes a start that took longer than the limit; returns the next limit. Raises OSError."""
        after = max(self.first, min(2 * self.seconds, MOST_SECONDS))
        self.file.write_text(f"{after:g}\n", encoding="utf-8")
        return after

    def note_ready(self) -> None:
        """Notes a start that was quick enough. Raises OSError."""
        self.file.unlink(missing_ok=True)
