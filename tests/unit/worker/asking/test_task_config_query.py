"""Connector classes are queried in threads: a slow class blocks no other, failures are retried, mirrors are polled."""

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, cast

import pytest

from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.model.errors import InvalidArgument
from keelman.runtime.supervise import Siblings
from keelman.worker.asking import connector_class
from keelman.worker.asking import task_config_query as query
from keelman.worker.asking.answer_freshness import due_at
from keelman.worker.asking.task_config_query import TaskConfigQuery
from keelman.worker.restart_policy import RestartPolicy
from keelman.worker.tasks.effective_config import without_limits
from keelman.worker.tasks.limits import limits_of
from support.eventually import eventually

LATE_SECONDS = 2.0  # long enough that a busy machine does not make a quick class look hung


class Asked(Connector):
    """A connector class with answers set by the test; it records every call."""

    names = ("acme.AskedConnector", "Asked")
    version = "1"
    direction = Direction.SOURCE
    runs_on = "anywhere"
    calls: ClassVar[list[str]] = []
    go = threading.Event()
    topics = 1
    broken = ""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        return True

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        return 0.05 if config["name"] == "mirror" else None

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        cls.calls.append(f"tend {config['name']}")
        if config["name"] == "slow":
            cls.go.wait(30)
        if cls.broken:
            raise ConnectError(cls.broken)

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        cls.calls.append(f"tasks {config['name']}")
        return [{"topics": str(cls.topics)}]


async def test_connectors_are_asked_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: Asked)
    turns = asyncio.Event()
    asking = TaskConfigQuery(lambda _: turns.set(), answer_seconds=LATE_SECONDS)

    def about(name: str) -> tuple[object, str] | None:
        answer = asking.about(name, {"name": name, "connector.class": "Asked"})
        return (answer.tasks, answer.trace.partition("Next automatic restart")[0]) if answer else None

    def tasks(topics: int) -> tuple[object, str]:
        return [{"task.class": "acme.AskedTask", "topics": str(topics)}], ""

    async with Siblings() as siblings:
        asking.begin(siblings)
        assert about("slow") is None
        assert about("quick") is None
        await eventually(lambda: about("quick") == tasks(1))
        assert turns.is_set()
        assert Asked.calls.index("tend quick") < Asked.calls.index("tasks quick")
        late = f"org.apache.kafka.connect.errors.ConnectException: Asked, tend: no answer in {LATE_SECONDS:g} s\n"
        await eventually(lambda: about("slow") == (None, late))
        asking.again("slow")
        about("slow")
        assert Asked.calls.count("tend slow") == 1, "not called again while its thread hangs"
        Asked.go.set()
        asking.again("slow")
        await eventually(lambda: about("slow") == tasks(1))

        await eventually(lambda: about("mirror") == tasks(1))
        Asked.topics = 2
        await eventually(lambda: about("mirror") == tasks(2), what="called again when it is due")
        assert about("quick") == tasks(1)
        Asked.broken = "no broker"
        await eventually(lambda: (about("mirror") or ("", ""))[1].endswith("ConnectException: no broker\n"))
        Asked.broken = ""
        asking.again("mirror")
        await eventually(lambda: about("mirror") == tasks(2))


async def test_a_connector_is_asked_again_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: Asked)
    monkeypatch.setattr(Asked, "broken", "no such table")
    monkeypatch.setattr(Asked, "calls", [])
    asking = TaskConfigQuery(lambda _: None)
    config = {"name": "once", "connector.class": "Asked"}
    error = "org.apache.kafka.connect.errors.ConnectException: no such table\n"

    def trace(policy: RestartPolicy, **more: int) -> str:
        answer = asking.about("once", config, policy, **more)
        return "" if answer is None else answer.trace

    async with Siblings() as siblings:
        asking.begin(siblings)
        never = RestartPolicy(attempts=0)
        await eventually(lambda: trace(never) == error)
        assert asking.due_seconds() == math.inf, "as in Connect: it stays failed"
        asking.forget()
        twice = RestartPolicy(attempts=2, first_seconds=0.01)
        last = f"{error}No more automatic restarts: 2 of 2 failed: TASK_FAILED\n"
        await eventually(lambda: trace(twice) == last, what="its budget is used up")
        assert Asked.calls.count("tend once") == 1 + 3
        asking.again("once")
        await eventually(lambda: trace(twice) == last and Asked.calls.count("tend once") == 4 + 3, what="a new budget")
        asking.forget()
        await eventually(lambda: trace(twice, attempts=1) == last and Asked.calls.count("tend once") == 7 + 2)


