"""A mirror whose backlog is split over slots: slots killed in the middle, stopped in the middle; every record once."""

import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, CopyRun
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.api.copy.v1.run_order_pb2 import BulkPart
from keelman.api.copy.v1.ticket_pb2 import Bulk
from keelman.engine.source.split import plans
from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.protocol import GroupClient
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.kafka.topics import AT_ONCE
from support.numbered import Stream
from support.oracle import judge
from support.spark.service import SparkService
from support.worker.processes import ENDED, FENCED, RUNNING, LinkSide, Run, WorkerProcess, workers

pytestmark = pytest.mark.component
PARTITIONS = 4
EACH = 10_000
SECONDS = 300


@dataclass
class Mirror:
    """One mirror of a topic of numbered records; a partition holds one task's."""

    bootstrap: str
    name: str
    worker: WorkerProcess
    runs: CopyRunServiceStub

    async def begin(self, **more: str) -> None:
        """Fills the topic and begins to mirror it, slowly by default."""
        made(self.bootstrap, self.name)
        # Idempotent, for the order: otherwise a repeated batch comes after the next one.
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 20})
        for partition in range(PARTITIONS):
            for record in Stream(partition, EACH):
                while True:
                    with contextlib.suppress(BufferError):
                        producer.produce(self.name, record, partition=partition)
                        break
                    producer.poll(0.1)
        assert producer.flush(300) == 0
        config = self.config | more
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code == 201, answer.text

    @property
    def config(self) -> dict[str, str]:
        """A slow mirror in two parts."""
        return {
            "connector.class": "MirrorSource",
            "source.cluster.alias": "there",
            "target.cluster.alias": "here",
            "source.cluster.bootstrap.servers": self.bootstrap,
            "target.cluster.bootstrap.servers": self.bootstrap,
            "topics": self.name,
            "heartbeats.replication.enabled": "false",
            "emit.offset-syncs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "1",
            "keelman.commit.interval.ms": "20",
            "keelman.bulk.slots": "2",
            "keelman.bulk.min.records": "1000",
            "keelman.limit.records.per.second": "10000",
        }

    async def speed_up(self) -> None:
        """Removes the limit, which restarts nothing."""
        config = (await self.worker.ask("GET", f"/connectors/{self.name}/config")).json()
        del config["keelman.limit.records.per.second"]
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code == 200, answer.text

    async def live(self) -> dict[int, CopyRun]:
        """The copying runs, by part."""
        listed = await self.runs.ListCopyRuns(ListCopyRunsRequest(connector=self.name))
        return {run.part: run for run in listed.copy_runs if run.state == COPY_RUN_STATE_RUNNING}

    async def split(self, *unlike: CopyRun) -> dict[int, CopyRun]:
        """Waits until both parts copy, with other runs than these, and have committed something."""
        before = {run.uid for run in unlike}

        async def both() -> Any:
            runs = await self.live()
            copying = [run for run in runs.values() if run.progress.records > 0 and run.uid not in before]
            return runs if len(copying) == 2 else None

        try:
            return await eventually(both, seconds=SECONDS, what="both parts copy")
        except AssertionError as error:
            raise AssertionError(self.worker.output[-6000:]) from error

    def offsets(self) -> dict[int, int]:
        """The committed source offsets, by partition; asserts one row for each."""
        offsets = {}
        for key, value in self.rows():
            if b'"topic"' in key:
                offsets[int(_field(key, "partition"))] = int(_field(value, "offset"))
        return offsets

    def rows(self) -> list[tuple[bytes, bytes]]:
        """The connector's newest committed rows of the offset topic."""
        topic = read(self.bootstrap, f"{self.worker.group}-offsets")
        mine = f'["{self.name}"'.encode()
        newest = {key: value for rows in topic.values() for key, value in rows if (key or b"").startswith(mine)}
        return [(key, value) for key, value in newest.items() if value is not None]

    def zombie(self, task: int, part: int) -> Producer:
        """A part's producer with an open transaction."""
        name = f"{self.worker.group}-{self.name}-{task}-b{part}"
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.name, b"a zombie's")
        assert producer.flush(300) == 0
        return producer

    @property
    def planned(self) -> bool:
        """Whether the offset topic contains the plan of a split task."""
        return bool(plans(self.name, self.rows()))

    def copied(self) -> dict[str, list[bytes | None]]:
        """The copied records that a reader of committed records sees, by partition."""
        answer = read(self.bootstrap, f"there.{self.name}")
        return {str(partition): [value for _, value in records] for partition, records in answer.items()}

    async def is_whole(self) -> None:
        """Waits for all records, each once and in order, and for the offsets of the last ones."""

        def all_there() -> bool:
            return sum(map(len, self.copied().values())) >= PARTITIONS * EACH

        await eventually(all_there, seconds=SECONDS, every=0.5, what="all records")
        report = judge(dict.fromkeys(range(PARTITIONS), EACH), self.copied())
        assert report.clean, str(report)
        await eventually(
            lambda: self.offsets() == dict.fromkeys(range(PARTITIONS), EACH - 1), seconds=SECONDS, what="their offsets"
        )


