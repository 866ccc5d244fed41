"""The wall clock of some processes, by libfaketime (Debian's package)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of all processes that have `env`; what measures spans of time is left alone."""

    file: Path

    @property
    def env(self) -> dict[str, str]:
        """For the processes, those below them too."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds: int) -> None:
        """Sets it that far ahead of this machine's, or behind."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self.file)
