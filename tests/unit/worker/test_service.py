"""A worker that is told to stop: at once while it only waits for others, in good order once it works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from keelman.runtime.http.server import serve_http
from keelman.runtime.settings import load
from keelman.runtime.supervise import Siblings
from keelman.worker import service
from keelman.worker.rest.answers import write_answer
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
        assert running.done() is not works, "a working worker is not cut short"
        leave.set()
        async with asyncio.timeout(20):
            await running
    assert ends == (["left"] if works else ["cancelled"])


async def test_what_takes_too_long_is_answered_as_by_connect() -> None:
    begun = asyncio.Event()

    async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await write_answer(hangs, scope, receive, send)

    async with httpx.AsyncClient(trust_env=False, timeout=60) as client, Siblings() as siblings:
        async with serve_http(app, host="127.0.0.1", port=0, label="test", grace_seconds=0.1) as port:
            request = siblings.start(client.get(f"http://127.0.0.1:{port}/"))
            async with asyncio.timeout(60):
                await begun.wait()
        answer = await request
    assert (answer.status_code, answer.json()) == (500, {"error_code": 500, "message": "Worker is shutting down"})
