"""The tasks that a worker runs, and the reports of their copy runs while the configuration changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import watch_pb2 as watches
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.model.work import Work
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.tasks.owned_work import OwnedWork
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "t", "tasks.max": "1"}
WATCH = watches.Watch(file=watches.FileWatch(path="/nowhere/in", size=0, inode=1))


class Link:
    """A worker's link and its place in its group, without events; records the orders that are sent."""

    healthy, generation, closed = True, 1, ""

    def __init__(self) -> None:
        self.sent: list[RunOrder] = []

    def send(self, order: RunOrder) -> None:
        self.sent.append(order)


def owned_work(store: StandaloneStore, link: Link, used: list[str]) -> OwnedWork:
    """The worker's work; `used` gets the topics that its copy runs use."""

    def on_topics(work: Work, update: RunUpdate) -> None:
        used.extend(update.topics)

    me = cast("Any", link)
    return OwnedWork(store, me, me, on_topics=on_topics, worker_cluster="w", worker="w:1")


async def test_a_task_may_have_nothing_to_copy_when_its_connector_was_deleted_a_moment_ago(tmp_path: Path) -> None:
    store, link = (
        StandaloneStore(
            checked(alone(tmp_path / "offsets"), standalone=True), worker_id="w:1", callbacks=store_callbacks()
        ),
        Link(),
    )
    owned = owned_work(store, link, [])
    written = [*records.task_records("c", [SOURCE]), records.commit_record("c", 1)]
    await store.config_topic.write([records.connector_record("c", SOURCE), *written])
    async with Siblings() as siblings:
        owned.tasks.begin(siblings)
        await owned.take([Work("c", 0)], [])
        owned.follow()
        await eventually(lambda: link.sent)
        await store.config_topic.write(records.deletion_records("c", 1))
        owned.tasks.update(RunUpdate(run_uid=link.sent[0].run_uid, state=copy.COPY_RUN_STATE_RUNNING, watch=WATCH))
        await eventually(lambda: owned.tasks.tasks[Work("c", 0)].watch is not None, what="the update was followed")
        owned.follow()
        await eventually(lambda: len(link.sent) > 1, what="it is ordered to drain")
        assert link.sent[1].WhichOneof("order") == "drain", link.sent[1]
        owned.tasks.update(RunUpdate(run_uid=link.sent[0].run_uid, state=copy.COPY_RUN_STATE_ENDED))


async def test_a_former_copy_run_uses_no_topic_for_a_connector_that_is_made_again(tmp_path: Path) -> None:
    """A copy run drains for a while after its connector was deleted, and reports its progress until then."""
    store, link = (
        StandaloneStore(
            checked(alone(tmp_path / "offsets"), standalone=True), worker_id="w:1", callbacks=store_callbacks()
        ),
        Link(),
    )
    used: list[str] = []
    owned = owned_work(store, link, used)
    results = [
        records.connector_record("c", SOURCE),
        *records.task_records("c", [SOURCE]),
        records.commit_record("c", 1),
    ]
    await store.config_topic.write(results)
    async with Siblings() as siblings:
        owned.tasks.begin(siblings)
        await owned.take([Work("c", 0)], [])
        owned.follow()
        await eventually(lambda: link.sent)
        uid = link.sent[0].run_uid
        owned.tasks.update(RunUpdate(run_uid=uid, state=copy.COPY_RUN_STATE_RUNNING, topics=["before"]))
        await store.config_topic.write(records.deletion_records("c", 1))
        await store.config_topic.write(results)
        owned.tasks.update(RunUpdate(run_uid=uid, state=copy.COPY_RUN_STATE_RUNNING, topics=["after"]))
        assert used == ["before"]
        owned.tasks.update(RunUpdate(run_uid=uid, state=copy.COPY_RUN_STATE_ENDED))
        await owned.take([], [Work("c", 0)])
