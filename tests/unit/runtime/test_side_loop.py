"""The event loop for plain threads: the shared loop beside them, and the loop that a thread drives itself."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from keelman.engine.control import Control, CutShort
from keelman.runtime.side_loop import LONG_SECONDS, SideLoop

LOOP = SideLoop("test")


@pytest.fixture(params=["beside", "driven"], autouse=True)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs each test on both kinds of loop."""
    with LOOP.driven_here() if request.param == "driven" else nullcontext():
        yield request.param


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


def test_a_signal_ends_the_wait_for_it() -> None:
    signal = LOOP.signal()
    assert not signal.wait(0.01)

    async def sets() -> None:
        asyncio.get_running_loop().call_later(0.01, signal.set)

    LOOP.call(sets())
    assert signal.wait(60)
    assert signal.wait(60), "it stays set"
    signal.clear()
    assert not signal.wait(0.01)


def test_what_is_posted_goes_out_at_once() -> None:
    ours, theirs = socket.socketpair()

    async def connected() -> asyncio.StreamWriter:
        return (await asyncio.open_connection(sock=ours))[1]

    writer = LOOP.call(connected())
    LOOP.post(writer.write, b"now")
    theirs.settimeout(60)
    assert theirs.recv(3) == b"now"
    theirs.close()

    async def closed() -> None:
        writer.close()
        await writer.wait_closed()

    LOOP.call(closed())


def test_an_answer_that_came_while_the_thread_was_busy_is_in_time() -> None:
    ours, theirs = socket.socketpair()

    async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(sock=ours)

    reader, writer = LOOP.call(connected())

    async def asked() -> bytes:
        async with asyncio.timeout(0.2):
            return await reader.readexactly(6)

    async def begins() -> "asyncio.Task[bytes]":
        return asyncio.create_task(asked())

    task = LOOP.call(begins())
    theirs.send(b"answer")
    busy_until = time.monotonic() + 0.4
    while time.monotonic() < busy_until:
        pass

    async def finished() -> bytes:
        return await task

    assert LOOP.call(finished()) == b"answer"
    theirs.close()

    async def closed() -> None:
        writer.close()

    LOOP.call(closed())


def test_what_is_posted_after_the_loop_has_stood_is_done_at_the_present_time() -> None:
    times: list[tuple[float, float]] = []

    def note() -> None:
        times.append((asyncio.get_running_loop().time(), time.monotonic()))

    LOOP.call(answer())
    begun = time.monotonic()
    while time.monotonic() - begun < 3 * LONG_SECONDS:  # as a thread that waits for anything else
        pass
    LOOP.post(note)
    LOOP.call(answer())
    ((of_loop, now),) = times
    assert now - of_loop < LONG_SECONDS, "a call that is due by the loop's clock would be late at once"


def test_what_is_left_in_a_driven_loop_is_cancelled_at_its_end() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.set()

    left: list[asyncio.Task[None]] = []

    async def begins() -> None:
        left.append(asyncio.create_task(long()))
        await asyncio.sleep(0)

    with LOOP.driven_here():
        LOOP.call(begins())
    assert ended.is_set()


def test_a_driven_loop_resolves_names() -> None:
    async def resolved() -> object:
        return await asyncio.get_running_loop().getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)

    assert LOOP.call(resolved())
