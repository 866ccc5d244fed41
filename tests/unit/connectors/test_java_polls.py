"""Which polls of a Java source task are joined: small ones, unless each may end a transaction."""

import threading
from collections import deque
from typing import Any

import pytest

from keelman.connectors.java.source import poll_thread
from keelman.connectors.java.source.poll_thread import Poll, PollThread


@pytest.fixture(autouse=True)
def _without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls are joined as lists."""

    def together(polls: Any) -> Poll:
        return (
            polls[0]
            if len(polls) == 1
            else Poll([n for poll in polls for n in poll.records], sum(poll.count for poll in polls))
        )

    monkeypatch.setattr(poll_thread, "_together", together)


def thread_with(polls: list[Poll], transactions: Any) -> PollThread:
    """A thread that has polled these, and polls no more."""
    thread: Any = PollThread.__new__(PollThread)
    thread._changed, thread._error, thread._wanted = threading.Condition(), None, False
    thread._polls, thread._queued, thread._transactions = deque(polls), sum(poll.count for poll in polls), transactions
    return thread


def test_polls_that_wait_are_taken_as_one() -> None:
    thread = thread_with([Poll([1], 1), Poll([2, 3], 2)], None)
    assert thread.poll(0) == Poll([1, 2, 3], 3)
    assert thread.poll(0) is None


def test_where_the_task_ends_transactions_each_poll_is_taken_by_itself_with_its_end() -> None:
    polls = [Poll([1], 1, "", "c"), Poll([2, 3], 2, "", "a"), Poll(None, 0, "", "c")]
    thread = thread_with(polls, object())
    assert [thread.poll(0) for _ in range(4)] == [*polls, None]
