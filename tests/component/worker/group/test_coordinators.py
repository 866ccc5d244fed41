"""The coordinators of workers, of a source's transactions and of a sink's group move while records flow."""

import contextlib
import itertools
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.clients import admin_client, low_level_client
from keelman.model.errors import Unavailable
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import supervise
from support.brokers.broker import BrokerProcess
from support.eventually import eventually
from support.spark.service import SparkService
from support.worker.groups import Flow, Workers, feeding

pytestmark = [pytest.mark.component, pytest.mark.fault]
CLUSTER_ID = "Z9X8c7VbQ2GnM1kLpO0iUw"
GROUP, TRANSACTION = 0, 1
INTERNAL = ("__consumer_offsets", "__transaction_state")
MOVED_SECONDS = 300.0


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[list[BrokerProcess]]:
    """Three brokers, so that one may be away."""
    ports = free_ports(6)
    voters = ",".join(f"{number}@127.0.0.1:{ports[number + 2]}" for number in (1, 2, 3))
    flags = (f"--cluster-id={CLUSTER_ID}", f"--voters={voters}", "--heap-mb=256")
    broker_processes = [
        BrokerProcess(tmp_path / f"broker{n}", ports[n - 1], ports[n + 2], (f"--node-id={n}", *flags))
        for n in (1, 2, 3)
    ]
    try:
        await supervise(*(broker_process.start for broker_process in broker_processes))
        yield broker_processes
    finally:
        for broker in broker_processes:
            with contextlib.suppress(AssertionError):  # not started
                await broker.end(signal.SIGKILL)


class Outside:
    """A client of the brokers outside the workers."""

    def __init__(self, brokers: list[BrokerProcess]) -> None:
        self._brokers = brokers
        self.servers = ",".join(broker.bootstrap for broker in brokers)
        self.properties = {"bootstrap.servers": self.servers}

    def admin(self) -> AbstractAsyncContextManager[Any]:
        return admin_client(self.properties, client_id="test")

    async def coordinators(self, *expected: tuple[int, str]) -> list[BrokerProcess]:
        """The brokers that coordinate these groups, and the transactions of these ids."""

        async def told() -> set[int]:
            with contextlib.suppress(KafkaError):
                async with self.admin() as admin:
                    return {await admin.find_coordinator(name, kind) for kind, name in expected}
            return set()

        coordinators = await eventually(told, seconds=MOVED_SECONDS, every=0.2, what=f"{expected} have coordinators")
        return [self._brokers[number - 1] for number in coordinators]

    async def same(self, group: str) -> tuple[str, BrokerProcess]:
        """A name for a flow whose coordinators are all the workers' own, and that broker."""
        (broker,) = await self.coordinators((GROUP, group))
        for flow in (f"{group}-{number}" for number in itertools.count()):
            if await self.coordinators(*coordinated(group, flow)) == [broker]:
                return flow, broker
        raise AssertionError("unreachable")

    async def whole(self, *topics: str) -> None:
        """Returns when all brokers, each queried by itself, agree: all are there, and every replica in sync.

        Then any of them may go, and until then they may name different coordinators, or none.
        """
        numbers = range(1, len(self._brokers) + 1)
        question = MetadataRequest(list(topics), allow_auto_topic_creation=False)

        async def agreed() -> bool:
            with contextlib.suppress(KafkaError, Unavailable):
                async with low_level_client(self.properties, client_id="test", timeout_ms=10_000) as client:
                    answers = [await client.send(number, question) for number in numbers]
                leaders_known = [leaders(answer, len(numbers)) for answer in answers]
                return all(
                    leaders_of_broker is not None and leaders_of_broker == leaders_known[0]
                    for leaders_of_broker in leaders_known
                )
            return False

        await eventually(agreed, seconds=MOVED_SECONDS, every=0.2, what=f"{topics} are whole")


def leaders(answer: Any, brokers: int) -> dict[tuple[str, int], int] | None:
    """Each partition's leader as one broker reports it; None if a broker, a topic or a replica is missing."""
    fields = {}
    for code, topic, _, partitions in answer.topics:
        for _, partition, leader, _, in_sync, *_ in partitions:
            if len(in_sync) < brokers:
                return None
            fields[topic, partition] = leader
        if code:
            return None
    return fields if len(answer.brokers) == brokers else None


def coordinated(group: str, flow: str) -> tuple[tuple[int, str], ...]:
    """The workers' group, the producer of the flow's source, the group of its sink."""
    return (GROUP, group), (TRANSACTION, f"{group}-{flow}-in-0"), (GROUP, f"connect-{flow}-out")


async def test_tasks_go_on_when_all_their_coordinators_move(
    brokers: list[BrokerProcess], spark: SparkService, tmp_path: Path, name: str
) -> None:
    outside = Outside(brokers)
    workers = Workers.of(tmp_path, outside.servers, name, spark.address, 2)
    await outside.whole()
    await outside.coordinators((GROUP, name), (TRANSACTION, name))  # the request creates the internal topics
    await outside.whole(*INTERNAL)
    flow, doomed = await outside.same(name)
    copied = Flow(tmp_path, flow)
    async with outside.admin() as admin:
        await admin.create_topics([NewTopic(flow, 1, 3)])
    async with workers.running():
        for connector, config in copied.connectors.items():
            response = await workers.processes[0].ask("POST", "/connectors", {"name": connector, "config": config})
            assert response.status_code == 201, response.text
        async with feeding(copied):
            await copied.passes(seconds=MOVED_SECONDS)
            await outside.whole(flow, *INTERNAL, f"{name}-offsets")
            await doomed.end(signal.SIGKILL)
            await copied.passes(seconds=MOVED_SECONDS)
            assert doomed not in await outside.coordinators(*coordinated(name, flow))
            await copied.passes(seconds=MOVED_SECONDS)
        report = copied.judged()
        assert report.clean, report
        for process in workers.processes:
            assert await process.end() == 0, process.output[-3000:]
