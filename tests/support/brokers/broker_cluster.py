"""Runs a real Kafka cluster of several brokers for tests, with its replicas, leaders and faults.

Brokers are numbered from 1 and keep their ports and their data over all their starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import AlterPartitionReassignmentsResponse_v0
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.kafka.probe import ask_broker
from keelman.runtime.processes.ports import free_ports
from support.brokers.broker import START_SECONDS, BrokerProcess
from support.brokers.cluster_parts import GROUPS, MOVE_SECONDS, QUICK, Led, Reassign, coordinating, until
from support.kafka.topics import creation

T = TypeVar("T")

BROKERS = 3
HEAP_MB = 192
"""With Java's own needs such a broker takes some 250 MB."""
CLUSTER_ID = "k3lmAnTestClusterOf3-Q"
ASK_SECONDS = 5.0
NO_LEADER = -1


@dataclass(slots=True)
class BrokerCluster:
    """Brokers below `home`, which share one cluster. By default every topic, those of groups and of transactions too,
    has three replicas of which two must be in sync; `properties` are those of all brokers, over Kafka's and `QUICK`."""

    home: Path
    properties: Mapping[str, str] = field(default_factory=dict)
    count: int = BROKERS
    brokers: dict[int, BrokerProcess] = field(default_factory=dict)
    _frozen: dict[int, psutil.Process] = field(default_factory=dict)
    _admin: AdminClient | None = None

    def __post_init__(self) -> None:
        nodes, ports = range(1, self.count + 1), free_ports(2 * self.count)
        voters = ",".join(f"{n}@127.0.0.1:{ports[self.count + n - 1]}" for n in nodes)
        said = ",".join(f"{key}={value}" for key, value in {**QUICK, **self.properties}.items())
        for node in nodes:
            flags: tuple[str, ...] = (f"--node-id={node}", f"--cluster-id={CLUSTER_ID}", f"--voters={voters}")
            flags += (f"--heap-mb={HEAP_MB}", f"--properties={said}")
            home, port, controller = self.home / f"broker{node}", ports[node - 1], ports[self.count + node - 1]
            self.brokers[node] = BrokerProcess(home, port, controller, flags)

    @property
    def bootstrap(self) -> str:
        """The bootstrap address: all brokers."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def output(self) -> str:
        """All output of the brokers."""
        return "\n".join(f"broker {node}:\n{broker.output}" for node, broker in self.brokers.items())

    def pid(self, node: int) -> int:
        """Process id of that broker's Java process. Raises AssertionError when it has none."""
        return int(self._java(node).pid)

    async def start(self) -> None:
        """Starts all; returns when each knows all. Raises AssertionError with their output when they do not start."""
        for broker in self.brokers.values():
            await broker.spawn()
        try:
            for node in self.brokers:
                await self._join(node)
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        """Kills all brokers, frozen ones included. No process of them is left when this returns."""
        for node, broker in self.brokers.items():
            if broker.running:
                with contextlib.suppress(AssertionError, TimeoutError, psutil.NoSuchProcess):  # has no Java yet
                    await self.kill(node)
                await broker.end(signal.SIGKILL)

    async def stop(self, node: int) -> None:
        """Ends a broker in order: it hands its partitions over first (Kafka's controlled shutdown)."""
        await self.brokers[node].end()

    async def kill(self, node: int) -> None:
        """Sends kill -9, also to a frozen broker."""
        self._java(node).kill()
        self._frozen.pop(node, None)
        await self.brokers[node].ended()  # which collects it

    async def restart(self, node: int) -> None:
        """Starts an ended broker with its ports and its data; returns when all running brokers know it."""
        await self.brokers[node].spawn()
        await self._join(node)

    async def given_up(self, node: int) -> None:
        """Returns when the other brokers have noticed that the node is lost and have taken over its partitions."""

        def gone() -> bool:
            return node not in self._client().list_topics(timeout=ASK_SECONDS).brokers

        await until(lambda: self._until_answered(gone), MOVE_SECONDS, f"broker {node} is given up")

    def freeze(self, node: int) -> None:
        """Sends SIGSTOP to the broker: its connections stay open, but it does not answer on them."""
        java = self._java(node)
        java.suspend()
        self._frozen[node] = java

    def thaw(self, node: int) -> None:
        """Resumes a frozen broker, as if no time had passed. Does nothing if the broker is not frozen."""
        java = self._frozen.pop(node, None)
        if java is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                java.resume()

    async def create(self, topic: str, *replicas: Sequence[int], **config: str) -> None:
        """Creates a topic with one partition for each of these lists of replicas, whose first node leads it.

        `config` has `_` for each `.`.
        """
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, len(replicas), replica_assignment=[list(r) for r in replicas], config=settings)
        await self._until_answered(creation(self._client, new, MOVE_SECONDS))
        for partition in range(len(replicas)):
            await self.leader_of(topic, partition)

    async def led(self, topic: str, partition: int = 0) -> Led:
        """A partition's current leader, replicas and in-sync replicas. Raises AssertionError if it does not exist."""

        def ask() -> Led:
            present_topic = self._client().list_topics(topic, ASK_SECONDS).topics[topic]
            assert present_topic.error is None, f"{topic}-{partition}: {present_topic.error}"
            assert partition in present_topic.partitions, f"{topic} has no partition {partition}"
            actual_partition = present_topic.partitions[partition]
            return Led(actual_partition.leader, tuple(actual_partition.replicas), frozenset(actual_partition.isrs))

        return await self._until_answered(ask)

    async def leader_of(self, topic: str, partition: int = 0) -> int:
        """The partition's leader; waits until the partition has a reachable leader."""

        leaders: list[int] = []

        async def known() -> bool:
            leaders.append((await self.led(topic, partition)).leader)
            return leaders[-1] != NO_LEADER

        await until(known, MOVE_SECONDS, f"{topic}-{partition} has a leader")
        return leaders[-1]

    async def led_by(self, topic: str, partition: int, *nodes: int) -> None:
        """Returns when one of these nodes leads the partition: a broker may report the former leader for a moment."""

        async def there() -> bool:
            return (await self.led(topic, partition)).leader in nodes

        await until(there, MOVE_SECONDS, f"{topic}-{partition} is led by {nodes}")

    async def coordinator_of(self, name: str, topic: str = GROUPS) -> int:
        """The coordinator of a group or, with `TRANSACTIONS`, of a transactional id: the leader of its partition."""
        return await self.leader_of(topic, coordinating(name, await self.partitions(topic)))

    async def partitions(self, topic: str) -> int:
        """The number of a topic's partitions; 0 if it does not exist."""

        def ask() -> int:
            return len(self._client().list_topics(topic, ASK_SECONDS).topics[topic].partitions)

        return await self._until_answered(ask)

    async def in_sync(self, topic: str, partition: int, nodes: set[int]) -> None:
        """Returns when exactly these replicas are in sync."""

        async def there() -> bool:
            return (await self.led(topic, partition)).in_sync == nodes

        await until(there, MOVE_SECONDS, f"in sync for {topic}-{partition}: {sorted(nodes)}")

    async def whole(self) -> None:
        """Returns when all replicas of all partitions are in sync."""

        def behind() -> list[str]:
            topics = self._client().list_topics(timeout=ASK_SECONDS).topics
            parts = [(t, p) for t, described in topics.items() for p in described.partitions.values()]
            return [f"{t}-{p.id}" for t, p in parts if set(p.isrs) != set(p.replicas)]

        async def there() -> bool:
            left = await self._until_answered(behind)
            assert not left, f"behind: {left}"
            return True

        await until(there, 2 * MOVE_SECONDS, "all replicas are in sync")

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Gives a partition to these replicas, the first of them preferred; returns when only they have it."""

        async def asked() -> bool:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            try:
                await admin.start()
                answer = await admin._send_request(Reassign(topic, partition, replicas))
            finally:
                await admin.close()
            assert isinstance(answer, AlterPartitionReassignmentsResponse_v0)
            assert not answer.error_code, f"reassignment of {topic}-{partition} refused: {answer}"
            return True

        await until(asked, MOVE_SECONDS, f"{topic}-{partition} is reassigned")

        async def there() -> bool:
            now = await self.led(topic, partition)
            return now.replicas == tuple(replicas) and now.in_sync == set(replicas)

        await until(there, MOVE_SECONDS, f"{topic}-{partition} is on {list(replicas)}")

    async def elect(self, topic: str, partition: int = 0, *, unclean: bool = False) -> None:
        """Makes the preferred leader take over and returns when the partition has a leader.

        With `unclean`, any running replica takes over if no running replica is in sync. Records that only the other
        replicas had are lost then; a lost broker must have been given up before the call.
        """
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED

        def ask() -> bool:
            elect_leaders = self._client().elect_leaders(kind, [TopicPartition(topic, partition)])
            errors = [str(e) for e in elect_leaders.result(ASK_SECONDS * 3).values() if e is not None]
            assert all("ELECTION_NOT_NEEDED" in e for e in errors), errors
            return True

        await until(lambda: self._until_answered(ask), MOVE_SECONDS, f"{topic}-{partition} elected")
        await self.leader_of(topic, partition)

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Moves leadership to another replica without copying data: makes it the preferred leader and elects it."""
        others = [node for node in (await self.led(topic, partition)).replicas if node != to]
        await self.reassign(topic, partition, [to, *others])
        await self.elect(topic, partition)
        await self.led_by(topic, partition, to)

    async def _until_answered(self, ask: Callable[[], T]) -> T:
        """Calls `ask` in a thread and repeats it while the brokers do not answer."""
        results: list[T] = []

        async def answered() -> bool:
            try:
                results.append(await asyncio.to_thread(ask))
            except KafkaException as error:
                self._admin = None  # the client may keep sending requests to a broker that is away
                raise AssertionError(str(error)) from error
            return True

        await until(answered, MOVE_SECONDS, "a broker answers")
        return results[0]

    def _client(self) -> AdminClient:
        if self._admin is None:
            quiet = {"error_cb": lambda _: None, "log_level": 0}
            waits = {"socket.timeout.ms": 3_000, "reconnect.backoff.max.ms": 300}
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, **waits, **quiet})
        return self._admin

    def _java(self, node: int) -> psutil.Process:
        family = psutil.Process(self.brokers[node].pid).children(recursive=True)
        results = [item for item in family if item.name() == "java"]
        assert results, f"broker {node} does not run"
        return results[0]

    async def _join(self, node: int) -> None:
        """Returns when the broker runs and sees itself as a member of its cluster."""
        broker = self.brokers[node]

        async def serves() -> bool:
            assert broker.running, "ended"
            answer = await ask_broker("127.0.0.1", broker.port)
            return answer is not None and answer.serves(node) and len(answer.brokers) > self.count // 2

        try:
            await until(serves, START_SECONDS, f"broker {node} serves")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{broker.output[-4000:]}") from error


@contextlib.asynccontextmanager
async def running_cluster(home: Path, **properties: str) -> AsyncIterator[BrokerCluster]:
    """Three brokers with their data below `home`, with these properties (`_` for each `.`); killed at the end."""
    cluster = BrokerCluster(home, {key.replace("_", "."): value for key, value in properties.items()})
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.end()
