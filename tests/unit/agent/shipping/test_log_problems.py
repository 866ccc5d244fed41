"""A failed delivery is reported once it lasts, with one text for a while, and no longer once it is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.agent.shipping import delivery as module
from keelman.agent.shipping.delivery import Delivery
from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Batch, Source, Stream
from keelman.model.errors import Unavailable
from support.eventually import eventually


class Target:
    """A target that is away while it has a problem."""

    most_bytes = 1 << 20

    def __init__(self, problem: str) -> None:
        self.problem, self.tries, self.lines = problem, 0, list[bytes]()

    def is_due(self, waiting: int, seconds: float) -> bool:
        return waiting > 0

    @contextlib.asynccontextmanager
    async def opened(self, source: Source) -> AsyncIterator[Target]:
        yield self

    async def resume(self, progress: DeliveryProgress) -> DeliveryProgress:
        return progress

    async def write(self, batch: Batch, progress: DeliveryProgress) -> DeliveryProgress:
        self.tries += 1
        if self.problem:
            raise Unavailable(f"{self.problem}, answer {self.tries}")
        self.lines += batch.lines
        return DeliveryProgress(batch.end, progress.inode, id=progress.id)


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Delivery, Target, list[str]]]:
    monkeypatch.setattr(module, "SHOWN_SECONDS", 0.3)
    monkeypatch.setattr(module, "MAX_BACKOFF_SECONDS", 0.1)
    (tmp_path / "log").write_bytes(b"one\n")
    target, messages = Target("it is away"), list[str]()
    stream = Stream("demo-0", "worker/demo/0", tmp_path / "log", "0" * 17)

    def note() -> None:
        messages.append("" if delivery.shown is None else delivery.shown.message)

    delivery = Delivery(stream, "s3", tmp_path / "kept.json", lambda keep: target, note)
    task = asyncio.ensure_future(delivery.run())
    yield delivery, target, messages
    task.cancel()
    await asyncio.wait([task])


async def test_a_lasting_problem_is_told_once_and_its_end(running: tuple[Delivery, Target, list[str]]) -> None:
    delivery, target, messages = running
    await eventually(lambda: target.tries >= 2)
    assert not messages, "it may be over in a moment"
    await eventually(lambda: messages)
    tries = target.tries
    await eventually(lambda: target.tries >= tries + 3)
    assert len(messages) == 1, "not each answer anew"
    assert messages[0].startswith("it is away, answer ")
    assert delivery.shown is not None
    assert (delivery.shown.stream, delivery.shown.target) == ("demo-0", "s3")
    since = delivery.shown.since.ToDatetime()
    target.problem = ""
    await eventually(lambda: len(messages) == 2)
    assert (messages[1], delivery.shown) == ("", None)
    assert len(target.lines) == 1
    assert since.year > 2000


async def test_a_text_that_becomes_another_is_told_in_time(
    running: tuple[Delivery, Target, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, target, messages = running
    await eventually(lambda: messages)
    monkeypatch.setattr(module, "RETOLD_SECONDS", 0.1)
    target.problem = "it is full"
    await eventually(lambda: any(text.startswith("it is full") for text in messages))
