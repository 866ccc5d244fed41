"""The three topics after Kafka has really compacted them, and with foreign records in them."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from keelman.kafka.tables.reading import read_topic
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.kafka.topics import messages
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
SECONDS = 300.0
# A segment is closed by the first record after a tenth of a second, and compacted within half a second.
CLEANER = "log.cleaner.backoff.ms=300,log.cleaner.delete.retention.ms=100,log.cleaner.min.cleanable.ratio=0.01"
EAGER = {
    f"{kind}.storage.{key}": value
    for kind in ("config", "offset", "status")
    for key, value in {
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    }.items()
}
SOURCE = {
    "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "topic": "lines",
    "throughput": "1",
    "tasks.max": "3",
}
REFUSED = {**SOURCE, "tasks.max": "many"}  # by its class


@pytest.fixture(scope="module")
async def eager(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A broker that compacts at once."""
    async with running_broker(tmp_path_factory.mktemp("broker"), "--properties", CLEANER) as servers:
        yield servers


async def produce(bootstrap: str, topic: str, *written: tuple[bytes, bytes | None], partition: int = 0) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for key, value in written:
            await producer.send_and_wait(topic, value, key=key, partition=partition)


async def compacted(bootstrap: str, topic: str) -> None:
    """Writes ignored records until everything before them is compacted: two records of a key are the last two."""

    async def there() -> bool:
        await produce(bootstrap, topic, (b"logger-cluster-nobody", b'{"level":"INFO"}'))
        keys = [message.key() for message in await asyncio.to_thread(messages, bootstrap, topic)]
        keys = [key for key in keys if key != b"logger-cluster-nobody"]
        return len(keys) == len(set(keys))

    await eventually(there, seconds=SECONDS, every=0.5)


def named(name: str, config: dict[str, str], **more: str) -> bytes:
    return json.dumps({"properties": {**config, **more, "name": name}}).encode()


async def seen(worker: WorkerProcess) -> dict[str, Any]:
    """All connectors and their tasks as a worker reports them, without the workers that run them."""
    answer = (await worker.ask("GET", "/connectors?expand=info&expand=status")).json()
    return {
        name: {
            "info": value["info"],
            "states": [value["status"]["connector"]["state"], *(task["state"] for task in value["status"]["tasks"])],
            "tasks": (await worker.ask("GET", f"/connectors/{name}/tasks")).json(),
        }
        for name, value in answer.items()
    }


async def agree(*processes: WorkerProcess) -> dict[str, Any]:
    """Waits until all of them give the same answers."""

    async def same() -> dict[str, Any] | None:
        first, *others = [await seen(process) for process in processes]
        return first if all(other == first for other in others) else None

    actual_agree = await eventually(same, seconds=SECONDS)
    assert actual_agree is not None
    return actual_agree


async def test_who_starts_on_compacted_topics_knows_the_tasks_of_all_connectors(
    eager: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    first, second = (WorkerProcess(tmp_path / letter, eager, name, link[1], EAGER) for letter in "ab")
    async with workers(first, second):
        for connector in ("same", "paused", "refused", "same-1"):
            assert (await first.ask("PUT", f"/connectors/{connector}/config", SOURCE)).status_code == 201
            await first.reaches(connector, "RUNNING", "RUNNING", "RUNNING", "RUNNING", seconds=SECONDS)
        # Connect does the same when a configuration is sent again: the connector's record is after its commit then.
        assert (await second.ask("PUT", "/connectors/same/config", SOURCE)).status_code == 200
        assert (await second.ask("PUT", "/connectors/paused/pause")).status_code == 202
        await first.reaches("paused", "PAUSED", "PAUSED", "PAUSED", "PAUSED", seconds=SECONDS)
        assert (await second.ask("PUT", "/connectors/paused/config", {**SOURCE, "tasks.max": "1"})).status_code == 200
        await produce(eager, f"{name}-configs", (b"connector-refused", named("refused", REFUSED)))
        await first.reaches("refused", "FAILED", "RUNNING", "RUNNING", "RUNNING", seconds=SECONDS)
        await compacted(eager, f"{name}-configs")

        async def at_rest() -> dict[str, Any] | None:
            """The answers of both workers, once nothing changes any more: `same` may be starting again."""
            statuses = await agree(first, second)
            states = {connector: statuses[connector]["states"] for connector in statuses}
            run = ["RUNNING"] * 3
            rest = {"same": ["RUNNING", *run], "paused": ["PAUSED"] * 4, "refused": ["FAILED", *run]}
            return statuses if states == {**rest, "same-1": ["RUNNING", *run]} else None

        before = await eventually(at_rest, seconds=SECONDS, what="nothing is on its way")
        assert before is not None
        follower = second if "leader=True" in first.output else first
        assert await follower.end(signal.SIGKILL) != 0
        await follower.start()

        async def as_before() -> bool:
            return await agree(first, second) == before

        await eventually(as_before, seconds=SECONDS)
        assert {name: len(status["tasks"]) for name, status in before.items()} == dict.fromkeys(before, 3)


async def test_records_that_mean_nothing_are_told_and_change_nothing(
    eager: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    worker_process = WorkerProcess(tmp_path, eager, name, link[1], EAGER)
    async with workers(worker_process):
        for connector in ("x", "x-1"):
            assert (await worker_process.ask("PUT", f"/connectors/{connector}/config", SOURCE)).status_code == 201
            await worker_process.reaches(connector, "RUNNING", "RUNNING", "RUNNING", "RUNNING", seconds=SECONDS)
        before = await seen(worker_process)
        ghosts = ((b"task-ghost-0", b'{"properties":{}}'), (b"commit-ghost", b'{"tasks":1}'))
        configs = ((b"connector-x", b"nope"), (b"connector-\xff", b"{}"), (b"commit-x", b'{"tasks":9}'), *ghosts)
        statuses = (("status-task-x-\u00b2".encode(), b"{}"), (b"status-connector-x", b'{"state":"DANCING"}'))
        await produce(eager, f"{name}-status", *statuses)
        await produce(eager, f"{name}-offsets", (b'["x",5]', b"{}"), (b'["x",{"id":9}]', b"5"))
        await produce(eager, f"{name}-configs", *configs, *configs)

        async def as_before() -> bool:
            return await seen(worker_process) == before and "leftovers_deleted" in worker_process.output

        def passed_over() -> list[str]:
            return [line for line in worker_process.output.splitlines() if "record_passed_over" in line]

        await eventually(as_before, seconds=SECONDS)
        assert (await worker_process.ask("GET", "/connectors/x/offsets")).json() == {"offsets": []}
        await eventually(lambda: len(passed_over()) >= 7, seconds=SECONDS, what="all three topics are read")
        await compacted(eager, f"{name}-configs")
        passed = passed_over()
        assert len(passed) == len(set(passed)) == 7, passed
        assert any("connector-x" in line and "its value is no JSON object" in line for line in passed)
        assert await worker_process.end() == 0
        await worker_process.start()
        await eventually(as_before, seconds=SECONDS)

        async def no_ghost() -> bool:
            rows = await read_topic({"bootstrap.servers": eager}, f"{name}-configs", client_id="test", seconds=SECONDS)
            newest = {row.key: row.value for row in rows}
            return not any(value and b"ghost" in key for key, value in newest.items())

        await eventually(no_ghost, seconds=SECONDS, what="the records of the ghost are gone")
