"""The event loop beside the task loops."""

import asyncio
import threading
import time

import pytest

from keelman.engine.control import Control, CutShort
from keelman.runtime.side_loop import SideLoop

LOOP = SideLoop("test")


async def answer() -> int:
    await asyncio.sleep(0)
    return 7


def test_a_result_and_an_error_come_back() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert LOOP.call(answer()) == 7
    with pytest.raises(ValueError, match="no"):
        LOOP.call(fails())


def test_a_time_out_of_the_work_is_its_own() -> None:
    async def late() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        LOOP.call(late())


def test_a_cut_ends_the_work_before_it_is_heard() -> None:
    control, ended = Control(), threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    threading.Timer(0.1, control.cut, ["TEST"]).start()
    with pytest.raises(CutShort):
        LOOP.call(long(), control.beat)
    assert ended.is_set()


def test_nothing_is_begun_for_one_who_is_cut_already() -> None:
    control = Control()
    control.cut("TEST")
    with pytest.raises(CutShort):
        LOOP.call(answer(), control.beat)


def test_each_call_is_a_sign_of_life() -> None:
    control = Control()
    control._last_beat = time.monotonic() - 100
    LOOP.call(answer(), control.beat)
    assert control.silent_seconds() < 50


def test_what_is_posted_is_done_in_order() -> None:
    done: list[int] = []
    for number in range(100):
        LOOP.post(done.append, number)
    assert LOOP.call(answer()) == 7
    assert done == list(range(100))
