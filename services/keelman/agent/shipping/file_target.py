"""Delivers a stream to a file below the agent's log root, with compressed parts like any workload's log.

The file's length is kept with the position that it has been written up to: bytes after it were written by an agent that
was killed before it could keep them, and are cut off and written again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Batch, Source
from keelman.agent.shipping.target import finished
from keelman.runtime.logs.parts import Keeping, Log

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class FileTarget:
    """`keeping`: how much of the file is kept."""

    file: Path
    keeping: Keeping
    most_bytes: int = 1 << 20

    def is_due(self, waiting: int, seconds: float) -> bool:
        """Returns True as soon as anything waits."""
        return waiting > 0

    @contextlib.asynccontextmanager
    async def opened(self, source: Source) -> AsyncIterator[LogFileWriter]:
        """Opens the file, which it makes. Raises OSError."""
        self.file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(self.file, FLAGS, 0o644)
        try:
            yield LogFileWriter(descriptor, self)
        finally:
            os.close(descriptor)


class LogFileWriter:
    """Appends to the file."""

    def __init__(self, descriptor: int, target: FileTarget) -> None:
        self._descriptor = descriptor
        self._target = target

    async def resume(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Cuts off the bytes after the kept length. A file that was emptied, or is another one, is continued at its
        end."""
        status = os.fstat(self._descriptor)
        if status.st_ino == progress.target and status.st_size > progress.length:
            os.ftruncate(self._descriptor, progress.length)
        return replace(progress, length=os.fstat(self._descriptor).st_size, target=status.st_ino)

    async def write(self, batch: Batch, progress: DeliveryProgress) -> DeliveryProgress:
        """Appends the lines, synced. Raises OSError, for example for a full disk."""
        text = b"".join(line + b"\n" for line in batch.lines)
        await finished(asyncio.to_thread(self._append, text))
        return replace(progress, position=batch.end, mine=batch.mine, length=progress.length + len(text))

    def _append(self, text: bytes) -> None:
        # Before the write: the cut must not take in lines that the next agent has to cut off after a kill.
        Log(self._target.file).keep(self._target.keeping, written=False)
        left = memoryview(text)
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fdatasync(self._descriptor)
