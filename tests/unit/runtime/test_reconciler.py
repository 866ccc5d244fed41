"""Reconcilers: one activation at a time, woken once for many wakes, continuing after errors."""

from __future__ import annotations

import asyncio

from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings
from support.eventually import eventually


class Work:
    """Counts activations; each waits for the gate and may fail."""

    def __init__(self) -> None:
        self.begun = self.ended = self.running = self.most_running = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def __call__(self) -> None:
        self.begun += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.gate.wait()
            if self.error:
                raise self.error
        finally:
            self.running -= 1
        self.ended += 1


async def test_wakes_during_an_activation_ask_for_exactly_one_more() -> None:
    work = Work()
    work.gate.clear()
    reconciler = Reconciler("demo", work, every_seconds=3600)
    async with Siblings() as tasks:
        tasks.start(reconciler.run())
        await eventually(lambda: work.begun == 1)
        for _ in range(5):
            reconciler.wake()
        work.gate.set()
        await eventually(lambda: work.ended == 2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (work.begun, work.most_running) == (2, 1)


async def test_the_timer_wakes_too() -> None:
    work = Work()
    reconciler = Reconciler("demo", work, every_seconds=0.01)
    async with Siblings() as tasks:
        tasks.start(reconciler.run())
        await eventually(lambda: work.ended >= 3)


async def test_an_error_is_kept_and_tried_again() -> None:
    work = Work()
    reconciler = Reconciler("demo", work, every_seconds=3600, _backoff=Backoff(first=0.01))
    for error, text in ((Unavailable("nobody there"), "nobody there"), (ValueError("oops"), "ValueError('oops')")):
        work.error = error
        before = work.begun
        async with Siblings() as tasks:
            tasks.start(reconciler.run())
            await eventually(lambda seen=before: work.begun >= seen + 2)  # type: ignore[misc]
            assert reconciler.last_error == text
            work.error = None
            await eventually(lambda: reconciler.last_error == "" and work.ended > 0)


async def test_it_ends_though_what_it_calls_takes_the_cancellation_for_its_own() -> None:
    begun = asyncio.Event()

    async def deaf() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise Unavailable("nobody answers") from None

    task = asyncio.create_task(Reconciler("deaf", deaf, 60.0).run())
    await begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()
