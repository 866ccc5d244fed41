"""One worker with a connector whose data set Spark reads or writes, as tests watch it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, CopyRun
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.model.errors import KeelmanError
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.kafka.topics import AT_ONCE
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

NUMBERS = itertools.count()
SECONDS = 120  # on a busy machine each start takes a minute


@dataclass
class Scene:
    """One worker, and its one connector."""

    bootstrap: str
    name: str
    worker: WorkerProcess
    spark: SparkService

    async def begin(self, format_: str, kind: str = "SparkSource", **more: str) -> None:
        """Begins to read a data set, or to write one."""
        topic = {"topic" if kind == "SparkSource" else "topics": self.name}
        config = {"connector.class": kind, "spark.format": format_, **topic, **more}
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code in (200, 201), answer.text

    async def speed_up(self) -> None:
        """Removes the limit, which restarts nothing."""
        config = (await self.worker.ask("GET", f"/connectors/{self.name}/config")).json()
        del config["keelman.limit.records.per.second"]
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code == 200, answer.text

    async def offsets(self) -> list[dict[str, Any]]:
        """The connector's offsets in its worker's answer."""
        offsets: list[dict[str, Any]] = (await self.worker.ask("GET", f"/connectors/{self.name}/offsets")).json()[
            "offsets"
        ]
        return offsets

    async def done(self, reads: int = 1) -> dict[str, Any]:
        """Waits until the data set is read; returns its offset."""

        async def read() -> Any:
            offsets = await self.offsets()
            return offsets[0]["offset"] if len(offsets) == 1 and "time" in offsets[0]["offset"] else None

        offset: dict[str, Any] = await self.eventually(read, "all is read")
        return offset

    async def copying(self, *unlike: CopyRun, parts: bool = True, records: bool = True) -> CopyRun:
        """Waits for a part's copy run, or the task's own, that has copied something."""
        before = {run.uid for run in unlike}

        async def found() -> CopyRun | None:
            with contextlib.suppress(KeelmanError):
                async with channel(self.spark.address) as opened:
                    listed = await CopyRunServiceStub(opened).ListCopyRuns(ListCopyRunsRequest(connector=self.name))
                runs = [r for r in listed.copy_runs if bool(r.part) is parts and r.state == COPY_RUN_STATE_RUNNING]
                return next((r for r in runs if (r.progress.records > 0 or not records) and r.uid not in before), None)
            return None

        run: CopyRun = await self.eventually(found, "a part copies")
        return run

    async def eventually(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits for a condition; a failure has the ends of the logs."""
        try:
            return await eventually(condition, seconds=SECONDS, every=0.1, what=what)
        except AssertionError as error:
            text = (await self.worker.ask("GET", f"/connectors/{self.name}/status")).text
            tails = f"{what}: {text}\n{self.worker.output[-3000:]}\n{self.spark.log.read_text()[-5000:]}"
            raise AssertionError(tails) from error

    async def written(self, least: int) -> None:
        """Waits until the group's offset is there or further."""

        async def is_there() -> bool:
            rows = await self.offsets() or [{}]
            return int(rows[0].get("offset", {}).get("kafka_offset", 0)) >= least

        await self.eventually(is_there, f"{least} records are written")

    def fill(self, records: list[tuple[bytes | None, bytes]]) -> None:
        """Writes records to the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.name, 1, 1)])[self.name].result(300)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for key, value in records:
            producer.produce(self.name, value, key, partition=0, headers=[("h", b"1")])
        assert producer.flush(300) == 0

    def forget(self) -> None:
        """Resets the connector's offsets, as Connect does: with tombstones."""
        topic = f"{self.worker.group}-offsets"
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for partition in range(3):
            for key, value in self.copied(topic, partition):
                if value is not None and key.startswith(f'["{self.name}"'.encode()):
                    producer.produce(topic, None, key, partition=partition)
        assert producer.flush(300) == 0

    def copied(self, topic: str = "", partition: int = 0) -> list[tuple[Any, Any]]:
        """Every committed record of the topic."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "read", "enable.partition.eof": True}
        consumer = Consumer({**settings, **AT_ONCE, "enable.auto.commit": False})
        results: list[tuple[Any, Any]] = []
        try:
            consumer.assign([TopicPartition(topic or self.name, partition, 0)])
            while True:
                message = consumer.poll(0.2)
                if message is not None and message.error():
                    return results
                if message is not None:
                    results.append((message.key(), message.value()))
        finally:
            consumer.close()


@contextlib.asynccontextmanager
async def scene_with(bootstrap: str, spark: SparkService, folder: Path) -> AsyncIterator[Scene]:
    name = f"formats{next(NUMBERS)}"
    worker = WorkerProcess(folder / "worker", bootstrap, name, spark.address)
    async with workers(worker):
        yield Scene(bootstrap, name, worker, spark)
        assert await worker.end() == 0
