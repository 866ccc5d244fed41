"""The managed broker as a process: formatted once, drained, never left behind, and clear about impossible requests."""

import asyncio
import signal
import socket
import time
from pathlib import Path

import grpc
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keelman.broker.storage import FolderOwner, owner_of
from keelman.model.cluster import new_cluster_id
from keelman.runtime.supervise import Siblings
from support.brokers.broker import BrokerProcess
from support.eventually import eventually

pytestmark = pytest.mark.component

TOPIC = TopicPartition("orders", 0)
FROZEN_SECONDS = 4.0  # longer than a session of 3 s, with which this was seen to fail


async def create_topic(bootstrap: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC.topic, 1, 1)])
    finally:
        await admin.close()


async def write(bootstrap: str, *values: bytes) -> None:
    """Writes in a transaction, so that the coordinator's topic is needed too."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="writer")
    await producer.start()
    try:
        async with producer.transaction():
            for value in values:
                await producer.send_and_wait(TOPIC.topic, value, partition=0)
    finally:
        await producer.stop()


async def read(bootstrap: str, count: int) -> list[bytes]:
    """Reads with a group, so that the group coordinator's topic is needed too."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id="readers", isolation_level="read_committed", enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign([TOPIC])
        await consumer.seek_to_beginning(TOPIC)
        values: list[bytes] = []
        async with asyncio.timeout(300):  # a transaction without its marker would block the reader for ever
            while len(values) < count:
                batch = await consumer.getmany(timeout_ms=1000)
                values += [record.value for records in batch.values() for record in records]
        await consumer.commit()
        return values
    finally:
        await consumer.stop()


def java_of(broker: BrokerProcess) -> psutil.Process | None:
    children = psutil.Process(broker.pid).children()
    return next((c for c in children if c.name() == "java"), None)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


async def test_data_outlives_an_orderly_end_and_a_kill_of_everything(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "home")
    await broker.start()
    try:
        await create_topic(broker.bootstrap)
        await write(broker.bootstrap, b"one", b"two")
        assert await read(broker.bootstrap, 2) == [b"one", b"two"]
        owner = owner_of(broker.home / "data")

        begun = time.monotonic()
        assert await broker.end(signal.SIGTERM) == 0
        assert time.monotonic() - begun < 60, "draining takes half a second on an idle machine"
        assert "orderly=True" in broker.output

        await broker.start()
        assert await read(broker.bootstrap, 2) == [b"one", b"two"]
        await write(broker.bootstrap, b"three")

        java = java_of(broker)
        assert java is not None
        assert await broker.end(signal.SIGKILL) == -signal.SIGKILL
        await eventually(lambda: gone(java), what="the Java process ends with its service")

        await broker.start()
        assert await read(broker.bootstrap, 3) == [b"one", b"two", b"three"]
        assert owner_of(broker.home / "data") == owner
        assert broker.output.count("broker_formatting") == 1
    finally:
        await broker.end()


async def commit_until(done: asyncio.Event, bootstrap: str, name: str, committed: list[bytes]) -> None:
    """Transactions of one record each, without pause."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    await producer.start()
    try:
        while not done.is_set():
            value = f"{name} {len(committed)}".encode()
            async with producer.transaction():
                await producer.send_and_wait(TOPIC.topic, value, partition=0)
            committed.append(value)
    finally:
        await producer.stop()


async def test_a_broker_alone_that_was_frozen_is_not_given_up_and_loses_no_marker(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "home")
    await broker.start()
    try:
        await create_topic(broker.bootstrap)
        java = java_of(broker)
        assert java is not None
        done, committed = asyncio.Event(), [[] for _ in range(4)]
        async with Siblings() as writers:
            running = [
                writers.start(commit_until(done, broker.bootstrap, f"writer-{n}", own))
                for n, own in enumerate(committed)
            ]
            for _ in range(2):
                least = [len(own) + 5 for own in committed]
                await eventually(
                    lambda least=least: all(len(own) >= n for own, n in zip(committed, least, strict=True)),
                    what="all commit",
                )
                java.suspend()
                await asyncio.sleep(FROZEN_SECONDS)
                java.resume()
            done.set()
            for process in running:
                await process
        values = [value for own in committed for value in own]
        assert sorted(await read(broker.bootstrap, len(values))) == sorted(values)
        assert "Fencing broker" not in (broker.home / "logs" / "broker.log").read_text()
    finally:
        await broker.end()


async def test_health_tells_the_truth_and_a_dead_broker_ends_its_service(tmp_path: Path) -> None:
    path = tmp_path / "health.sock"
    broker = BrokerProcess(tmp_path / "home", flags=("--health-socket", str(path)))
    await broker.spawn()
    try:
        await eventually(path.exists, what="there is a socket")  # a client that connects before would reconnect late
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            health = health_pb2_grpc.HealthStub(channel)

            async def state() -> str:
                try:
                    reply = await health.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=300)
                except grpc.aio.AioRpcError as error:
                    return error.code().name
                return health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)

            async def serving() -> bool:
                return await state() == "SERVING"

            assert await state() == "NOT_SERVING", "the socket answers before the broker does"
            await eventually(serving, what="the broker is ready")

            java = java_of(broker)
            assert java is not None
            java.suspend()

            async def silent() -> bool:
                return await state() == "NOT_SERVING"

            await eventually(silent, what="a frozen broker is not healthy")
            java.resume()
            await eventually(serving, what="it is healthy again")

        java.kill()
        assert await broker.ended() == 1
        assert f"the broker ended with signal SIGKILL; its log is {broker.home}/logs/broker.log" in broker.output
        assert not path.exists()
    finally:
        await broker.end()


async def test_told_to_end_while_starting_it_leaves_nothing_and_starts_again(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "home", lasting=True)  # with the default settings
    await broker.spawn()
    java = await eventually(lambda: java_of(broker), what="its first Java process")
    assert await broker.end(signal.SIGTERM) == 0
    assert gone(java)
    await broker.start()
    assert await broker.end() == 0


async def test_a_port_in_use_is_named_and_nothing_is_formatted(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "home")
    with socket.create_server(("127.0.0.1", broker.controller_port)):
        await broker.spawn()
        assert await broker.ended() == 1
    assert f"broker.controller_port: {broker.controller_port} on 127.0.0.1 is taken" in broker.output
    assert list((broker.home / "data").iterdir()) == []


async def test_the_folder_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    mine, other = new_cluster_id(), new_cluster_id()
    broker = BrokerProcess(tmp_path / "home", flags=(f"--cluster-id={mine}",))
    await broker.start()
    try:
        rival = BrokerProcess(broker.home, flags=(f"--cluster-id={mine}",))
        await rival.spawn()
        assert await rival.ended() == 1
        assert f"{broker.home} is in use by process {broker.pid}" in broker.output
    finally:
        assert await broker.end() == 0

    broker.flags = (f"--cluster-id={other}",)
    await broker.spawn()
    assert await broker.ended() == 1
    assert f"belongs to the Kafka cluster {mine}, not to {other}" in broker.output
    assert owner_of(broker.home / "data") == FolderOwner(mine, 1)


async def test_a_property_that_kafka_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "home", flags=("--properties", "num.network.threads=abc"))
    await broker.spawn()
    assert await broker.ended() == 1
    assert "Invalid value abc for configuration num.network.threads" in broker.output
    assert "\tat " not in broker.output, "one line without a stack trace"
