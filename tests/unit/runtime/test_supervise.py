"""The life of tasks and processes: whose error wins, who is cancelled, which exit code."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.supervise import deadline, first_of, guarded, supervise, wait_or_stop


async def test_the_first_error_cancels_the_rest_and_keeps_its_cause() -> None:
    cancelled = asyncio.Event()

    async def fail() -> None:
        try:
            raise OSError("the root")
        except OSError as error:
            raise Unavailable("no") from error

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(Unavailable) as caught:
        await supervise(wait, fail)
    assert cancelled.is_set()
    assert isinstance(caught.value.__cause__, OSError)


async def test_supervise_ends_when_all_have_ended() -> None:
    done: list[int] = []

    async def work() -> None:
        done.append(1)

    await supervise(work, work)
    await supervise()
    assert done == [1, 1]


async def test_first_of_cancels_the_others_and_raises_the_winners_error() -> None:
    never, lost = asyncio.Event(), asyncio.Event()

    async def loser() -> None:
        try:
            await never.wait()
        finally:
            lost.set()

    async def winner() -> None:
        await asyncio.sleep(0)
        raise Unavailable("won")

    with pytest.raises(Unavailable, match="won"):
        await first_of(loser(), winner())
    assert lost.is_set()


async def test_wait_or_stop() -> None:
    stop = asyncio.Event()
    assert not await wait_or_stop(stop, 0.001)
    stop.set()
    assert await wait_or_stop(stop, 3600)


async def test_a_deadline_speaks_only_for_itself() -> None:
    with pytest.raises(DeadlineExceeded, match="too slow"):
        async with deadline(0.001, DeadlineExceeded("too slow")):
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="of the socket"):
        async with deadline(3600, DeadlineExceeded("too slow")):
            raise TimeoutError("of the socket")


async def cancelled_wait() -> None:
    """Waits for a future that a library cancels."""
    waited = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waited.cancel)
    await waited


async def test_a_cancellation_that_nobody_asked_for_is_an_error_and_does_not_spread() -> None:
    with pytest.raises(RuntimeError):
        await supervise(asyncio.Event().wait, cancelled_wait)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError):
        await first_of(asyncio.Event().wait(), cancelled_wait())
    with pytest.raises(RuntimeError):
        await guarded(cancelled_wait())


async def test_a_time_out_around_what_failed_is_a_time_out() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise Unavailable("no")

    async def block() -> None:
        async with asyncio.timeout(0.01):
            with pytest.raises(Unavailable):
                await supervise(fail, fail)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await block()


PROGRAM = """
import asyncio, sys
from keelman.model.errors import Unavailable
from keelman.runtime.logs.logging import configure
from keelman.runtime.supervise import run_process

async def obeys(stop):
    print("up", flush=True)
    await stop.wait()

async def lingers(stop):
    print("up", flush=True)
    await asyncio.Event().wait()

async def fails(stop):
    raise Unavailable("demo.port: 80 is taken")

async def strays(stop):
    waited = asyncio.get_running_loop().create_future()
    waited.cancel()
    await waited

configure("demo", json=True)
sys.exit(run_process("keelman demo", globals()[sys.argv[1]], grace_seconds=float(sys.argv[2])))
"""


def started(body: str, grace: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, body, str(grace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if body not in ("fails", "strays"):
        assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize(
    ("body", "grace", "signals", "code"),
    [
        ("obeys", 60, (signal.SIGTERM,), 0),
        ("obeys", 60, (signal.SIGINT,), 0),
        ("lingers", 0.01, (signal.SIGTERM,), 3),
    ],
)
def test_a_signal_ends_a_process(body: str, grace: float, signals: tuple[int, ...], code: int) -> None:
    process = started(body, grace)
    for number in signals:
        process.send_signal(number)
    assert process.wait(60) == code
    process.communicate()


def test_a_second_signal_cuts() -> None:
    process = started("lingers", 3600)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    assert '"event": "stopping"' in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 3
    process.communicate()


def test_an_error_of_ours_is_one_line() -> None:
    process = started("fails", 1)
    _, problem = process.communicate(timeout=60)
    assert process.returncode == 1
    assert problem == "keelman demo: demo.port: 80 is taken\n"


def test_an_end_that_nobody_asked_for_is_a_crash() -> None:
    process = started("strays", 1)
    _, problem = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "nobody cancelled the waiter" in problem
