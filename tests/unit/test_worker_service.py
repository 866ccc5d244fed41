"""A worker that is told to stop: at once while it only waits for others, in good order once it works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keelman.runtime.settings import load
from keelman.runtime.supervise import Siblings
from keelman.worker import service
from keelman.worker.settings import Settings


@pytest.mark.parametrize("works", [False, True])
async def test_who_waits_for_others_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, works: bool
) -> None:
    settings = load(Settings, "worker", flags={"home": str(tmp_path)}).settings
    stop, leave, ends = asyncio.Event(), asyncio.Event(), []

    async def work(_: Settings, __: asyncio.Event, begun: asyncio.Event) -> None:
        if works:
            begun.set()
        try:
            await leave.wait()
            ends.append("left")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    monkeypatch.setattr(service, "_work", work)
    async with Siblings() as siblings:
        running = siblings.start(service.run(settings, stop))
        await asyncio.sleep(0)
        stop.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert running.done() is not works, "one that works is not cut short"
        leave.set()
        async with asyncio.timeout(20):
            await running
    assert ends == (["left"] if works else ["cancelled"])