async def test_one_that_waits_for_values_is_not_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: Asked)
    asking = TaskConfigQuery(lambda _: None)
    config = {"name": "mirror", "connector.class": "Asked"}
    async with Siblings() as siblings:
        asking.begin(siblings)
        await eventually(lambda: asking.about("mirror", config))
        await eventually(lambda: asking.due_seconds() == 0.0)
        asking.hold("mirror")
        assert asking.due_seconds() == math.inf
        asking.about("mirror", config)
        await eventually(lambda: asking.due_seconds() < math.inf)
        asking.hold("nobody")


async def test_those_that_are_due_are_found_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: Asked)
    asking = TaskConfigQuery(lambda _: None)
    names = ("first", "second", "third")
    async with Siblings() as siblings:
        asking.begin(siblings)
        for name in names:
            asking.about(name, {"name": name, "connector.class": "Asked"})
        assert asking.first_answers_soon()
        await eventually(lambda: all(asking.about(n, {"name": n, "connector.class": "Asked"}) for n in names))
        assert not asking.first_answers_soon()
        assert (asking.due(), asking.due_seconds()) == ([], math.inf)
        for name in ("second", "first"):
            asking.again(name)
        assert asking.due() == asking.due() == ["first", "second"]
        asking.forget("first")
        asking.hold("second")
        assert (asking.due(), asking.due_seconds()) == ([], math.inf)
        asking.about("second", {"name": "second", "connector.class": "Asked"})
        await eventually(lambda: Asked.calls[-1] == "tasks second" and asking.due_seconds() == math.inf)


class Mirrors(Asked):
    """Connectors that are queried every 50 ms and report themselves as settled, except those in `unsettled`."""

    names = ("acme.MirrorsConnector", "Mirrors")
    tended: ClassVar[list[str]] = []
    looked: ClassVar[list[dict[str, list[dict[str, str]]]]] = []
    unsettled: ClassVar[set[str]] = set()
    how: ClassVar[Callable[[Sequence[bool]], Sequence[bool]]] = list

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        return 0.05

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        cls.tended.append(config["name"])

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        return [{"of": config["name"]}]

    @classmethod
    def settled(cls, requests: Sequence[tuple[Mapping[str, str], Sequence[Mapping[str, str]]]]) -> Sequence[bool]:
        cls.looked.append({config["name"]: list(tasks) for config, tasks in requests})
        return cls.how([config["name"] not in cls.unsettled for config, _ in requests])


def fresh_mirrors() -> type[Mirrors]:
    """Returns a fresh class per test, since a `settled` call of an earlier test may still be running."""
    return cast(type[Mirrors], type("Mirrors", (Mirrors,), {"tended": [], "looked": [], "unsettled": set()}))


async def test_only_those_that_are_not_settled_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mirrors = fresh_mirrors()
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: mirrors)
    names = ("a", "b", "c")
    new: list[str] = []
    asking = TaskConfigQuery(new.extend, answer_seconds=LATE_SECONDS)

    def turn() -> bool:
        """Does the leader's turn: queries the connectors that are due."""
        for name in asking.due():
            asking.about(name, {"name": name, "connector.class": "Mirrors"})
        return True

    def looked(times: int) -> bool:
        return turn() and len(mirrors.looked) >= times

    async with Siblings() as siblings:
        asking.begin(siblings)
        for name in names:
            asking.about(name, {"name": name, "connector.class": "Mirrors"})
        every = {name: [{"task.class": "acme.MirrorsTask", "of": name}] for name in names}
        await eventually(lambda: looked(3) and every in mirrors.looked, what="all are checked, also late ones")
        assert sorted(mirrors.tended) == sorted(new) == list(names), "called once; settled ever since"

        mirrors.unsettled = {"b"}
        await eventually(
            lambda: turn() and mirrors.tended[3:5] == ["b", "b"], what="one server is called, and no other"
        )
        mirrors.unsettled = set()
        asking.again("c")
        await eventually(lambda: turn() and "c" in mirrors.tended[3:], what="restarted: called though it is settled")

        def fails(_settled: Sequence[bool]) -> Sequence[bool]:
            raise ZeroDivisionError

        go = threading.Event()
        for how in (fails, lambda value: value[1:], lambda value: [go.wait(30)] * len(value)):
            before, mirrors.how = len(mirrors.tended), how  # type: ignore[assignment]
            await eventually(lambda: turn() and {*names} <= {*mirrors.tended[before:]}, what="all are called")  # noqa: B023
        hung = len(mirrors.looked)
        before = len(mirrors.tended)
        await eventually(lambda: turn() and {*names} <= {*mirrors.tended[before:]}, what="and each time")
        assert len(mirrors.looked) == hung, "one look hangs; no other is begun"
        go.set()


class Keeps(Asked):
    """A connector that is queried every 50 ms and keeps its present tasks."""

    names = ("acme.KeepsConnector", "Keeps")
    again: ClassVar[list[int]] = []

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        return 0.05

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        cls.again.append(len(tasks))
        cls.go.wait(60)
        if cls.broken:
            raise ConnectError(cls.broken)
        return True

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        return [{} for _ in range(cls.topics)]


