"""What the leader writes, and when, checked with a standalone worker's store, which applies its records at once."""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keelman.kafka.groups.connect_protocol import Metadata
from keelman.kafka.writer import Ends, Record
from keelman.model.errors import Exhausted
from keelman.model.work import Work
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.group.leader import GroupLeader
from keelman.worker.group.placement import CONNECTOR_KEY
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.status_state import FAILED, RUNNING, UNASSIGNED, Status
from keelman.workers.properties.typed import WorkerProperties
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
SOURCE = {"name": "c", "connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
URL = "http://w:1/"


class Led(StandaloneStore):
    """A store that counts the records it puts."""

    told = 0
    has_place = True

    def __init__(self, properties: WorkerProperties) -> None:
        super().__init__(properties, worker_id="w:1", callbacks=store_callbacks(may_write=lambda: self.has_place))

        self._put = self.status_topic.writer.put
        self.status_topic.writer.put = self.count_put

    def count_put(self, work: Work, status: Status | None) -> None:
        self.told += 1
        self._put(work, status)


@asynccontextmanager
async def leading(folder: Path, **more: str) -> AsyncIterator[tuple[Led, GroupLeader]]:
    """The leader of one worker that has connector c, which was begun; the worker writes statuses soon."""
    properties = checked({**alone(folder / "offsets"), **PROVIDER}, standalone=True)
    store = Led(properties)
    leader = GroupLeader(store, url=URL, delay_ms=0, wake=lambda: None)
    async with Siblings() as siblings:
        siblings.start(store.run())
        leader.begin(siblings)
        await store.config_topic.write([records.connector_record("c", {**SOURCE, **more})])
        await leader.share("w", {"w": Metadata(URL, 0)})
        yield store, leader


async def test_a_trace_with_a_secret_is_written_once(tmp_path: Path) -> None:
    secret = "tell-nobody-of-this"
    REDACTOR.add({secret: "[hidden]"})
    async with leading(tmp_path, **{"tasks.max": secret}) as (store, leader):
        store.status_topic.writer.put(Work("c"), Status(RUNNING, "w:1", 1))

        async def written() -> bool:
            await leader.reconfigure()
            now = store.statuses.statuses.get(Work("c"))
            return now is not None and now.state == FAILED

        await eventually(written)
        trace = store.statuses.statuses[Work("c")].trace or ""
        assert "[hidden]" in trace, trace
        assert secret not in trace
        before = store.told
        for _ in range(3):
            await leader.reconfigure()
        assert store.told == before


async def test_a_task_that_is_too_large_for_the_topic_fails_its_connector_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with leading(tmp_path, file="/" + "x" * 2000) as (store, leader):
        write = store.config_topic.write

        async def write_config(written: Sequence[Record]) -> None:
            if any(len(value or b"") > 2000 for _, value in written):
                refused.append(len(written))
                store.changed_about("c")  # as a reader of the accepted records would
                raise Exhausted("larger than 2000")
            await write(written)

        refused: list[int] = []

        monkeypatch.setattr(store.config_topic, "write", write_config)
        await write([records.connector_record("d", {**SOURCE, "name": "d"})])
        for name in "cd":
            store.status_topic.writer.put(Work(name), Status(RUNNING, "w:1", 1))
        await leader.share("w", {"w": Metadata(URL, 0)})

        async def judged() -> bool:
            await leader.reconfigure()
            now = store.statuses.statuses.get(Work("c"))
            return "d" in store.config.tasks and now is not None and now.state == FAILED

        await eventually(judged)
        assert "larger than 2000" in (store.statuses.statuses[Work("c")].trace or "")
        assert "c" not in store.config.tasks
        await store.status_topic.writer.flush(seconds=60)
        before, tries = store.told, len(refused)
        for _ in range(3):
            await leader.reconfigure()
        assert store.told == before, "it is reported once"
        assert len(refused) == tries, "nor is it tried again at once"
        assert store.statuses.statuses[Work("d")].state == RUNNING


async def test_tasks_are_put_into_force_once_all_are_in_the_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without transactions, where brokers refuse one record and accept those after it."""
    async with leading(tmp_path) as (store, _):
        write, before = store.config_topic._writer.write, [{"n": "0"}, {"n": "1"}]

        async def refusing(topic: str, written: Sequence[Record]) -> Ends:
            taken = [record for record in written if len(record[1] or b"") < 2000]
            ends = await write(topic, taken)
            if len(taken) < len(written):
                raise Exhausted("larger than 2000")
            return ends

        monkeypatch.setattr(store.config_topic._writer, "write", refusing)
        await store.config_topic.write([*records.task_records("c", before), records.commit_record("c", 2)])
        assert store.config.tasks["c"] == tuple(before)
        after = [{"n": "2"}, {"n": "x" * 2000}]
        with pytest.raises(Exhausted):
            await store.config_topic.write([*records.task_records("c", after), records.commit_record("c", 2)])
        assert store.config.tasks["c"] == tuple(before), "no half of one and half of the other"


async def test_why_nobody_may_have_it_is_written_once(tmp_path: Path) -> None:
    REDACTOR.add({"far-away-zone": "[hidden]"})
    async with leading(tmp_path, **{CONNECTOR_KEY: "zone=far-away-zone"}) as (store, leader):
        leader.report_unplaced(1)
        await eventually(lambda: Work("c") in store.statuses.statuses)
        now = store.statuses.statuses[Work("c")]
        assert now.state == UNASSIGNED
        assert "zone=[hidden]" in (now.trace or "")
        leader.report_unplaced(1)
        assert store.told == 1


async def test_one_that_runs_without_its_tasks_is_given_them_again(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):

        async def has_a_task() -> bool:
            await leader.reconfigure()
            return len(store.config.tasks.get("c", ())) == 1

        await eventually(has_a_task)
        await store.config_topic.write([records.commit_record("c", 0)])  # a stop that was interrupted
        await eventually(has_a_task, seconds=20)


async def test_one_whose_values_are_missing_is_not_overdue(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):

        async def answered() -> bool:
            await leader.reconfigure()
            return len(store.config.tasks.get("c", ())) == 1

        await eventually(answered)
        leader.ask_again([records.RestartRequest("c", False, False)])
        assert leader.again_seconds() == 0.0
        await store.config_topic.write([records.connector_record("c", {**SOURCE, "file": "${file:/nowhere:name}"})])
        await leader.reconfigure()  # while the secret value is read
        assert leader.again_seconds() == math.inf

        async def failed() -> bool:
            await leader.reconfigure()
            return store.told > 0

        store.status_topic.writer.put(Work("c"), Status(RUNNING, "w:1", 1))
        await eventually(lambda: Work("c") in store.statuses.statuses)
        store.told = 0
        await eventually(failed)
        assert leader.again_seconds() == math.inf


async def until_it_has_its_task(store: Led, leader: GroupLeader) -> None:
    """Runs the leader until the connector's task is in force, also for new readers of the topic."""

    async def has_it() -> bool:
        await leader.reconfigure()
        return len(store.config.tasks.get("c", ())) == 1 and not store.config.lapsing

    await eventually(has_it)


def written(store: Led, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """Returns the list to which the leader's records are appended from now on."""
    actual_records: list[Record] = []
    write = store.config_topic.write

    async def noting(records_: Sequence[Record]) -> None:
        actual_records.extend(records_)
        await write(records_)

    monkeypatch.setattr(store.config_topic, "write", noting)
    return actual_records


async def test_tasks_are_put_into_force_behind_each_record_of_their_connector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a reader of the compacted topic would not see these tasks."""
    async with leading(tmp_path) as (store, leader):
        await until_it_has_its_task(store, leader)
        tasks, same = store.config.tasks["c"], records.connector_record("c", store.config.connectors["c"])
        await store.config_topic.write([same])
        assert store.config.lapsing == {"c"}
        await until_it_has_its_task(store, leader)
        assert store.config.tasks["c"] == tasks

        await store.config_topic.write([records.target_record("c", records.PAUSED)])
        await store.config_topic.write([records.connector_record("c", {**SOURCE, "file": "/elsewhere"})])
        await leader.reconfigure()
        assert not store.config.lapsing, "it is not called while it is paused: they are unchanged"
        assert store.config.tasks["c"] == tasks
        more = written(store, monkeypatch)
        for _ in range(3):
            await leader.reconfigure()
        assert more == []


async def test_whoever_joins_is_told_of_tasks_that_nobody_says_how_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with leading(tmp_path) as (store, leader):
        await until_it_has_its_task(store, leader)
        tasks = store.config.tasks["c"]
        await store.config_topic.write([records.connector_record("c", {**SOURCE, "connector.class": "nobody.has.It"})])
        more = written(store, monkeypatch)

        async def refused() -> bool:
            await leader.reconfigure()
            return bool(leader.again_seconds()) and store.statuses.statuses[Work("c")].state == FAILED

        store.status_topic.writer.put(Work("c"), Status(RUNNING, "w:1", 1))
        await eventually(refused)
        await leader.share("w", {"w": Metadata(URL, 0)})
        await leader.reconfigure()
        assert more == [], "they continue unchanged"
        await leader.share("w", {"w": Metadata(URL, 0), "v": Metadata("http://v:1/", 0)})
        await leader.reconfigure()
        assert [key for key, _ in more] == [b"task-c-0", b"commit-c"]
        assert store.config.tasks["c"] == tasks


async def test_what_somebody_overwrites_is_put_back(tmp_path: Path) -> None:
    async with leading(tmp_path) as (store, leader):
        await until_it_has_its_task(store, leader)
        before = dict(store.config.connectors["c"])
        await store.config_topic._writer.write(
            store.config_topic.name,
            [(b"connector-c", b"nope"), (b"task-c-0", b"[]"), (b"connector-d", b"{}")],
        )
        assert store.config.spoilt == {"connector-c"}
        await until_it_has_its_task(store, leader)
        assert (store.config.connectors, store.config.spoilt) == ({"c": before}, set())
