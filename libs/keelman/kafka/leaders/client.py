"""A client that knows the newest leaders of the partitions in use."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import TopicPartition

from keelman.kafka.bootstrap_errors import bootstrap_errors
from keelman.kafka.clients import Client, client_arguments, no_broker
from keelman.kafka.connections import answer_of
from keelman.kafka.known_brokers import BROKERS
from keelman.kafka.leaders.leaders import Leaders
from keelman.kafka.leaders.metadata import NO_EPOCH, NOBODY, AskMetadata, Leader, MetadataAnswer, Part, TopicInfo
from keelman.kafka.reaching import first_answer, is_silent, silent_nodes
from keelman.runtime.background import Background
from keelman.runtime.logs.logging import get_logger

LEARN_SECONDS = 30.0
METADATA_SECONDS = 8.0
"""The time limit of one broker's answer to Metadata; the request then goes to the next broker."""

_log = get_logger()


class LeaderClient(Client):
    """A copy run's client: it starts from the brokers that this process knows, requests the metadata of topics in use
    only, and never creates a topic by a request. Used in the loop that it was made in."""

    def __init__(self, properties: Mapping[str, str], *, client_id: str, request_timeout_ms: int = 30_000) -> None:
        """`properties` are Java's. Raises InvalidArgument."""
        super().__init__(**client_arguments(properties), client_id=client_id, request_timeout_ms=request_timeout_ms)
        self.properties = properties
        self.leaders = Leaders()
        """The epochs of leaders and the ids of topics, which `cluster` does not have."""
        self._answered_at: dict[Any, float] = {}
        self._asked_at: dict[Any, float] = {}
        self._background = Background(self._unsynced)
        self._follows = False  # with its own task instead of the library's

    async def bootstrap(self) -> None:
        """Connects to a broker, and learns the other brokers where they are unknown. Raises KafkaConnectionError with a
        broker's reason, and Unauthenticated when a broker refused this client."""
        async with bootstrap_errors(self.properties):
            if not self.cluster.brokers() and await self._resume():
                return
            await self._background.close()
            try:
                await super().bootstrap()
            except BaseException:
                if self._follows:  # the next request for metadata waits for this task
                    self._background.start(self._md_synchronizer())
                raise
            self._follows = False
            BROKERS.met(self.properties, self.cluster._brokers)

    async def close(self) -> None:
        """Closes the client at once."""
        await self._background.close()
        await super().close()

    async def learn(self, topics: Collection[str]) -> str:
        """Requests the leaders of these topics' partitions. Returns why no broker has answered, or an empty text."""
        try:
            async with asyncio.timeout(LEARN_SECONDS):
                if not self.cluster.brokers():
                    await self.bootstrap()
                self.set_topics(topics)
                if await self.force_metadata_update():
                    return ""
                # Perhaps all brokers have moved: the first addresses may know them.
                await self.bootstrap()
        except (KafkaError, OSError, TimeoutError) as error:
            return one_line(error)
        return "no broker answers about topics"

    def leader_of(self, part: Part) -> Leader | None:
        """Returns the newest known leader, with node -1 while the partition has none; None for an unknown partition."""
        node = self.cluster.leader_for_partition(TopicPartition(*part))
        if node is None:
            return None
        return self.leaders.of(part) or Leader(node, NO_EPOCH)

    async def confirm(self, leaders: Mapping[Part, Leader]) -> bool:
        """Whether these are still the leaders, by the answer of a broker other than each leader: a broker that is cut
        off from its cluster still considers itself the leader. Always true in a cluster of one broker.

        Raises KafkaError when no other broker answers.
        """
        nodes = self._in_turn()
        open_parts = dict(leaders) if len(self.cluster.brokers()) > 1 else {}
        while open_parts:
            node = next((other for other in nodes if any(leader.node != other for leader in open_parts.values())), None)
            if node is None:
                raise KafkaError("no other broker names the leader")
            nodes.remove(node)
            try:
                self._take_in(self.cluster, await self._ask(node, sorted({topic for topic, _ in leaders})), node)
            except (KafkaError, OSError, TimeoutError):
                continue
            open_parts = {part: leader for part, leader in open_parts.items() if leader.node == node}
        now = {part: self.leader_of(part) or NOBODY for part in leaders}
        return all((now[part].node, now[part].epoch) == (was.node, was.epoch) for part, was in leaders.items())

    def confirmed(self, since: float) -> bool:
        """Whether two brokers have answered about leaders since then, by the loop's clock: for each partition at least
        one of them is not its leader. Always true in a cluster of one broker."""
        answers = sum(at > since for at in self._answered_at.copy().values())
        return answers > 1 or len(self.cluster.brokers()) == 1

    async def _resume(self) -> bool:
        """Whether one of the recently known brokers has accepted a connection."""
        brokers = BROKERS.of(self.properties)
        self.cluster._brokers = brokers
        shuffled = random.sample(sorted(brokers), len(brokers))
        for node in sorted(shuffled, key=lambda node: is_silent(brokers[node].host, brokers[node].port)):
            if await self._get_conn(node) is not None:
                self._background.start(self._md_synchronizer())
                self._follows = True
                return True
        BROKERS.forget(self.properties)
        self.cluster._brokers = {}
        return False

    def _unsynced(self, error: BaseException) -> None:
        _log.warning("metadata_not_followed", error=repr(error))

    async def _metadata_update(self, cluster_metadata: Any, topics: Iterable[str]) -> bool:
        """Replaces the library's method, which has brokers create missing topics, requests all topics while none is
        named, and reads no leader epochs."""

        async def ask(node: Any) -> tuple[Any, Any]:
            answer = await self._ask(node, list(topics))
            if not answer.brokers:
                raise KafkaError(f"broker {node} knows no brokers")
            return node, answer

        try:
            node, answer = await first_answer(self._in_turn(), ask)
        except (KafkaError, OSError):
            return False
        return self._take_in(cluster_metadata, answer, node)

    def _take_in(self, cluster: Any, answer: Any, node: Any) -> bool:
        if not answer.brokers:
            return False
        self._answered_at[node] = self._loop.time()
        cluster.update_metadata(answer)
        return True

    def _in_turn(self) -> list[Any]:
        """Returns the nodes in the order of requests for metadata: first nodes without requests under way, the least
        recently used before others; last the nodes that were silent recently. So the answers of a broker that is cut
        off from its cluster are soon replaced by another broker's."""
        brokers = list(self.cluster.brokers())
        silent = silent_nodes(brokers)
        nodes = [broker.nodeId for broker in brokers]
        nodes += [node for node, _group in self._conns if node == "bootstrap"]
        random.shuffle(nodes)
        busy = {node: len(connection._requests) for (node, _group), connection in self._conns.items()}
        nodes.sort(key=lambda node: (node in silent, busy.get(node, 0) > 0, self._asked_at.get(node, float("-inf"))))
        return nodes

    async def _ask(self, node: Any, topics: list[str]) -> Any:
        """Returns a broker's answer in the library's form, with outdated leaders replaced by newer known ones."""
        self._asked_at[node] = self._loop.time()
        async with asyncio.timeout(METADATA_SECONDS):
            try:
                answer: MetadataAnswer = await self.send(node, AskMetadata(topics))
            except IncompatibleBrokerVersion:
                return await self.send(node, MetadataRequest(topics, False))
        return _as_the_library_has_it(answer, self.leaders.learn(answer.topics, node, len(answer.brokers)))


