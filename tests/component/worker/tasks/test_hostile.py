"""Connector code that blocks, raises, dies, spins, allocates or floods in any method harms no other connector."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from keelman.runtime.supervise import Siblings
from support.connectors.hostile_wheel import SINK, SOURCE, WAYS, hostile_wheel
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component

ANSWER_SECONDS = 5
# On a quiet machine both take about a second; a hanging call would hang as long as the test.
REST_SECONDS, GAP_SECONDS = 120.0, 180.0
HUNG = f"no answer in {ANSWER_SECONDS} s; its process was killed"


@dataclass
class Bystander:
    """Another connector of the worker, whose records must keep flowing, and the REST answers about it."""

    worker: WorkerProcess
    bootstrap: str
    topic: str
    gap: float = 0.0
    answer: float = 0.0
    records: int = 0
    restarting: bool = False
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def watch(self) -> None:
        consumer = AIOKafkaConsumer(self.topic, bootstrap_servers=self.bootstrap, isolation_level="read_committed")
        await consumer.start()
        try:
            last = time.monotonic()
            while True:
                answer = await consumer.getmany(timeout_ms=100)
                now = time.monotonic()
                self.records += sum(map(len, answer.values()))
                last = now if self.restarting else last
                self.gap = max(self.gap, now - last)
                last = now if answer else last
        finally:
            await consumer.stop()

    async def ask(self) -> None:
        while True:
            async with self.asking:
                begun = time.monotonic()
                if not self.restarting:
                    answer = await self.worker.ask("GET", "/connectors/bystander/status")
                    assert answer.json()["connector"]["state"] == "RUNNING"
                    self.answer = max(self.answer, time.monotonic() - begun)
            await asyncio.sleep(0.1)

    async def restarts(self) -> None:
        """The worker is about to restart: no requests are sent to it until the bystander continues."""
        async with self.asking:
            self.restarting = True

    async def goes_on(self) -> None:
        """The worker is back: the bystander's records flow again."""
        before = self.records
        await eventually(lambda: self.records > before, what="the bystander copies again")
        await self.worker.reaches("bystander", "RUNNING", "RUNNING", seconds=300)
        self.restarting = False

    def judge(self) -> None:
        """Asserts that only the culprits were harmed."""
        assert self.answer < REST_SECONDS, f"REST took {self.answer:.1f} s"
        assert self.gap < GAP_SECONDS, f"no record for {self.gap:.1f} s"
        assert self.records > 0


@contextlib.asynccontextmanager
async def scene(
    bootstrap: str, spark: SparkService, folder: Path, group: str, **more: str
) -> AsyncIterator[tuple[WorkerProcess, Bystander]]:
    """A worker with the hostile plugin, and a bystander that copies."""
    hostile_wheel(folder / "plugins", folder)
    extra = {
        "plugin.path": str(folder / "plugins"),
        "keelman.plugin.answer.timeout.ms": f"{ANSWER_SECONDS}000",
        # Twice is enough to see, and the processors are busy enough.
        "keelman.restart.backoff.ms": "120000",
        "session.timeout.ms": "30000",
        **more,
    }
    worker = WorkerProcess(folder / "worker", bootstrap, group, spark.address, extra)
    create_topic(bootstrap, f"{group}-records")
    steady = {"connector.class": "VerifiableSource", "topic": f"{group}-records", "throughput": "50", "id": "0"}
    bystander = Bystander(worker, bootstrap, f"{group}-records")
    async with workers(worker), Siblings() as siblings:
        assert (await worker.ask("POST", "/connectors", {"name": "bystander", "config": steady})).status_code == 201
        await worker.reaches("bystander", "RUNNING", "RUNNING", seconds=300)
        siblings.start(bystander.watch(), name="records")
        siblings.start(bystander.ask(), name="answers")
        await eventually(lambda: bystander.records > 0, what="the bystander copies")
        bystander.gap = 0.0
        yield worker, bystander
        bystander.judge()


async def create(worker: WorkerProcess, name: str, config: Mapping[str, str]) -> None:
    answer = await worker.ask("POST", "/connectors", {"name": name, "config": dict(config)})
    assert answer.status_code == 201, answer.text


async def traced(worker: WorkerProcess, name: str, text: str, *, task: bool = False, seconds: float = 300.0) -> None:
    """Waits until a trace has this text: of the connector, or of its task."""

    async def there() -> bool:
        status = (await worker.ask("GET", f"/connectors/{name}/status")).json()
        shown = status["tasks"][0] if task else status["connector"]
        assert shown["state"] in ("FAILED", "RESTARTING", "PAUSED"), status
        assert text in shown.get("trace", ""), status
        return True

    await eventually(there, seconds=seconds, what=f"{name}: {text}")