async def test_one_that_keeps_its_tasks_plans_anew_when_it_begins_anew_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = {"again": [], "calls": [], "go": threading.Event(), "topics": 1}
    keeps = cast(type[Keeps], type("Keeps", (Keeps,), fresh))
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: keeps)
    policy = RestartPolicy(first_seconds=0.01)
    asking, config = TaskConfigQuery(lambda _: None), {"name": "k", "connector.class": "Keeps", "tasks.max": "9"}

    def tasks() -> int | None:
        answer = asking.about("k", config, policy)
        return None if answer is None or answer.tasks is None else len(answer.tasks)

    def refreshed(times: int) -> Callable[[], bool]:
        before = len(keeps.again)
        return lambda: tasks() is not None and len(keeps.again) >= before + times

    async with Siblings() as siblings:
        asking.begin(siblings)
        keeps.go.set()
        await eventually(lambda: tasks() == 1)
        keeps.topics = 2
        await eventually(refreshed(3))
        keeps.broken = "no broker"
        await eventually(lambda: tasks() is None, what="a refresh fails")
        keeps.broken = ""
        await eventually(lambda: tasks() == 1, what="its former answer is back")
        await eventually(refreshed(3))
        assert keeps.calls == ["tend k"], "as it began"

        asking.again("k")
        await eventually(lambda: tasks() == 2, what="restarted")
        keeps.topics, config = 3, {**config, "more": "x"}
        await eventually(lambda: tasks() == 3, what="reconfigured")
        assert keeps.calls == ["tend k"] * 3

        keeps.go.clear()
        await eventually(refreshed(1), what="a refresh has begun")
        keeps.topics = 4
        asking.again("k")
        keeps.go.set()
        await eventually(lambda: tasks() == 4, what="restarted in the middle of it")
        assert keeps.calls == ["tend k"] * 4


async def test_those_due_during_a_look_share_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    mirrors = fresh_mirrors()
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: mirrors)
    go = threading.Event()
    mirrors.how = lambda value: value if go.wait(30) else []
    asking = TaskConfigQuery(lambda _: None)

    def ask(*names: str) -> None:
        for name in names:
            asking.about(name, {"name": name, "connector.class": "Mirrors"})

    async with Siblings() as siblings:
        asking.begin(siblings)
        ask("a")
        await eventually(lambda: asking.due() == ["a"])
        ask("a")
        await eventually(lambda: len(mirrors.looked) == 1)
        for name in ("b", "c"):
            ask(name)
        await eventually(lambda: sorted(asking.due()) == ["b", "c"])
        ask("b")
        await asyncio.sleep(0)  # the queued query begins, and waits
        ask("c")
        go.set()
        await eventually(lambda: len(mirrors.looked) == 2)
    assert [sorted(look) for look in mirrors.looked] == [["a"], ["b", "c"]]
    assert sorted(mirrors.tended) == ["a", "b", "c"]


def test_limits_are_shared_by_the_tasks() -> None:
    config = {"name": "x", "keelman.limit.records.per.second": "10"}
    assert without_limits(config) == {"name": "x"}
    limits = limits_of(config, 4)
    assert (limits.records_per_second, limits.bytes_per_second) == (2.5, 0)
    assert limits_of({"keelman.limit.records.per.second": "0"}, 4).records_per_second == 0
    with pytest.raises(InvalidArgument, match=r"keelman\.limit\.bytes\.per\.second: Value must be at least 0"):
        limits_of({"keelman.limit.bytes.per.second": "-1"}, 1)


async def test_a_class_that_hangs_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_class, "find_connector", lambda *_: Asked)
    monkeypatch.setattr(query, "AT_A_TIME", 1)
    monkeypatch.setattr(Asked, "go", threading.Event())
    asking = TaskConfigQuery(lambda _: None)
    async with Siblings() as siblings:
        asking.begin(siblings)
        for name, kind in (("slow", "Slow"), ("behind", "Slow"), ("quick", "Quick")):
            asking.about(name, {"name": name, "connector.class": kind})
        await eventually(lambda: asking.about("quick", {"name": "quick", "connector.class": "Quick"}))
        assert asking.about("behind", {"name": "behind", "connector.class": "Slow"}) is None
        Asked.go.set()
        await eventually(lambda: asking.about("behind", {"name": "behind", "connector.class": "Slow"}))


def test_those_due_in_the_same_sixtieth_are_asked_together_and_never_early() -> None:
    dues = {due_at(6_000.0 + n / 10, 600.0) for n in range(1, 100)}
    assert dues == {6_610.0}
    assert due_at(6_000.0, 600.0) == 6_600.0
    assert due_at(5.0, math.inf) == math.inf
    assert due_at(5.0, 0.0) == 5.0