def one_line(error: BaseException) -> str:
    """Returns an error's message in one line, or the name of its class."""
    return " ".join(str(error).split()) or type(error).__name__


def _as_the_library_has_it(answer: MetadataAnswer, topics: Mapping[str, TopicInfo]) -> SimpleNamespace:
    """Converts the answer to one of Metadata 5, the newest version that the library supports."""
    return SimpleNamespace(
        API_VERSION=5,
        brokers=[tuple(broker) for broker in answer.brokers],
        controller_id=answer.controller,
        topics=[
            (
                topic.code,
                topic.name,
                topic.internal,
                [(info.code, number, info.node, info.replicas, info.isr) for number, info in topic.partitions.items()],
            )
            for topic in topics.values()
        ],
    )


async def open_client(properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> LeaderClient:
    """Returns a bootstrapped client for the caller to close. Raises Unavailable, Unauthenticated, InvalidArgument."""
    client = LeaderClient(properties, client_id=client_id, request_timeout_ms=timeout_ms)
    try:
        await client.bootstrap()
    except BaseException as error:
        await client.close()
        if not isinstance(error, KafkaError | OSError):
            raise
        raise no_broker(properties, error) from None
    return client


async def answer_of_any(client: LeaderClient, request: Any) -> Any:
    """Returns the first broker's answer to a request that each broker answers, or forwards to the controller. Raises
    KafkaError, OSError and TimeoutError of the last broker if none answers."""
    problem: BaseException = KafkaError("no broker is known")
    for node in client._in_turn():
        try:
            return await answer_of(client, node, request)
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError) as error:
            problem = error
    raise problem