def outcome(way: str) -> str:
    """The text of the line about a method that a worker calls."""
    return {
        "raise": "RuntimeError: as ordered",
        "exit": "its process died",
        "allocate": "MemoryError",
    }.get(way, HUNG)


async def test_what_a_worker_asks(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ways in validation, at once; for other ways also during planning, and while the worker restarts."""
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    async with scene(bootstrap, spark, tmp_path, "asked") as (worker, bystander):
        where = f"plugin acme-hostile 6.6, {SOURCE}, "
        path = "/connector-plugins/HostileSource/config/validate"
        config = {"connector.class": SOURCE, "topic": "asked-nowhere"}

        async def validated(way: str) -> None:
            body = {**config, "name": "x", "mood": f"validate:{way}"}
            answer = await worker.ask("PUT", path, body)
            assert answer.status_code == 500 or way in ("raise", "allocate"), answer.text
            assert outcome(way) in answer.text or way in ("raise", "allocate"), answer.text

        async with asyncio.TaskGroup() as group:
            for way in WAYS:
                group.create_task(validated(way))
        moods = [("task_configs", way) for way in ("block", "raise", "exit")]
        moods += [("tend", "block"), ("refresh_seconds", "exit")]
        for method, way in moods:
            await create(worker, f"{method}-{way}", {**config, "mood": f"{method}:{way}"})
        await create(worker, "promise", {**config, "connector.class": SINK, "topics": "t", "mood": PROMISE})
        mocks = {"connector.class": "MockSource", "mock_point": "configure"}
        for way in ("die", "hang"):
            await create(worker, f"mock-{way}", {**mocks, "mock_mode": way})
        for method, way in moods:
            await traced(worker, f"{method}-{way}", f"{where}{method}: {outcome(way)}")
        await traced(worker, "promise", f"{SINK}, supports_exactly_once: {HUNG}", task=True)
        await traced(worker, "mock-die", "MockSourceConnector, task_configs: its process died")
        await traced(worker, "mock-hang", f"MockSourceConnector, task_configs: {HUNG}")
        (tmp_path / "config_def").write_text("block")
        answer = await worker.ask("GET", "/connector-plugins/HostileSource/config")
        assert (answer.status_code, f"config_def: {HUNG}" in answer.text) == (500, True), answer.text

        await bystander.restarts()
        assert await worker.end() == 0
        await worker.start()
        await bystander.goes_on()
        await traced(worker, "task_configs-block", f"{where}task_configs: {HUNG}")


PROMISE = "supports_exactly_once:block"
AT_WORK = (
    (SOURCE, "open_reader", "raise"),
    *((SOURCE, "read", way) for way in WAYS),
    *((SINK, "write", way) for way in ("block", "exit", "raise")),
    (SINK, "commit", "block"),
)


async def test_what_a_task_does(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ways in the methods of a task, at once, and while the worker restarts and stops them."""
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    grace = {"task.shutdown.graceful.timeout.ms": "2000"}
    async with scene(bootstrap, spark, tmp_path, "at-work", **grace) as (worker, bystander):
        config = {"topic": "at-work-nowhere", "topics": "at-work-records"}
        for kind, method, way in AT_WORK:
            mood = {"connector.class": kind, "mood": f"{method}:{way}"}
            await create(worker, f"{method}-{way}", {**config, **mood})
        await create(worker, "close-block", {**config, "connector.class": SOURCE, "mood": "close:block"})
        for _, method, way in AT_WORK:
            reports = {
                "raise": "RuntimeError: as ordered",
                "exit": "was lost: its process exited with code 3 in Hostile",
                "allocate": "MemoryError",
                "spin": "no beat for ",
            }.get(way, f".{method} (source.py:")
            await traced(worker, f"{method}-{way}", reports, task=True)
        await worker.reaches("close-block", "RUNNING", "RUNNING", seconds=300)
        assert (await worker.ask("PUT", "/connectors/close-block/pause")).status_code == 202
        await traced(worker, "close-block", "stop: the task did not end within 2 s and was cut", task=True)

        await bystander.restarts()
        assert await worker.end() == 0
        await worker.start()
        await bystander.goes_on()
        for _, method, way in AT_WORK:
            assert (await worker.ask("DELETE", f"/connectors/{method}-{way}")).status_code == 204


@pytest.mark.slow
async def test_a_task_that_never_opens_its_source(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take a minute; afterwards it is the same as when it blocks later."""
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    async with scene(bootstrap, spark, tmp_path, "never-open") as (worker, _):
        mood = {"connector.class": SOURCE, "topic": "never-open-nowhere", "mood": "open_reader:block"}
        await create(worker, "never", mood)
        await traced(worker, "never", "HostileSource.open_reader (source.py:", task=True, seconds=300)
