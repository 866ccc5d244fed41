"""The worker's messages to its Spark side: limits that change while it copies, and orders that a link may lose."""

import base64
import hashlib
import hmac
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic
from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.kafka.clients import admin_client
from keelman.kafka.tables.reading import Row, read_topic
from keelman.model.work import Work
from keelman.worker.rest.forwarding import signatures
from support.eventually import eventually
from support.worker.processes import ENDED, RUNNING, LinkSide, WorkerProcess, survivors, workers

pytestmark = pytest.mark.component
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
SINK = {"connector.class": "FileStreamSink", "topics": "lines", "tasks.max": "2"}
COUNTING = {"connector.class": "VerifiableSource", "topic": "numbers", "throughput": "1", "tasks.max": "2"}
RECORDS, BYTES = "keelman.limit.records.per.second", "keelman.limit.bytes.per.second"


def signed(key: str, body: bytes) -> dict[str, str]:
    """The headers of a request of a Connect worker with this session key."""
    signature = hmac.new(base64.b64decode(key), body, hashlib.sha256).digest()
    return {signatures.AUTHORIZATION: base64.b64encode(signature).decode(), signatures.ALGORITHM: "HmacSHA256"}


async def write(bootstrap: str, topic: str, rows: dict[bytes, bytes]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        for key, value in rows.items():
            await producer.send_and_wait(topic, value, key=key)
    finally:
        await producer.stop()


async def test_limits_and_lost_orders(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    bounds = {"keelman.cpus": "1.5", "keelman.memory.bytes": "536870912"}
    worker = WorkerProcess(tmp_path, bootstrap, "links", address, bounds)
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "snk", "config": {**SINK, RECORDS: "1000"}})
        await worker.reaches("snk", "RUNNING", "RUNNING", "RUNNING")
        told = side.greetings[worker.id].bounds
        assert (told.cpus, told.memory_bytes) == (1.5, 536870912)
        assert side.log_levels.get(worker.id, {}) == {}
        assert (await worker.ask("PUT", "/admin/loggers/acme", {"level": "debug"})).status_code == 200
        await eventually(lambda: side.log_levels[worker.id] == {"acme": "DEBUG"}, what="the level reaches the worker")
        first, second = side.of("snk", 0)[0], side.of("snk", 1)[0]
        assert first.ticket.limits == tickets.Limits(records_per_second=500)
        await worker.ask("PUT", "/connectors/snk/config", {**SINK, BYTES: "3e6"})
        await eventually(lambda: first.limits and second.limits, what="both tasks are reported")
        assert first.limits == second.limits == [tickets.Limits(bytes_per_second=1.5e6)]
        assert (first.state, second.state) == (RUNNING, RUNNING), "and continue"

        for key, value, problem in (
            (RECORDS, "-1", "Invalid value -1.0 for configuration {}: Value must be at least 0"),
            (BYTES, "fast", "Invalid value fast for configuration {}: Not a number of type DOUBLE"),
            ("keelman.park.after.ms", "-2", "Invalid value -2 for configuration {}: Value must be at least -1"),
        ):
            refused = await worker.ask("PUT", "/connectors/snk/config", {**SINK, key: value})
            assert (refused.status_code, problem.format(key) in refused.json()["message"]) == (400, True)

        # A change of limits takes effect as any other change, and restarts and fences no task.
        async def stored() -> list[Row]:
            return list(await read_topic({"bootstrap.servers": bootstrap}, "links-configs", client_id="t", seconds=300))

        await worker.ask("POST", "/connectors", {"name": "src", "config": COUNTING})
        await worker.reaches("src", "RUNNING", "RUNNING", "RUNNING")
        await worker.ask("PUT", "/connectors/src/config", {**COUNTING, RECORDS: "10"})
        sources = [*side.of("src", 0), *side.of("src", 1)]
        await eventually(lambda: all(run.limits for run in sources), what="both are reported")
        work = frozenset({Work("snk"), Work("snk", 0), Work("snk", 1), Work("src"), Work("src", 0), Work("src", 1)})

        async def whole() -> bool:
            return survivors(await stored()).work() == work

        await eventually(whole, what="the tasks outlive the topic's compaction")
        assert survivors(await stored()).fencing == {"src": 2}
        assert "src" not in survivors(await stored()).unfenced
        assert [*side.of("src", 0), *side.of("src", 1)] == sources, "and copy on"
        assert "former_tasks_fenced" not in worker.output
        rows = await stored()
        assert len({r.value for r in rows if r.key == b"task-snk-0"}) == 1, "their content is the same"
        assert not any(RECORDS.encode() in (r.value or b"") for r in rows if r.key.startswith(b"task-"))

        side.deaf = True
        await worker.ask("PUT", "/connectors/snk/pause")
        await eventually(lambda: side.heard_nothing >= 2, what="orders are lost")
        stranger = side.stranger(worker.id, first)
        side.deaf = False
        side.break_link(worker.id)
        await eventually(lambda: first.state == second.state == ENDED, what="they are sent again")
        assert (first.cut, second.cut) == ("", "")
        await eventually(lambda: stranger.cut, what="a run without an owner is cut")
        await worker.reaches("snk", "PAUSED", "PAUSED", "PAUSED")
        assert await worker.end() == 0


