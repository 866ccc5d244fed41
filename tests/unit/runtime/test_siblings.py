"""Tasks that end with their block: whose error wins, who is cancelled, and no task is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from keelman.model.errors import Unavailable
from keelman.runtime.supervise import Siblings, guarded

Work = Coroutine[Any, Any, None]


async def fail() -> None:
    raise Unavailable("gone")


async def fail_at_the_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("while cleaning up")


async def wait_and_tell(ended: asyncio.Event) -> None:
    """Cleans up for a moment, in which it is not cancelled again."""
    try:
        await asyncio.Event().wait()
    finally:
        for _ in range(3):
            await asyncio.sleep(0)
        ended.set()


async def begun(work: Work) -> asyncio.Task[None]:
    """The task of a block, which has come to its first wait."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def waiting_block(*works: Work) -> None:
    """A block that runs until it is cancelled."""
    async with Siblings() as tasks:
        for work in works:
            tasks.start(work)
        await asyncio.Event().wait()


async def ending_block(*works: Work) -> None:
    """A block that ends once its tasks run."""
    async with Siblings() as tasks:
        for work in works:
            tasks.start(work)
        await asyncio.sleep(0)


async def failing_block(*works: Work) -> None:
    """A block that fails once its tasks run."""
    async with Siblings() as tasks:
        for work in works:
            tasks.start(work)
        await asyncio.sleep(0)
        raise Unavailable("the reason")


async def test_tasks_end_with_their_block() -> None:
    ended = asyncio.Event()
    async with Siblings() as tasks:
        task = tasks.start(wait_and_tell(ended), name="waiter")
        await asyncio.sleep(0)
        assert task.get_name() == "waiter"
    assert ended.is_set()


async def test_a_task_that_fails_ends_the_block_and_the_others() -> None:
    ended = asyncio.Event()
    with pytest.raises(Unavailable, match="gone"):
        await waiting_block(wait_and_tell(ended), fail(), fail_at_the_end())
    assert ended.is_set()


async def test_a_block_that_takes_no_notice_fails_all_the_same() -> None:
    async def block() -> None:
        async with Siblings() as tasks:
            tasks.start(fail())
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)

    with pytest.raises(Unavailable, match="gone"):
        await block()


@pytest.mark.parametrize("block", [ending_block, waiting_block])
async def test_a_task_that_fails_while_it_ends_is_heard(block: Callable[[Work], Work]) -> None:
    task = await begun(block(fail_at_the_end()))
    task.cancel()
    with pytest.raises(ValueError, match="while cleaning up"):
        await task


async def test_the_blocks_own_error_wins_over_what_its_tasks_say_when_cancelled() -> None:
    with pytest.raises(Unavailable, match="the reason"):
        await failing_block(fail_at_the_end())


async def test_who_cancels_the_block_sees_it_cancelled_once_its_tasks_have_ended() -> None:
    ended = asyncio.Event()
    task = await begun(waiting_block(wait_and_tell(ended)))
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert ended.is_set()


async def test_who_is_cancelled_while_its_tasks_clean_up_waits_no_longer_for_that() -> None:
    async def clean_up_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    for block in (waiting_block, ending_block):
        task = await begun(block(clean_up_for_ever()))
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.wait([task]), 60)
        assert task.cancelled(), block


async def test_nothing_is_started_while_the_group_ends() -> None:
    async def start_another(tasks: Siblings) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.start(fail())

    async def block(tasks: Siblings) -> None:
        async with tasks:
            tasks.start(start_another(tasks))
            await asyncio.sleep(0)

    tasks = Siblings()
    with pytest.raises(RuntimeError, match="ending"):
        await block(tasks)
    with pytest.raises(RuntimeError, match="ending"):
        tasks.start(fail())


async def cancelled_wait() -> None:
    """Waits for a future that a library cancels."""
    waited = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waited.cancel)
    await waited


async def test_a_cancellation_that_nobody_asked_for_is_an_error() -> None:
    async def block() -> None:
        async with Siblings() as tasks:
            tasks.start(cancelled_wait(), name="heartbeats")
            await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="heartbeats: an awaited task was cancelled"):
        await block()


async def test_who_is_told_to_end_is_cancelled() -> None:
    async with Siblings() as tasks:
        guard = tasks.start(guarded(asyncio.Event().wait()))
        await asyncio.sleep(0)
        guard.cancel()
        await asyncio.wait([guard])
        assert guard.cancelled()


@pytest.mark.parametrize(
    ("block", "work", "error"),
    [
        (ending_block, fail_at_the_end, ValueError),
        (waiting_block, fail, Unavailable),
        (failing_block, fail_at_the_end, Unavailable),
    ],
)
async def test_a_time_out_around_what_failed_is_a_time_out(
    block: Callable[[Work], Work], work: Callable[[], Work], error: type[Exception]
) -> None:
    async def around() -> None:
        async with asyncio.timeout(None) as limit:
            with pytest.raises(error):
                await block(work())
            limit.reschedule(asyncio.get_running_loop().time())  # not before, however long that took
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await around()