def _field(text: bytes, name: str) -> str:
    return text.decode().split(f'"{name}":')[1].split(",")[0].rstrip("}]")


def read(bootstrap: str, topic: str) -> dict[int, list[tuple[Any, Any]]]:
    """Every committed record of a topic, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "read",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **AT_ONCE,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        answer: dict[int, list[tuple[Any, Any]]] = {partition: [] for partition in partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        ended: set[int] = set()
        while len(ended) < len(answer):
            message = consumer.poll(1.0)
            if message is not None and message.error():
                ended.add(message.partition())
            elif message is not None:
                answer[message.partition()].append((message.key(), message.value()))
        return answer
    finally:
        consumer.close()


@pytest.fixture
async def mirror(bootstrap: str, spark: SparkService, name: str, tmp_path: Path) -> AsyncIterator[Mirror]:
    worker = WorkerProcess(tmp_path / "worker", bootstrap, name, spark.address)
    async with workers(worker), channel(spark.address) as opened:
        yield Mirror(bootstrap, name, worker, CopyRunServiceStub(opened))


@pytest.mark.slow
async def test_a_backlog_is_split_and_joined(mirror: Mirror) -> None:
    await mirror.begin(**{"keelman.limit.records.per.second": "400"})
    runs = await mirror.split()
    assert set(runs) == {0, 1}
    assert runs[0].slot != runs[1].slot
    assert mirror.planned
    await mirror.speed_up()

    async def joined() -> bool:
        now = await mirror.live()
        return set(now) == {0} and now[0].uid != runs[0].uid

    await eventually(joined, seconds=SECONDS, what="the task is whole again")
    assert not mirror.planned
    await mirror.is_whole()
    rows = (await mirror.worker.ask("GET", f"/connectors/{mirror.name}/offsets")).json()["offsets"]
    assert len(rows) == PARTITIONS
    assert await mirror.worker.end() == 0


async def test_slots_and_worker_killed_in_the_middle(mirror: Mirror, spark: SparkService) -> None:
    await mirror.begin(**{"keelman.limit.records.per.second": "400"})
    runs = await mirror.split()
    spark.signal_slot(runs[1].slot, signal.SIGKILL)
    runs = await mirror.split(*runs.values())
    spark.signal_slot(runs[0].slot, signal.SIGKILL)
    runs = await mirror.split(*runs.values())
    await mirror.worker.end(signal.SIGKILL)
    assert mirror.planned
    await mirror.worker.start()
    await mirror.split(*runs.values())
    await mirror.speed_up()
    await mirror.is_whole()
    assert await mirror.worker.end() == 0


async def test_what_a_killed_worker_has_planned_is_fenced(mirror: Mirror) -> None:
    most = PARTITIONS * EACH
    await mirror.begin(**{"keelman.limit.records.per.second": "1000", "keelman.bulk.min.records": str(most)})
    await mirror.split()
    await mirror.worker.end(signal.SIGKILL)
    zombie = mirror.zombie(0, 1)
    await mirror.worker.start()
    await eventually(lambda: not mirror.planned, seconds=SECONDS, every=0.2, what="the plan is taken back")
    with pytest.raises(KafkaException, match=r"fenced|epoch"):
        zombie.commit_transaction(30)
    await mirror.speed_up()
    await mirror.is_whole()

    async def alone() -> bool:
        return set(await mirror.live()) == {0}

    await eventually(alone, seconds=SECONDS, every=0.2, what="one run copies for the whole task")
    assert await mirror.worker.end() == 0


async def test_a_stop_in_the_middle_leaves_exact_offsets_and_no_plan(mirror: Mirror) -> None:
    await mirror.begin(**{"keelman.limit.records.per.second": "1000"})
    await mirror.split()
    assert await mirror.worker.end() == 0
    assert not mirror.planned

    def seen() -> dict[int, int]:
        return {int(partition): len(records) - 1 for partition, records in mirror.copied().items() if records}

    # The last commit was answered before its markers were written.
    await eventually(lambda: mirror.offsets() == seen(), seconds=SECONDS, what="the offsets are those of the records")
    assert 0 < sum(seen().values()) < PARTITIONS * EACH - PARTITIONS
    await mirror.worker.start()
    await mirror.split()
    await mirror.speed_up()
    await mirror.is_whole()
    assert await mirror.worker.end() == 0


def made(bootstrap: str, topic: str) -> None:
    """A topic to mirror, without records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(300)


