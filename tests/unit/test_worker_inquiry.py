"""Connectors are asked in threads: a slow one holds up nobody, a failing one is asked again, a mirror now and then."""

import asyncio
import math
import threading
from collections.abc import Mapping
from typing import ClassVar

import pytest

from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.model.errors import InvalidArgument
from keelman.runtime.supervise import Siblings
from keelman.testing.eventually import eventually
from keelman.worker.tasks import inquiry
from keelman.worker.tasks.effective_config import without_limits
from keelman.worker.tasks.inquiry import Inquiry, due_at
from keelman.worker.tasks.limits import limits_of
from keelman.worker.tasks.restart_policy import RestartPolicy


class Asked(Connector):
    """Says what the test wants; every call is noted."""

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
    monkeypatch.setattr(inquiry, "load_connector", lambda *_: Asked)
    turns = asyncio.Event()
    asking = Inquiry(lambda _: turns.set(), answer_seconds=0.3)

    def about(name: str) -> tuple[object, str] | None:
        answer = asking.about(name, {"name": name, "connector.class": "Asked"})
        return (answer.tasks, answer.trace.partition("Restart: ")[0]) if answer else None

    def tasks(topics: int) -> tuple[object, str]:
        return [{"task.class": "acme.AskedTask", "topics": str(topics)}], ""

    async with Siblings() as siblings:
        asking.begin(siblings)
        assert about("slow") is None
        assert about("quick") is None
        await eventually(lambda: about("quick") == tasks(1))
        assert turns.is_set()
        assert Asked.calls.index("tend quick") < Asked.calls.index("tasks quick")
        late = "org.apache.kafka.connect.errors.ConnectException: Asked, tend: no answer in 0.3 s\n"
        await eventually(lambda: about("slow") == (None, late))
        asking.again("slow")
        about("slow")
        assert Asked.calls.count("tend slow") == 1, "not asked again while its thread hangs"
        Asked.go.set()
        asking.again("slow")
        await eventually(lambda: about("slow") == tasks(1))

        await eventually(lambda: about("mirror") == tasks(1))
        Asked.topics = 2
        await eventually(lambda: about("mirror") == tasks(2), what="asked again when that is due")
        assert about("quick") == tasks(1)
        Asked.broken = "no broker"
        await eventually(lambda: (about("mirror") or ("", ""))[1].endswith("ConnectException: no broker\n"))
        Asked.broken = ""
        asking.again("mirror")
        await eventually(lambda: about("mirror") == tasks(2))


async def test_a_connector_is_asked_again_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inquiry, "load_connector", lambda *_: Asked)
    monkeypatch.setattr(Asked, "broken", "no such table")
    monkeypatch.setattr(Asked, "calls", [])
    asking = Inquiry(lambda _: None)
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
        last = f"{error}Restart: TASK_FAILED, no more: 2 of 2 attempts failed\n"
        await eventually(lambda: trace(twice) == last, what="its budget is used up")
        assert Asked.calls.count("tend once") == 1 + 3
        asking.again("once")
        await eventually(lambda: trace(twice) == last and Asked.calls.count("tend once") == 4 + 3, what="a new budget")
        asking.forget()
        await eventually(lambda: trace(twice, attempts=1) == last and Asked.calls.count("tend once") == 7 + 2)


async def test_one_that_waits_for_values_is_not_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inquiry, "load_connector", lambda *_: Asked)
    asking = Inquiry(lambda _: None)
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
    monkeypatch.setattr(inquiry, "load_connector", lambda *_: Asked)
    asking = Inquiry(lambda _: None)
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


def test_limits_are_shared_by_the_tasks() -> None:
    config = {"name": "x", "keelman.limit.records.per.second": "10"}
    assert without_limits(config) == {"name": "x"}
    limits = limits_of(config, 4)
    assert (limits.records_per_second, limits.bytes_per_second) == (2.5, 0)
    assert limits_of({"keelman.limit.records.per.second": "0"}, 4).records_per_second == 0
    with pytest.raises(InvalidArgument, match=r"keelman\.limit\.bytes\.per\.second: Value must be at least 0"):
        limits_of({"keelman.limit.bytes.per.second": "-1"}, 1)


async def test_a_class_that_hangs_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inquiry, "load_connector", lambda *_: Asked)
    monkeypatch.setattr(inquiry, "AT_A_TIME", 1)
    monkeypatch.setattr(Asked, "go", threading.Event())
    asking = Inquiry(lambda _: None)
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
