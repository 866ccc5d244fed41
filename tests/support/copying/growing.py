"""A file that grows as a copy of it follows: any fault meanwhile happens in the middle of copying."""

from __future__ import annotations

from pathlib import Path

from support.cli.system import numbered
from support.eventually import eventually

STEP = 250
LEAD = 4 * STEP  # INPUT is never further ahead of OUTPUT than this, so every fault falls into the middle of copying


class Growing:
    """INPUT, which grows as OUTPUT follows."""

    def __init__(self, file: Path, output: Path) -> None:
        self.file, self.output = file, output
        self.written = 0
        self._copied_bytes = self._copied_lines = 0
        file.touch()

    def copied(self) -> int:
        """Lines in OUTPUT; reads only new ones. A cut (of an uncommitted tail) starts over."""
        if not self.output.exists():
            return 0
        if self.output.stat().st_size < self._copied_bytes:
            self._copied_bytes = self._copied_lines = 0
        with self.output.open("rb") as stream:
            stream.seek(self._copied_bytes)
            fresh = stream.read()
        self._copied_bytes += len(fresh)
        self._copied_lines += fresh.count(b"\n")
        return self._copied_lines

    async def grow(self, until: int) -> None:
        """Appends step by step, each as soon as OUTPUT has come near."""
        while self.written < until:
            with self.file.open("ab") as stream:
                stream.write(numbered(self.written, STEP))
            self.written += STEP
            if self.written - self.copied() > LEAD:
                await eventually(lambda: self.written - self.copied() <= LEAD, every=0.01, what="OUTPUT follows INPUT")