@dataclass
class Told:
    """A mirror whose copy runs copy nothing and follow the test's orders."""

    mirror: Mirror
    side: LinkSide

    async def only(self, part: int, *unlike: Run, state: Any = RUNNING) -> Run:
        """Waits for the newest copy run of a part that is in this state."""

        def found() -> Run | None:
            runs = [r for r in self.side.of(self.mirror.name, state=state) if r.ticket.bulk.part == part]
            return next((run for run in reversed(runs) if run not in unlike), None)

        try:
            return await eventually(found, seconds=SECONDS, what=f"a copy run of part {part}")
        except AssertionError as error:
            raise AssertionError(self.mirror.worker.output[-4000:]) from error


@pytest.fixture
async def told(bootstrap: str, name: str, link: tuple[LinkSide, str], tmp_path: Path) -> AsyncIterator[Told]:
    made(bootstrap, name)
    side, address = link
    worker = WorkerProcess(tmp_path / "worker", bootstrap, name, address)
    async with channel(address) as opened, workers(worker):
        yield Told(Mirror(bootstrap, name, worker, CopyRunServiceStub(opened)), side)


async def test_parts_share_limits_end_with_their_task_and_begin_with_it(told: Told) -> None:
    mirror, side = told.mirror, told.side
    await mirror.worker.ask("PUT", f"/connectors/{mirror.name}/config", mirror.config)
    first = await told.only(0)
    assert first.ticket.bulk == Bulk(slots=2, least=1000)
    parts = [BulkPart(task_config={"which": str(number)}) for number in (1, 2, 3)]
    side.copies(first, parts=parts)
    running = [await told.only(part) for part in (1, 2, 3)]
    assert [run.ticket.task_config["which"] for run in running] == ["1", "2", "3"]
    prefix = first.ticket.transactional_id
    assert [run.ticket.transactional_id for run in running] == [f"{prefix}-b1", f"{prefix}-b2", f"{prefix}-b3"]
    assert {run.ticket.limits.records_per_second for run in running} == {2500}
    await eventually(lambda: [limit.records_per_second for limit in first.limits] == [2500], what="its share")

    side.fail(running[1], retriable=True)
    second = await told.only(0, first)
    assert {run.state for run in (first, running[0], running[2])} == {ENDED}
    side.copies(second, parts=parts[:1], caught_up=True)
    last = await told.only(1, *running)
    side.copies(last, caught_up=True)
    whole = await told.only(0, first, second)
    assert last.state == second.state == ENDED
    assert not whole.ticket.HasField("bulk")
    assert await mirror.worker.end() == 0


async def test_parts_of_former_tasks_are_fenced(told: Told) -> None:
    mirror = told.mirror
    config = mirror.config | {"tasks.max": "2"}
    await mirror.worker.ask("PUT", f"/connectors/{mirror.name}/config", config)
    await eventually(lambda: told.side.of(mirror.name, 1), seconds=SECONDS, what="two tasks")
    producer = Producer({"bootstrap.servers": mirror.bootstrap, "enable.idempotence": True})
    plan = f'["{mirror.name}",{{"keelman.bulk":"1"}}]'.encode()
    producer.produce(f"{mirror.worker.group}-offsets", b'{"parts":3}', plan)
    assert producer.flush(300) == 0
    zombie = mirror.zombie(1, 2)
    answer = await mirror.worker.ask("PUT", f"/connectors/{mirror.name}/config", config | {"tasks.max": "1"})
    assert answer.status_code == 200
    await told.only(0, *told.side.of(mirror.name))
    with pytest.raises(KafkaException, match=r"fenced|epoch"):
        zombie.commit_transaction(30)
    assert await mirror.worker.end() == 0


async def test_a_part_that_fences_after_its_worker_lost_the_task_copies_nothing(told: Told) -> None:
    mirror, side = told.mirror, told.side
    await mirror.worker.ask("PUT", f"/connectors/{mirror.name}/config", mirror.config)
    first = await told.only(0)
    side.slow = True
    side.copies(first, parts=[BulkPart(task_config={"which": "1"})])
    late = await told.only(1, state=FENCED)
    async with low_level_client({"bootstrap.servers": mirror.bootstrap}, client_id="test", timeout_ms=30_000) as client:
        group = GroupClient(client, mirror.worker.group, session_ms=6000, rebalance_ms=6000)
        (member,) = (await group.describe()).members
        side.slow = False  # the worker may be back before this test has seen that the part is withdrawn
        await group.leave(member.member)
        side.fence(late)  # before the worker's next heartbeat would report it
        await eventually(lambda: late.state == ENDED, seconds=SECONDS, what="the part is withdrawn")
    assert late.confirmed is None
    await told.only(0, first)
    assert await mirror.worker.end() == 0
