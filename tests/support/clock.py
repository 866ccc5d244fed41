"""The wall clock of some processes, set by a library that they load before all others. Compiled here."""

from __future__ import annotations

import atexit
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
COMPILE_SECONDS = 60


def may_set() -> bool:
    """Whether there is a compiler."""
    return shutil.which("cc") is not None


@cache
def _library() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="wall-clock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / "clock.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, timeout=COMPILE_SECONDS)
    return library


class Clock:
    """The wall clock of all processes that have `env`, and of their descendants: this machine's, until it is set."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(struct.pack("=q", 0))

    @property
    def env(self) -> dict[str, str]:
        """The environment variables for the processes."""
        return {"LD_PRELOAD": str(_library()), "WALL_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Sets it this far ahead of this machine's clock, or behind."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", seconds))
