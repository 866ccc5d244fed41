"""Transactions of the database, on SQLite."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
from pathlib import Path

from keelman.state.database.database import open_database


async def test_a_writer_that_is_canceled_keeps_nobody_waiting(tmp_path: Path) -> None:
    chance = random.Random(7)
    async with open_database(str(tmp_path / "state.db")) as database:

        async def written() -> None:
            async with database.write() as turn:
                turn.revision += 1

        gc.disable()  # which would end a forgotten transaction at some time
        try:
            for _ in range(150):
                canceled = asyncio.ensure_future(written())
                await asyncio.sleep(chance.random() * 0.012)
                canceled.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await canceled
                await written()  # within SQLite's 10 s
        finally:
            gc.enable()
