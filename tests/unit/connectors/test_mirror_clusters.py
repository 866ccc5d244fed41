"""Clients that mirrors share: one request for many callers, no older answers, closed when no mirror uses them."""

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaError, KafkaException

from keelman.connectors.mirror.clusters import Clusters, GatheredQuestion, SharedQuestion

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Asked:
    """Counts its answers; each waits until the test releases it, and fails when the test tells it to."""

    def __init__(self) -> None:
        self.times, self.fails = 0, False
        self.go = threading.Semaphore(0)
        self.question = SharedQuestion(self.ask)
        self.question._asking = self  # type: ignore[assignment]
        self.lock = threading.Lock()
        self.waiting = 0

    def ask(self, _seconds: float) -> int:
        self.times += 1
        assert self.go.acquire(timeout=30)
        if self.fails:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return self.times

    def acquire(self, *, timeout: float) -> bool:
        self.waiting += 1
        return self.lock.acquire(timeout=timeout)

    def release(self) -> None:
        self.lock.release()

    def call(self, seconds: float = 30.0) -> int:
        return self.question.answer(seconds)


def test_those_who_wait_share_the_next_answer_and_nobody_gets_one_from_before() -> None:
    request = Asked()
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(request.call)
        until(lambda: request.times == 1)
        others = [pool.submit(request.call) for _ in range(8)]
        until(lambda: request.waiting == 9)
        request.go.release(2)
        assert first.result() == 1
        assert {other.result() for other in others} == {2}, "called after the first request was sent"
        request.go.release()
        assert pool.submit(request.call).result() == 3


def test_a_question_that_fails_fails_all_who_wait_and_the_next_asks_anew() -> None:
    request = Asked()
    request.fails = True
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(request.call)
        until(lambda: request.times == 1)
        others = [pool.submit(request.call) for _ in range(3)]
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            request.call(0.01)
        until(lambda: request.waiting == 5)
        request.go.release()
        for other in (first, *others):
            with pytest.raises(KafkaException, match="_TRANSPORT"):
                other.result()
    assert request.times == 1
    request.fails = False
    request.go.release()
    assert request.call() == 2


def test_the_same_settings_have_the_same_client_and_the_longest_unused_goes() -> None:
    clusters = Clusters(most=2)
    cluster = clusters.at(NOWHERE)
    assert clusters.at(dict(reversed(NOWHERE.items()))) is cluster
    clusters.at({**NOWHERE, "client.id": "b"})
    assert clusters.at(NOWHERE) is cluster
    clusters.at({**NOWHERE, "client.id": "c"})
    assert len(clusters) == 2
    assert clusters.at(NOWHERE) is cluster
    clusters.at({**NOWHERE, "client.id": "d"})
    clusters.at({**NOWHERE, "client.id": "e"})
    assert clusters.at(NOWHERE) is not cluster
    mine = {**NOWHERE, "error_cb": print}
    assert clusters.at(mine) is not clusters.at(mine)
    assert len(clusters) == 2


def test_a_client_that_nobody_uses_is_closed() -> None:
    clusters = Clusters(unused_seconds=0.2)
    client = weakref.ref(clusters.at(NOWHERE))
    until(lambda: len(clusters) == 0)
    gc.collect()
    assert client() is None


def test_a_child_has_no_clients_of_its_parent() -> None:
    clusters = Clusters()
    clusters.at(NOWHERE)
    with clusters._lock:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            clusters.forked()
            os._exit(len(clusters) + clusters._lock.locked())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(clusters) == 1


def test_names_of_all_who_wait_are_asked_for_at_once_and_each_gets_its_own() -> None:
    requests: list[list[str]] = []
    begun, go = threading.Event(), threading.Event()

    def ask(names: Sequence[str], _seconds: float) -> dict[str, str]:
        requests.append(list(names))
        begun.set()
        assert go.wait(30)
        return {name: f"of {name}" for name in names if name != "gone"}

    question = GatheredQuestion(ask)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(question.answer, ["a"], 30.0)
        assert begun.wait(30)
        others = [pool.submit(question.answer, names, 30.0) for names in (["b"], ["c", "b"], ["d"])]
        until(lambda: question._names == {"b", "c", "d"})
        go.set()
        assert first.result()["a"] == "of a"
        assert [other.result()[name] for other, name in zip(others, "bcd", strict=True)] == ["of b", "of c", "of d"]
    assert requests[:2] == [["a"], ["b", "c", "d"]]
    question._names.clear()
    assert question.answer(["a"], 30.0)["a"] == "of a"
    assert requests[-1] == ["a"], "never an answer of before"


def test_topics_are_chosen_once_while_there_are_no_other_ones() -> None:
    cluster, times = Clusters().at(NOWHERE), 0

    def choose() -> list[str]:
        nonlocal times
        times += 1
        return ["t"]

    counts = {"t": 1}
    assert cluster.chosen(counts, "x", choose) == cluster.chosen(counts, "x", choose) == ["t"]
    assert times == 1
    cluster.chosen(counts, "y", choose)
    cluster.chosen({"t": 1}, "x", choose)
    assert times == 3
