"""The worker checks only changed connectors, and all of them from time to time."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from keelman.model.errors import Unavailable
from keelman.model.work import Work
from keelman.worker.asking.task_config_query import ConnectorAnswer
from keelman.worker.storage import config_records as records
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_records import connector_of
from keelman.worker.storage.status_state import FAILED, Status, key_of
from support.eventually import eventually
from unit.worker.group.test_leader import SOURCE, leading


def test_all_are_looked_at_first_then_those_that_were_told_then_all_again() -> None:
    everyone = {"a", "b", "c"}
    news = ChangeSet(lambda: everyone)
    news.add(["a"])
    assert [news.more, news.take(), news.more, news.take()] == [True, everyone, False, set()]
    news.add(["a", "z"])
    assert [news.more, news.take(), news.more, news.take()] == [True, {"a", "z"}, False, set()]
    news.add_all()
    assert [news.more, news.take(), news.more] == [True, everyone, False]
    often = ChangeSet(lambda: everyone, all_seconds=0.0)
    assert [often.take(), often.take(), often.more] == [everyone, everyone, False]


def test_many_are_looked_at_in_pieces_what_was_told_first() -> None:
    everyone = [str(number) for number in range(10)]
    news = ChangeSet(lambda: everyone, most=4)
    assert news.take() == {"0", "1", "2", "3"}
    news.add(["9", "x", "y"])
    assert news.take() == {"9", "x", "y", "4"}
    news.add_all()  # in the middle of a round, which continues to its end before another
    assert [news.take(), news.take(), news.more] == [{"5", "6", "7", "8"}, {"9"}, True]
    assert [len(news.take()) for _ in range(3)] == [4, 4, 2]
    assert not news.more


def test_the_next_round_is_spread_over_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("keelman.worker.storage.change_set.time.monotonic", lambda: now)
    everyone = [str(number) for number in range(60)]
    news = ChangeSet(lambda: everyone, all_seconds=60.0)
    assert len(news.take()) == 60
    seen: list[int] = []
    for _ in range(24):
        now += 5.0
        seen.append(len(news.take()))
        assert not news.more
    assert sum(seen) in (55, 60)
    assert max(seen) <= 6, "no more than its share at a time"


def test_whoever_begins_anew_keeps_no_names_of_what_is_gone() -> None:
    everyone = ["a", "b"]
    news = ChangeSet(lambda: everyone, most=1)
    news.take()
    news.add(["gone"])
    news.begin_anew()
    assert [news.take(), news.take()] == [{"a"}, {"b"}]
    assert not news.more


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *((f"{kind}-my-source", "my-source") for kind in ("connector", "target-state", "commit", "tasks-fencing")),
        ("restart-connector-my-source", "my-source"),
        ("task-my-source-12", "my-source"),
        ("session-key", None),
        ("logger-cluster-x", None),
    ],
)
def test_a_record_is_about_a_connector(key: str, name: str | None) -> None:
    assert connector_of(key) == name


async def test_the_leader_asks_and_writes_for_those_alone_that_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with leading(tmp_path) as (store, leader):
        await store.config_topic.write([records.connector_record("d", {**SOURCE, "name": "d"})])

        async def all_have_tasks() -> bool:
            await leader.reconfigure()
            return set(store.config.tasks) == {"c", "d"}

        await eventually(all_have_tasks)
        await leader.reconfigure()
        looked: list[str] = []
        ask = leader._answer

        def noted(name: str, properties: Mapping[str, str]) -> ConnectorAnswer | None:
            looked.append(name)
            return ask(name, properties)

        monkeypatch.setattr(leader, "_answer", noted)
        await leader.reconfigure()
        assert looked == []
        await store.config_topic.write([records.connector_record("d", {**SOURCE, "name": "d", "topic": "other"})])

        async def has_new_task() -> bool:
            await leader.reconfigure()
            return store.config.tasks["d"][0]["topic"] == "other"

        await eventually(has_new_task)
        assert set(looked) == {"d"}
        store.status_topic.table.append((key_of(Work("c")), Status(FAILED, "w:1", 1, "worse").value()))  # type: ignore[attr-defined]
        await leader.reconfigure()
        assert "c" in looked, "its status has what the record does not have"


async def test_statuses_of_what_is_no_more_are_cleared_as_they_come(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):

        async def has_tasks() -> bool:
            await leader.reconfigure()
            leader.clear_statuses()
            return "c" in store.config.tasks and not leader.busy

        await eventually(has_tasks)
        status = Status("RUNNING", "w:1", 1).value()
        for work in (Work("c"), Work("c", 0), Work("c", 7), Work("gone")):
            store.status_topic.table.append((key_of(work), status))  # type: ignore[attr-defined]
        assert leader.busy
        leader.clear_statuses()
        await eventually(lambda: store.statuses.statuses.keys() == {Work("c"), Work("c", 0)})
        await store.config_topic.write(records.deletion_records("c", 1))
        leader.clear_statuses()
        await eventually(lambda: not store.statuses.statuses)


async def test_who_was_lost_and_is_back_at_the_same_address_has_the_last_word(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):
        work, before, now = Work("c"), Status("RUNNING", "x:1", 4), Status("RUNNING", "x:1", 6)
        await store.config_topic.write([records.connector_record("c", {**SOURCE, "name": "c"})])
        store.status_topic.table.append((key_of(work), before.value()))  # type: ignore[attr-defined]
        await eventually(lambda: work in store.statuses.statuses)
        leader._lost = {work: "http://x:1/"}
        leader.clear_statuses()
        pending = store.status_topic.writer._pending[work]
        assert pending is not None
        assert (pending.state, pending.worker_id == "x:1") == ("UNASSIGNED", False)
        assert store.statuses.allows(work, pending)
        store.statuses.apply(key_of(work).decode(), now.value())
        assert not store.statuses.allows(work, pending), "it was written late"


async def test_what_could_not_be_written_is_looked_at_again(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):

        async def has_tasks() -> bool:
            await leader.reconfigure()
            return "c" in store.config.tasks

        await eventually(has_tasks)
        await store.config_topic.write([records.connector_record("c", {**SOURCE, "topic": "other"})])
        store.has_place = False
        failures = 0

        async def refused() -> bool:
            nonlocal failures
            try:
                await leader.reconfigure()
            except Unavailable:
                failures += 1
            return failures >= 2

        await eventually(refused)
        store.has_place = True
        await leader.reconfigure()
        assert store.config.tasks["c"][0]["topic"] == "other"


async def test_the_config_topic_is_read_once_for_requests_that_wait_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with leading(tmp_path) as (store, _):
        reads, read = 0, store.config_topic.table.read_to_end

        async def counted(*, seconds: float = 30.0) -> None:
            nonlocal reads
            reads += 1
            await read(seconds=seconds)

        monkeypatch.setattr(store.config_topic.table, "read_to_end", counted)
        request = time.monotonic()
        await store.config_topic.read(since=request)
        await store.config_topic.read(since=request)
        assert reads == 1
        await store.config_topic.read(since=time.monotonic())
        await store.config_topic.read()
        assert reads == 3, "what may have been written since was not read"
