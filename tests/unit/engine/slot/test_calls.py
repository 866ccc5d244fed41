"""The connector methods that a slot reports as running."""

import threading
from collections.abc import Callable

import pytest

from keelman.connect import contract
from keelman.engine.slot.ending import calls_under_way


class Slow:
    """Methods that block until the test releases them."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()

    def read(self) -> None:
        self.begun.release()
        assert self.go_on.wait(30)


class Slower(Slow):
    """A method of another connector."""


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([], ""),
        ([Slow], "Slow.read"),
        ([Slow, Slow], "Slow.read"),
        ([Slow, Slower], "Slow.read, Slower.read"),
    ],
)
def test_all_methods_that_are_under_way_are_told_once(calls: list[Callable[[], Slow]], message: str) -> None:
    connectors = [make() for make in calls]
    threads = [threading.Thread(target=contract.READ.of, args=(connector.read,)) for connector in connectors]
    try:
        for thread, connector in zip(threads, connectors, strict=True):
            thread.start()
            assert connector.begun.acquire(timeout=30)
        assert sorted(calls_under_way().split(", ")) == sorted(message.split(", "))
    finally:
        for thread, connector in zip(threads, connectors, strict=True):
            connector.go_on.set()
            thread.join()
    assert calls_under_way() == ""


def test_a_thread_of_a_connectors_own_is_told_and_not_who_waits_for_it() -> None:
    results: list[str] = []

    def read() -> None:
        contract.note_background("com.acme.SeaTask.poll")
        results.append(calls_under_way())
        contract.note_background("")
        results.append(calls_under_way())

    contract.READ.of(read)
    assert results == ["com.acme.SeaTask.poll", "read"]
