"""Describes, creates, grows, configures and deletes single topics by requests to the brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass

from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import IncompatibleBrokerVersion, KafkaError
from aiokafka.protocol.admin import CreatePartitionsRequest, DeleteTopicsRequest, DescribeConfigsRequest

from keelman.kafka.clients import no_broker
from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import CODES, name_of, passes
from keelman.kafka.fetching.log_bounds import log_bounds
from keelman.kafka.fetching.position_checks import READ_UNCOMMITTED
from keelman.kafka.leaders.client import LeaderClient, answer_of_any, open_client
from keelman.kafka.leaders.metadata import AskMetadata, BrokerAddress, MetadataAnswer, Part, TopicInfo, metadata_of
from keelman.kafka.topic_requests import TIMEOUT_MS, ChangeConfig, ConfigChanged, CreatedTopic, CreateTopic
from keelman.model.errors import FailedPrecondition, KeelmanError, PermissionDenied, Unavailable

CLIENT = "keelman-topics"
AT_ONCE = 100
"""The most topics in one request: while its answer is decoded nothing else runs."""
_ITS_OWN = 1  # DYNAMIC_TOPIC_CONFIG
_UNKNOWN, _EXISTS = CODES["UNKNOWN_TOPIC_OR_PARTITION"], CODES["TOPIC_ALREADY_EXISTS"]
_LESS = CODES["INVALID_PARTITIONS"]
_KEPT_OUT = frozenset(CODES[f"{what}_AUTHORIZATION_FAILED"] for what in ("TOPIC", "CLUSTER"))


@dataclass(frozen=True, slots=True)
class TopicConfigValue:
    """A value of a topic's configuration; `own` if it was set for the topic, rather than a broker's default."""

    value: str
    own: bool


@dataclass(frozen=True, slots=True)
class DescribedTopics:
    """Existing topics as brokers describe them, and the brokers by node id."""

    topics: Mapping[str, TopicInfo]
    brokers: Mapping[int, BrokerAddress]


class TopicBrokers:
    """Opened with `open`. Its methods raise Unavailable when no broker answers (a retry may help),
    PermissionDenied where access rules forbid it, and FailedPrecondition for other refusals of the brokers."""

    def __init__(self, client: LeaderClient, properties: Mapping[str, str]) -> None:
        self._client = client
        self._properties = properties

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: Mapping[str, str], *, answer_seconds: float = 5.0) -> AsyncIterator[TopicBrokers]:
        """Yields an open client. `properties` are Java's. Raises Unavailable, Unauthenticated, InvalidArgument."""
        brokers = await opened(properties, answer_seconds=answer_seconds)
        try:
            yield brokers
        finally:
            await brokers.close()

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.close()

    async def describe(self, topics: Collection[str]) -> DescribedTopics:
        """Returns the requested topics that the brokers have."""
        topic_infos: dict[str, TopicInfo] = {}
        brokers: dict[int, BrokerAddress] = {}
        with self._errors("about topics"):
            for some in _portions(sorted(topics)) or [[]]:
                answer = await metadata_of(self._client, some)
                brokers = {broker.node: broker for broker in answer.brokers}
                for name, topic in answer.topics.items():
                    if topic.code not in (0, _UNKNOWN, CODES["LEADER_NOT_AVAILABLE"]):
                        raise refusal(f"topic {name} cannot be described", topic.code)
                    if topic.partitions:
                        topic_infos[name] = topic
        return DescribedTopics(topic_infos, brokers)

    async def described_by_each(self, topic: str) -> list[DescribedTopics]:
        """Returns the topic as each broker that answers has it: some learn of changes later than others."""
        described: list[DescribedTopics] = []
        problem: BaseException = KafkaError("no broker is known")
        with self._errors("about topics"):
            for node in [broker.nodeId for broker in self._client.cluster.brokers()]:
                try:
                    answer: MetadataAnswer = await answer_of(self._client, node, AskMetadata([topic]))
                except IncompatibleBrokerVersion:
                    raise
                except (KafkaError, OSError, TimeoutError) as error:
                    problem = error
                    continue
                brokers = {broker.node: broker for broker in answer.brokers}
                described.append(DescribedTopics({n: t for n, t in answer.topics.items() if t.partitions}, brokers))
            if not described:
                raise problem
        return described

    async def offsets(self, topics: Mapping[str, TopicInfo]) -> dict[Part, tuple[int, int]]:
        """Returns the first and end offsets of partitions; leaves out partitions whose leaders do not report them."""
        offsets: dict[Part, tuple[int, int]] = {}
        for some in _portions(sorted(topics)):
            parts = [(name, number) for name in some for number in topics[name].partitions]
            offsets |= await log_bounds(self._client, parts, topics, isolation=READ_UNCOMMITTED)
        return offsets

    async def configs(self, topics: Collection[str]) -> dict[str, dict[str, TopicConfigValue]]:
        """Returns the whole configuration of the existing topics that this client may see."""
        configs: dict[str, dict[str, TopicConfigValue]] = {}
        with self._errors("about the configuration of topics"):
            for some in _portions(sorted(topics)):
                resources = [(ConfigResourceType.TOPIC.value, name, None) for name in some]
                answer = await answer_of_any(self._client, DescribeConfigsRequest(resources))
                for code, _message, _kind, name, entries in answer.resources:
                    if code == 0:
                        configs[name] = {e[0]: TopicConfigValue(e[1] or "", e[3] == _ITS_OWN) for e in entries}
                await asyncio.sleep(0)
        return configs

    async def create(
        self, name: str, partitions: int, replication_factor: int, config: Mapping[str, str]
    ) -> str | None:
        """Creates a topic; 0 partitions or replicas mean the brokers' default. Returns its id, None if it exists."""
        with self._errors(f"to create topic {name}"):
            request = CreateTopic(name, partitions or -1, replication_factor or -1, config)
            answer: CreatedTopic = await answer_of_any(self._client, request)
        if answer.code == _EXISTS:
            return None
        if answer.code:
            raise refusal(f"topic {name} cannot be created", answer.code, answer.message)
        return answer.topic_id

    async def grow(self, name: str, partitions: int) -> None:
        """Increases a topic's partitions to `partitions` in all."""
        with self._errors(f"to add partitions to topic {name}"):
            answer = await answer_of_any(
                self._client, CreatePartitionsRequest([(name, (partitions, None))], TIMEOUT_MS, False)
            )
        for _, code, message in answer.topic_errors:
            if code and not (code == _LESS and f"already has {partitions} partition" in (message or "")):
                raise refusal(f"topic {name} cannot have {partitions} partitions", code, message)

    async def configure(self, name: str, settings: Mapping[str, str], unset: Collection[str] = ()) -> None:
        """Sets some keys of a topic's configuration, and resets others to the brokers' default."""
        with self._errors(f"to configure topic {name}"):
            answer: ConfigChanged = await answer_of_any(self._client, ChangeConfig(name, settings, unset))
        if answer.code:
            raise refusal(f"topic {name} cannot be configured", answer.code, answer.message)

    async def delete(self, name: str) -> bool:
        """Deletes a topic with its records, which the brokers do in their own time; False if it does not exist."""
        with self._errors(f"to delete topic {name}"):
            answer = await answer_of_any(self._client, DeleteTopicsRequest([name], TIMEOUT_MS))
        code = answer.topic_error_codes[0][1]
        if code in (0, _UNKNOWN):
            return bool(code == 0)
        raise refusal(f"topic {name} cannot be deleted", code)

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except IncompatibleBrokerVersion as error:
            raise FailedPrecondition(f"the brokers are too old {what}: {error}", reason="BROKERS_TOO_OLD") from None
        except (KafkaError, OSError, TimeoutError) as error:
            raise no_broker(self._properties, error) from None


async def opened(properties: Mapping[str, str], *, answer_seconds: float = 5.0) -> TopicBrokers:
    """Returns a connected client, for the caller to close. Raises Unavailable, Unauthenticated, InvalidArgument."""
    client = await open_client(properties, client_id=CLIENT, timeout_ms=int(answer_seconds * 1000))
    return TopicBrokers(client, properties)


def refusal(what: str, code: int, message: str | None = "") -> KeelmanError:
    """Returns the error for one of Kafka's codes: PermissionDenied, Unavailable if transient, else
    FailedPrecondition."""
    name = name_of(code)
    text = f"{what}: {message or name}"
    if code in _KEPT_OUT:
        return PermissionDenied(f"{text} ({name})" if message else text, reason=name)
    if passes(code):
        return Unavailable(text, reason=name)
    return FailedPrecondition(text, reason=name)


def _portions(names: list[str]) -> list[list[str]]:
    return [names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE)]
