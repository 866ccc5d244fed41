"""Three real brokers in one cluster, whose partitions a test moves, freezes and cuts off from one another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import struct
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import ClassVar, NamedTuple

import psutil
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.kafka.clients import low_level_client
from keelman.kafka.connections import answer_of
from keelman.kafka.groups.coordinator import GROUPS_TOPIC
from keelman.kafka.leaders.metadata import Leader, metadata_of
from keelman.kafka.probe import ask_broker
from keelman.kafka.wire.fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.wire.requests import WireRequest
from keelman.runtime.processes.ports import free_ports
from support.brokers.broker import BrokerProcess
from support.eventually import eventually
from support.kafka.topics import creation
from support.proxy import Proxy, Weather
from support.waiting import until

NODES = (1, 2, 3)
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Reassigned(NamedTuple):
    """Answer to AlterPartitionReassignments 0."""

    error_code: int

    @classmethod
    def decode(cls, data: BytesIO) -> Reassigned:
        fields = Fields(data.read())
        fields.int32()
        return cls(fields.int16())


@dataclass(frozen=True, slots=True)
class Reassign(WireRequest):
    """Gives one partition to these replicas, of which the first is its preferred leader."""

    API_KEY: ClassVar[int] = 45
    API_VERSION: ClassVar[int] = 0
    RESPONSE_TYPE: ClassVar[type[Reassigned]] = Reassigned

    topic: str
    partition: int
    replicas: tuple[int, ...]

    def encode(self) -> bytes:
        replicas = varint(len(self.replicas) + 1) + struct.pack(f">{len(self.replicas)}i", *self.replicas)
        part = struct.pack(">i", self.partition) + replicas + NO_TAGS
        return struct.pack(">i", 30_000) + b"\2" + compact(self.topic) + b"\2" + part + NO_TAGS + NO_TAGS


class Trio:
    """Three brokers; each has proxies of its own before the others' controllers."""

    def __init__(self, brokers: Mapping[int, BrokerProcess], links: Mapping[tuple[int, int], Proxy]) -> None:
        self.brokers = brokers
        self._links = links

    @property
    def bootstrap(self) -> str:
        """The bootstrap address of all three."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def create(self, topic: str, replicas: list[int], partitions: int = 1, **config: str) -> None:
        """A topic whose partitions are all led by the first of these."""
        self._create(NewTopic(topic, partitions, replica_assignment=[replicas] * partitions, config=config))

    def create_groups(self, *replicas: list[int]) -> None:
        """Creates the topic of groups, with a partition on each of these replica lists.

        The first node of a list coordinates the groups of that partition. The brokers' property
        `offsets.topic.num.partitions` must equal the number of lists.
        """
        config = {"cleanup.policy": "compact"}
        self._create(NewTopic(GROUPS_TOPIC, len(replicas), replica_assignment=list(replicas), config=config))

    def _create(self, topic: NewTopic) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        until(creation(lambda: admin, topic), f"topic {topic.topic} is created")

    async def leader(self, topic: str, by: str = "") -> Leader:
        """The leader of partition 0 in the metadata of one of these brokers."""
        fields = {"bootstrap.servers": by or self.bootstrap}
        async with low_level_client(fields, client_id="look", timeout_ms=5_000) as client:
            first = [broker.nodeId for broker in client.cluster.brokers() if f"{broker.host}:{broker.port}" in by]
            told = await metadata_of(client, [topic], first=first)
        return told.topics[topic].partitions[0]

    async def controller(self) -> int:
        """The active controller, by the state that each broker has on disk."""
        told: list[tuple[int, int]] = []
        for broker in self.brokers.values():
            (file,) = broker.home.rglob("quorum-state")
            state = json.loads(file.read_text(encoding="utf-8"))
            told.append((int(state["leaderEpoch"]), int(state["leaderId"])))
        return max(told)[1]

    async def led_by(self, topic: str, node: int, by: str = "") -> Leader:
        """Waits until the partition has that leader."""

        async def there() -> Leader | None:
            leader = await self.leader(topic, by)
            return leader if leader.node == node else None

        result = await eventually(there, what=f"{topic} is led by {node}")
        assert result is not None
        return result

    async def move(self, topic: str, replicas: tuple[int, ...]) -> None:
        """Moves the partition in order to the first of these replicas."""
        async with low_level_client(
            {"bootstrap.servers": self.bootstrap}, client_id="move", timeout_ms=5_000
        ) as client:
            answer = await answer_of(client, client.get_random_node(), Reassign(topic, 0, replicas))
        assert answer.error_code == 0
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def elected() -> bool:
            done = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(300)
            return all(error is None or "ELECTION_NOT_NEEDED" in str(error) for error in done.values())

        await eventually(lambda: asyncio.to_thread(elected), what="elected")
        await self.led_by(topic, replicas[0])

    def freeze(self, node: int) -> None:
        """Stops its process with SIGSTOP."""
        self._java(node).send_signal(signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        """Resumes its process."""
        self._java(node).send_signal(signal.SIGCONT)

    def cut_off(self, node: int, *, off: bool = True) -> None:
        """Cuts the broker's controller off from the others, in both directions; clients still reach it."""
        for (item, other), link in self._links.items():
            if node in (item, other):
                link.weather = Weather(frozen=off)

    def _java(self, node: int) -> psutil.Process:
        family = psutil.Process(self.brokers[node].pid).children(recursive=True)
        return next(item for item in family if "java" in item.name())


def write(bootstrap: str, topic: str, values: list[bytes], **config: str) -> float:
    """Writes to partition 0; returns when the last of them was acknowledged, by the monotonic clock."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **config})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(300) == 0
    return time.monotonic()


@contextlib.asynccontextmanager
async def three_brokers(home: Path, **properties: object) -> AsyncIterator[Trio]:
    """Brokers 1, 2 and 3, in racks r1, r2 and r3; a broker two seconds behind leaves the in-sync replicas.

    `properties` are theirs, with underscores for dots.
    """
    ports = dict(zip(NODES, free_ports(3), strict=True))
    controllers = dict(zip(NODES, free_ports(3), strict=True))
    async with contextlib.AsyncExitStack() as stack:
        links = {
            (item, other): await stack.enter_async_context(Proxy("127.0.0.1", controllers[other]))
            for item in NODES
            for other in NODES
            if item != other
        }
        brokers: dict[int, BrokerProcess] = {}
        for node in NODES:
            voters = [
                f"{other}@127.0.0.1:{controllers[node] if other == node else links[node, other].port}"
                for other in NODES
            ]
            flags = (
                f"--node-id={node}",
                f"--cluster-id={CLUSTER_ID}",
                f"--voters={','.join(voters)}",
                "--heap-mb=256",
                f"--properties=replica.lag.time.max.ms=2000,min.insync.replicas=1,broker.rack=r{node},"
                "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
                + "".join(f",{key.replace('_', '.')}={value}" for key, value in properties.items()),
            )
            brokers[node] = BrokerProcess(home / str(node), ports[node], controllers[node], flags)
        trio = Trio(brokers, links)
        for broker in brokers.values():
            await broker.spawn()
            stack.push_async_callback(broker.end, signal.SIGKILL)
        for broker in brokers.values():
            await eventually(lambda broker=broker: _serves(broker), what=broker.output[-2000:])  # type: ignore[misc]
        yield trio


async def _serves(broker: BrokerProcess) -> bool:
    answer = await ask_broker("127.0.0.1", broker.port)
    return answer is not None and all(answer.serves(node) for node in NODES)
