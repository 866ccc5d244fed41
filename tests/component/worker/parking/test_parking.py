"""Parked tasks: the reasons to park and to resume them, and other changes to them meanwhile."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic

from keelman.api.copy.v1 import watch_pb2 as wire
from keelman.kafka.clients import admin_client
from keelman.worker.tasks.start_queue import MOST
from support.eventually import eventually
from support.worker.processes import ENDED, FENCED, LinkSide, Run, WorkerProcess, workers

pytestmark = pytest.mark.component


def file_watch(path: Path) -> wire.Watch:
    stat = path.stat()
    return wire.Watch(file=wire.FileWatch(path=str(path), size=stat.st_size, inode=stat.st_ino))


async def only(side: LinkSide, name: str, task: int = 0) -> Run:
    """The task's run, once it exists."""
    (run,) = await eventually(lambda: side.of(name, task), what=f"{name}-{task} runs")
    return run


async def parked(side: LinkSide, run: Run, watch: wire.Watch) -> None:
    side.idle(run, watch)
    await eventually(lambda: run.state == ENDED, what="the idle run is drained")
    assert run.cut == ""


async def test_a_parked_source_comes_back_and_obeys(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    source = tmp_path / "in"
    source.write_text("one\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "parking", address)
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "src", "config": config})
        run = await only(side, "src")
        await parked(side, run, file_watch(source))
        await worker.reaches("src", "RUNNING", "RUNNING")
        assert side.of("src") == []
        with source.open("a") as more:
            more.write("two\n")
        run = await only(side, "src")

        await parked(side, run, file_watch(source))
        assert (await worker.ask("PUT", "/connectors/src/pause")).status_code == 202
        await worker.reaches("src", "PAUSED", "PAUSED")
        await worker.ask("PUT", "/connectors/src/resume")
        run = await only(side, "src")

        await parked(side, run, file_watch(source))
        assert (await worker.ask("POST", "/connectors/src/tasks/0/restart")).status_code == 204
        run = await only(side, "src")

        await parked(side, run, file_watch(source))
        await worker.ask("PUT", "/connectors/src/config", {**config, "batch.size": "7"})
        run = await only(side, "src")
        assert run.ticket.task_config["batch.size"] == "7"
        assert not run.ticket.HasField("parked"), "a source has offsets of its own"

        await parked(side, run, file_watch(source))
        assert (await worker.ask("PUT", "/connectors/src/stop")).status_code == 204
        await worker.reaches("src", "STOPPED")
        await worker.ask("PUT", "/connectors/src/resume")
        await parked(side, await only(side, "src"), file_watch(source))
        source.unlink()
        run = await only(side, "src")
        await parked(side, run, wire.Watch(file=wire.FileWatch(path=str(source))))
        source.write_text("another file\n")
        await only(side, "src")
        assert worker.output.count("copy_run_failed") == 0
        assert await worker.end() == 0


async def test_a_sink_parks_as_a_whole(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        await admin.create_topics([NewTopic("lot-lines", 2, 1)])
    config = {"connector.class": "FileStreamSink", "topics": "lot-lines", "tasks.max": "2"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "lot", address)

    def watch(partition: int, offset: int) -> wire.Watch:
        position = wire.TopicPosition(topic="lot-lines", partition=partition, offset=offset)
        properties = {"bootstrap.servers": bootstrap, "client.id": f"sink-{partition}"}
        ids = {"lot-lines": f"{partition}", "of both": "1"}
        return wire.Watch(topics=wire.TopicWatch(client_properties=properties, positions=[position], topic_ids=ids))

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        async with workers(worker):
            await worker.ask("POST", "/connectors", {"name": "snk", "config": config})
            single_only, two = await only(side, "snk", 0), await only(side, "snk", 1)
            assert not single_only.ticket.HasField("parked")
            side.idle(single_only, watch(0, 0))
            side.idle(two, watch(1, 0))
            await eventually(lambda: single_only.state == two.state == ENDED, what="both are drained")
            await worker.reaches("snk", *["RUNNING"] * 3)
            await producer.send_and_wait("lot-lines", b"record", partition=1)
            single_only, two = await only(side, "snk", 0), await only(side, "snk", 1)
            for run in (single_only, two):  # either may get the other's tasks
                assert {(p.partition, p.offset) for p in run.ticket.parked.positions} == {(0, 0), (1, 0)}
                assert dict(run.ticket.parked.topic_ids) == {"of both": "1"}, "that of its topic is in doubt"
                assert not run.ticket.parked.client_properties

            # A task that copies keeps the others in their slots; an idle report is void once the task reports work
            # again.
            side.idle(single_only, watch(0, 0))
            side.copies(single_only)
            side.idle(two, watch(1, 1))
            side.idle(single_only, watch(0, 0))
            await eventually(lambda: single_only.state == two.state == ENDED, what="both are drained again")
            async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
                await admin.delete_topics(["lot-lines"])
            await only(side, "snk", 0)
            await only(side, "snk", 1)
            assert await worker.end() == 0
    finally:
        await producer.stop()


async def test_of_many_tasks_that_begin_together_those_without_news_rest(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    """A task that would wait behind a hundred others has no copy run until there is more, and then comes first."""
    side, address = link
    count = MOST + 2
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        await admin.create_topics([NewTopic("rested", count, 1)])
    config = {
        "connector.class": "MirrorSource",
        "tasks.max": str(count),
        "topics": "rested",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "replication.factor": "1",
        "emit.offset-syncs.enabled": "false",
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "rested", address)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks=1, enable_idempotence=False)
    await producer.start()
    try:
        async with workers(worker):
            await worker.ask("POST", "/connectors", {"name": "m", "config": config})
            await worker.reaches("m", *["RUNNING"] * (count + 1), seconds=300)
            assert await worker.end() == 0
        for number in range(count):
            await producer.send_and_wait("rested", b"copied", partition=number)
            key = b'["m",{"cluster":"a","partition":%d,"topic":"rested"}]' % number
            await producer.send_and_wait("rested-offsets", b'{"offset":0}', key=key)
        side.runs.clear()
        side.slow = True
        async with workers(worker):
            begun = await eventually(lambda: len(side.runs) == MOST and list(side.runs.values()))
            (first, other) = sorted(set(range(count)) - {run.ticket.task for run in begun})
            states = ["RUNNING" if task in (first, other) else "UNASSIGNED" for task in range(count)]
            await worker.reaches("m", "RUNNING", *states, seconds=300)
            await producer.send_and_wait("rested", b"more", partition=other)
            side.fence(begun[0])
            await eventually(lambda: side.of("m", other, FENCED), what="it has its turn")
            assert side.of("m", first, FENCED) == []
            assert await worker.end() == 0
    finally:
        await producer.stop()