async def test_own_offset_topics_and_signed_fences(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    old, new, other = b'["own",{"filename":"/a"}]', b'["own",{"filename":"/b"}]', b'["x",{"filename":"/a"}]'
    worker = WorkerProcess(tmp_path, bootstrap, "own", address)
    async with workers(worker):
        await write(bootstrap, "own-offsets", {old: b'{"position":1}', new: b'{"position":2}'})
        async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
            await admin.create_topics([NewTopic("mine", 2, 1)])
        await write(bootstrap, "mine", {new: b'{"position":5}', other: b'{"position":9}'})
        config = {**SOURCE, "offsets.storage.topic": "mine"}
        await worker.ask("POST", "/connectors", {"name": "own", "config": config})
        await worker.reaches("own", "RUNNING", "RUNNING")
        (run,) = side.of("own")
        assert (run.ticket.offset_topic, run.ticket.worker_offset_topic) == ("mine", "own-offsets")
        assert sorted(run.confirmed or []) == [(old, b'{"position":1}'), (new, b'{"position":5}')]
        shown = (await worker.ask("GET", "/connectors/own/offsets")).json()["offsets"]
        assert sorted(row["offset"]["position"] for row in shown) == [1, 5]

        # A transaction that a lost slot left open is aborted without a new ticket: the task is paused meanwhile.
        lost = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=run.ticket.transactional_id)
        await lost.start()
        try:
            await lost.begin_transaction()
            await lost.send_and_wait("mine", b"open", key=b"k")
            side.deaf = True
            await worker.ask("PUT", "/connectors/own/pause")
            side.fail(run, retriable=True, reason="SLOT_LOST")
            await worker.reaches("own", "PAUSED", "PAUSED")
            with pytest.raises((ProducerFenced, InvalidProducerEpoch)):
                await lost.commit_transaction()
        finally:
            await lost.stop()

        rows = await read_topic({"bootstrap.servers": bootstrap}, "own-configs", client_id="t", seconds=300)
        key = orjson.loads([r.value for r in rows if r.key == b"session-key"][-1] or b"")["key"]
        wrong = base64.b64encode(b"another key").decode()
        for headers, status in ((None, 400), (signed(wrong, b""), 403), (signed(key, b""), 204)):
            answer = await worker.ask("PUT", "/connectors/own/fence", headers=headers)
            assert answer.status_code == status, answer.text
        assert (await worker.ask("PUT", "/connectors/no/fence", headers=signed(key, b""))).status_code == 404
        assert await worker.end() == 0
