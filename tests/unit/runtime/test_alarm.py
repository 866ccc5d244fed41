"""Work that takes too long is noticed, with one timer for many deadlines."""

from __future__ import annotations

import asyncio

from keelman.runtime.alarm import Alarm
from support.eventually import eventually


async def rings(seconds: float) -> None:
    """Returns when an alarm for so many seconds rings."""
    rung = asyncio.Event()
    Alarm(rung.set).set(seconds)
    await rung.wait()


async def test_it_rings_once_when_the_time_is_over() -> None:
    rung: list[float] = []
    clock = asyncio.get_running_loop().time
    alarm, begun = Alarm(lambda: rung.append(clock())), clock()
    alarm.set(0.02)
    await eventually(lambda: bool(rung))
    assert rung[0] - begun >= 0.02
    await rings(0.05)
    assert len(rung) == 1


async def test_it_does_not_ring_once_it_is_off_or_put_off() -> None:
    rung: list[str] = []
    off, later, closed = (Alarm(lambda name=name: rung.append(name)) for name in ("off", "later", "closed"))
    for alarm in (off, later, closed):
        alarm.set(0.02)
    off.off()
    closed.close()
    later.set(60)
    await rings(0.05)
    assert rung == []
    later.set(0.001)
    await eventually(lambda: rung == ["later"])


async def test_many_times_take_one_timer() -> None:
    loop = asyncio.get_running_loop()
    alarm = Alarm(lambda: None)
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    for _ in range(100):
        alarm.set(30)
        alarm.off()
    assert len(loop._scheduled) <= before + 1  # type: ignore[attr-defined]
    alarm.close()
