"""The target of a Kafka sink: the properties of its cluster, and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

from keelman.connect.errors import ConnectError
from keelman.connect.java.regex import JavaPattern
from keelman.connect.plugin import SinkTask
from keelman.connect.policy.topics import InternalTopics
from keelman.engine.clients import admin_properties, consumer_properties, with_token
from keelman.engine.failure import CONFIG_INVALID, RunFailure, TopicRefused
from keelman.engine.producing.producer import RunProducer
from keelman.engine.topics import ensure_topic, grow_topic
from keelman.kafka.clients import ClientError, admin_client
from keelman.kafka.properties.connector_clients import merged, sink_group
from keelman.model.errors import Unavailable
from keelman.model.keys import under

PREFIX = "target.cluster."
ROLES = ("producer.", "consumer.", "admin.")
ASK_SECONDS = 10.0
SERVERS = "bootstrap.servers"


class TargetCluster:
    """One task's target cluster: Java's properties of producer and reader, the client library's of an administrator."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
        """Without `target.cluster.bootstrap.servers` it is the worker's own cluster. Raises ConfigValueError."""
        own = under(PREFIX, config)
        self.named = bool(own.get(SERVERS, "").strip())
        # A client's own key may be given plainly or, as for MirrorMaker's clusters, under `producer.`.
        plain = {f"{role}{k}": v for role in ROLES for k, v in own.items() if not k.startswith(ROLES)}
        whole = {**({} if self.named else worker), **plain, **own}
        self.producer: dict[str, str] = merged(whole, config, "producer")
        self.admin: dict[str, Any] = admin_properties(whole, config)
        self.reader: dict[str, str] = merged(whole, {}, "consumer")


class FewPartitions(TopicRefused):
    """The target topic lacks a partition that must be written, and cannot be extended by it."""

    def __init__(self, message: str, there: int) -> None:
        """`there` is the topic's number of partitions."""
        super().__init__(message)
        self.there = there


class TargetTopics:
    """The target of each topic, resolved at the topic's first record."""

    def __init__(self, config: Mapping[str, str], task: SinkTask, target: TargetCluster) -> None:
        """`config` is parsed already; its `topic` is the name, with ${topic} for the topic that is read."""
        self._config = config
        self._task = task
        self._target = target
        self._pattern = JavaPattern(config.get("topics.regex", "").strip() or "(?!)")
        self._same = config["partitions"] == "same"
        self._internal = InternalTopics(task.worker)
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def name(self, topic: str, producer: RunProducer, last: int) -> str:
        """Returns the target topic; creates it if it is missing, and extends it as its source has grown. `last` is the
        highest partition to write if partitions stay the same. Raises ConnectError when it cannot be written as
        configured, FewPartitions if it lacks that partition."""
        name = self._names.get(topic)
        if name is None:
            name = self._meet(topic, producer)
            self._names[topic] = name
        if self._same and last >= self._counts[topic]:
            self._grow(topic, name, producer, last)
        return name

    def _meet(self, topic: str, producer: RunProducer) -> str:
        name = target_name(self._config["topic"], topic)
        if self._internal.has(name):
            raise RunFailure(CONFIG_INVALID, InternalTopics.why(name), retriable=False)
        cluster, partitions = self._source(topic)
        if cluster == producer.cluster_id():
            if name == topic:
                raise ConnectError(f"topic {topic} would be copied to itself: `topic` must give another name")
            if self._pattern.matches(name):
                raise ConnectError(f"topics.regex matches {name}, which this connector writes: it would never end")
        default = {"partitions": str(partitions), "replication.factor": "-1"}
        config = {**{f"topic.creation.default.{key}": value for key, value in default.items()}, **self._config}
        ensure_topic(name, producer.partitions, self._target.admin, self._task.worker, config)
        producer.most_message_bytes(name)  # raises where this sink may not write to it
        self._counts[topic] = producer.partitions(name)
        return name

    def _grow(self, topic: str, name: str, producer: RunProducer, last: int) -> None:
        """Extends a topic to its source's number of partitions, once a partition must be written that it lacks."""
        _, count = self._source(topic)
        there = producer.partitions(name, count)
        if there < count:
            try:
                grow_topic(name, count, producer.partitions, self._target.admin)
            except TopicRefused as error:
                raise FewPartitions(
                    f"partition {last}: topic {name} has {there} partition{'s' * (there != 1)}, {topic} has {count}, "
                    f"and the brokers refuse to add some: {error}. Add them, or set partitions=by-key",
                    there,
                ) from error
            there = count
        self._counts[topic] = there

    def _source(self, topic: str) -> tuple[str, int]:
        """Id of the cluster that is read, and how many partitions the topic has there."""
        properties = with_token(consumer_properties(self._task.worker, self._config))
        client = Consumer({**properties, "group.id": sink_group(self._task.worker, self._config, self._task.connector)})
        try:
            metadata = client.list_topics(topic, ASK_SECONDS)
        finally:
            client.close()
        topic_metadata = metadata.topics[topic]
        if topic_metadata.error is not None:
            raise RunFailure("BROKER_LOST", f"topic {topic}: {topic_metadata.error}")
        return metadata.cluster_id, len(topic_metadata.partitions)


async def source_cluster(properties: Mapping[str, str]) -> str:
    """The id of the Kafka cluster behind these properties of Java's clients. Raises Unavailable, Unauthenticated."""
    async with admin_client(properties, client_id="connector-source-cluster") as admin:
        try:
            return str((await admin.describe_cluster())["cluster_id"])
        except (ClientError, OSError) as error:
            raise Unavailable(f"no broker reports the cluster's id: {error!r}") from None


def target_name(template: str, topic: str) -> str:
    """The target topic's name."""
    return template.replace("${topic}", topic)
