"""The copies' topics: made, grown and configured like the topics that they are copies of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from keelman.connect.errors import RetriableConnectError
from keelman.connect.plugin import TopicPlan
from keelman.connect.records import TopicPartition
from keelman.connectors.mirror_clusters import CLUSTERS, Cluster
from keelman.connectors.mirror_policy import TopicChoice, matcher
from keelman.runtime.logging import get_logger

_log = get_logger()
_ANYONES = AclBindingFilter(
    ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


class MirrorTopics:
    """One look at both clusters. All its calls block and raise RetriableConnectError when a cluster does not answer."""

    def __init__(self, parsed: Mapping[str, Any], source: Mapping[str, Any], target: Mapping[str, Any]) -> None:
        """`parsed` is the connector's configuration, `source` and `target` the settings of the two admin clients."""
        self._parsed = parsed
        self._choice = TopicChoice(parsed)
        self._seconds = parsed["admin.timeout.ms"] / 1000
        self._excluded = matcher(parsed["config.properties.exclude"])
        self._settings = {"source": source, "target": target}
        self._clusters: dict[str, Cluster] = {}

    def partitions(self) -> list[TopicPartition]:
        """What there is to mirror, in the order of topics and partitions."""
        found = self._partition_counts("source")
        return [TopicPartition(topic, number) for topic in self._chosen(found) for number in range(found[topic])]

    def plan(self, topic: str) -> TopicPlan:
        """How the copy of a topic of the source cluster is to be made."""
        counts = self._partition_counts("source")
        config = self._configs("source", [topic])[topic] if topic in counts else {}
        kept = {e.name: e.value for e in config.values() if self._replicated(e) and self._set_at_start(e)}
        return TopicPlan(counts.get(topic, -1), self._parsed["replication.factor"], kept)

    def tend(self) -> None:
        """Makes missing copies, gives them as many partitions as their topics, and their configurations and ACLs."""
        here = self._partition_counts("source")
        there = here if self._settings["source"] == self._settings["target"] else self._partition_counts("target")
        self._make_syncs_topic(here if self._parsed["offset-syncs.topic.location"] == "source" else there)
        alias = self._parsed["source.cluster.alias"]
        names = {topic: self._choice.policy.remote_topic(alias, topic) for topic in self._chosen(here)}
        for topic, remote in names.items():
            if remote not in there:
                plan = self.plan(topic)
                new = NewTopic(remote, plan.partitions, plan.replication_factor, config=dict(plan.config))
                self._each("create topic", self._client("target").create_topics([new], request_timeout=self._seconds))
            elif here[topic] > there[remote]:
                more = self._client("target").create_partitions([NewPartitions(remote, here[topic])])
                self._each("create partitions of", more)
        if self._parsed["sync.topic.configs.enabled"]:
            self._sync_configs({topic: remote for topic, remote in names.items() if remote in there})
        if self._parsed["sync.topic.acls.enabled"]:
            self._sync_acls(names)

    def _make_syncs_topic(self, existing: Mapping[str, int]) -> None:
        side = self._parsed["offset-syncs.topic.location"]
        other = self._parsed["target.cluster.alias" if side == "source" else "source.cluster.alias"]
        name = self._choice.policy.offset_syncs_topic(other)
        if not self._parsed["emit.offset-syncs.enabled"] or name in existing:
            return
        replicas = self._parsed["offset-syncs.topic.replication.factor"]
        new = NewTopic(name, 1, replicas, config={"cleanup.policy": "compact"})
        self._each("create topic", self._client(side).create_topics([new], request_timeout=self._seconds))

    def _sync_configs(self, names: Mapping[str, str]) -> None:
        if not names:
            return
        here = self._configs("source", list(names))
        there = self._configs("target", list(names.values()))
        changed = []
        for topic, remote in names.items():
            entries = [e for e in (self._change(e, there[remote]) for e in here[topic].values()) if e is not None]
            if entries:
                changed.append(ConfigResource(ResourceType.TOPIC, remote, incremental_configs=entries))
        if changed:
            self._each("configure", self._client("target").incremental_alter_configs(changed))

    def _change(self, entry: ConfigEntry, there: Mapping[str, ConfigEntry]) -> ConfigEntry | None:
        if not self._replicated(entry):
            return None
        other = there.get(entry.name)
        if self._set_at_start(entry):
            same = other is not None and other.value == entry.value
            operation = AlterConfigOpType.SET
        else:
            same = other is None or other.source != ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            operation = AlterConfigOpType.DELETE
        return None if same else ConfigEntry(entry.name, entry.value, incremental_operation=operation)

    def _replicated(self, entry: ConfigEntry) -> bool:
        hidden = entry.is_read_only or entry.is_sensitive or entry.source == ConfigSource.STATIC_BROKER_CONFIG.value
        return not hidden and not self._excluded(entry.name)

    def _set_at_start(self, entry: ConfigEntry) -> bool:
        return not entry.is_default or self._parsed["use.defaults.from"] == "source"

    def _sync_acls(self, names: Mapping[str, str]) -> None:
        try:
            found = self._cluster("source").acls(_ANYONES, self._seconds)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                return
            raise RetriableConnectError(f"describe ACLs on source cluster: {error.args[0].str()}") from error
        copies = [self._acl(acl, names[acl.name]) for acl in found if self._has_copy(acl, names)]
        if copies:
            self._each("create ACL", self._client("target").create_acls(copies))

    @staticmethod
    def _has_copy(acl: AclBinding, names: Mapping[str, str]) -> bool:
        # Nobody but the mirror writes to a copy.
        writes = acl.permission_type is AclPermissionType.ALLOW and acl.operation is AclOperation.WRITE
        return acl.resource_pattern_type is ResourcePatternType.LITERAL and acl.name in names and not writes

    @staticmethod
    def _acl(acl: AclBinding, remote: str) -> AclBinding:
        everything = acl.permission_type is AclPermissionType.ALLOW and acl.operation is AclOperation.ALL
        operation = AclOperation.READ if everything else acl.operation
        return AclBinding(
            ResourceType.TOPIC,
            remote,
            ResourcePatternType.LITERAL,
            acl.principal,
            acl.host,
            operation,
            acl.permission_type,
        )

    def _cluster(self, side: str) -> Cluster:
        if side not in self._clusters:
            self._clusters[side] = CLUSTERS.at(self._settings[side])
        return self._clusters[side]

    def _client(self, side: str) -> AdminClient:
        return self._cluster(side).client

    def _partition_counts(self, side: str) -> Mapping[str, int]:
        try:
            return self._cluster(side).partition_counts(self._seconds)
        except KafkaException as error:
            raise RetriableConnectError(f"list topics on {side} cluster: {error.args[0].str()}") from error

    def _chosen(self, found: Mapping[str, int]) -> Sequence[str]:
        """What is to be mirrored of the source cluster's topics, in their order."""
        choice = self._choice
        return self._cluster("source").chosen(found, choice.key, lambda: sorted(filter(choice.wanted, found)))

    def _configs(self, side: str, topics: list[str]) -> Mapping[str, Mapping[str, ConfigEntry]]:
        try:
            return self._cluster(side).configs(topics, self._seconds)
        except KafkaException as error:
            raise RetriableConnectError(f"describe configs on {side} cluster: {error.args[0].str()}") from error

    @staticmethod
    def _each(what: str, answers: Mapping[Any, Any]) -> None:
        """What one topic is refused must not keep the others from being mirrored."""
        for name, answer in answers.items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() not in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
                    subject = getattr(name, "name", name)
                    _log.warning("mirror_topic_refused", what=what, topic=subject, error=error.args[0].str())
