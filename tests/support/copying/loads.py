"""A load for connectors that read files: numbered lines, so that a lost or doubled one shows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from keelman.runtime.supervise import Siblings

EVERY_SECONDS = 0.2
STEPS = [f"step{number}" for number in range(6)]
COSTLY = {
    "transforms": ",".join(STEPS),
    **{f"transforms.{step}.type": "org.apache.kafka.connect.transforms.InsertHeader" for step in STEPS},
    **{f"transforms.{step}.header": step for step in STEPS},
    **{f"transforms.{step}.value.literal": "x" for step in STEPS},
}
"""Transformations, so that copying is work."""


class Numbers:
    """A file that grows by so many numbered lines each EVERY_SECONDS while it is loaded."""

    def __init__(self, path: Path, batch: int) -> None:
        self.path, self.batch, self.count = path, batch, 0
        path.touch()

    @contextlib.asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Grows it until the end of the block."""
        async with Siblings() as tasks:
            tasks.start(self._grow())
            yield

    async def _grow(self) -> None:
        while True:
            with self.path.open("a") as file:
                file.writelines(f"{number}\n" for number in range(self.count, self.count + self.batch))
            self.count += self.batch
            await asyncio.sleep(EVERY_SECONDS)
