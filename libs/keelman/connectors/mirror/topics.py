"""Creates, extends and configures copies of topics like their source topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, admin

from keelman.connect.errors import RetriableConnectError
from keelman.connect.records import TopicPartition
from keelman.connect.topic_plan import TopicPlan
from keelman.connectors.mirror.clusters import Acls, KnownConfigs, View
from keelman.connectors.mirror.config import Side
from keelman.connectors.mirror.policy import TopicChoice, matcher
from keelman.engine.failure import TopicRefused
from keelman.runtime.logs.logging import get_logger

_log = get_logger()


@dataclass(slots=True)
class TopicChanges:
    """The changes that make copies like their source topics; false without changes."""

    syncs: list[admin.NewTopic] = field(default_factory=list)  # in the cluster that `offset-syncs.topic.location` names
    topics: list[admin.NewTopic] = field(default_factory=list)  # in the target cluster, as all others
    partitions: list[admin.NewPartitions] = field(default_factory=list)
    configs: list[admin.ConfigResource] = field(default_factory=list)
    acls: list[admin.AclBinding] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.syncs, self.topics, self.partitions, self.configs, self.acls))


class MirrorTopics:
    """One look at both clusters. All its calls block and raise RetriableConnectError when a cluster does not answer,
    Unauthenticated or Unavailable when there is no token for it."""

    def __init__(
        self, parsed: Mapping[str, Any], at: Callable[[Side], View], only: Collection[str] | None = None
    ) -> None:
        """`parsed` is the connector's configuration, `at` returns the view of a side's cluster, the same one each time,
        and may raise ConfigValueError. With `only` the existing copies of these topics are tended, and none is
        created."""
        self._parsed = parsed
        self._choice = TopicChoice(parsed)
        self._seconds = parsed["admin.timeout.ms"] / 1000
        self._excluded = matcher(parsed["config.properties.exclude"])
        self._at = at
        self.only = only

    def partitions(self) -> list[TopicPartition]:
        """Returns the partitions to mirror, in the order of topics and partitions."""
        partition_counts = self._partition_counts("source")
        return [
            TopicPartition(topic, number)
            for topic in self._chosen(partition_counts)
            for number in range(partition_counts[topic])
        ]

    def plan(self, topic: str) -> TopicPlan:
        """Returns the plan for the copy of a source topic."""
        planned = self._planned([topic], self._partition_counts("source"))
        if topic not in planned:
            raise TopicRefused(
                f"the source cluster does not let its configuration be read (DESCRIBE_CONFIGS on {topic})"
            )
        return planned[topic]

    def tend(self) -> None:
        """Creates missing copies, and gives copies their topics' partition counts, configurations and ACLs."""
        changes = self.changes()
        target = self._at("target").client
        syncs = self._at("source" if self._syncs_here else "target").client
        for client, topics in (syncs, changes.syncs), (target, changes.topics):
            for new in topics:  # one by one: a controller refuses too many partitions at once
                futures = client.create_topics([new], request_timeout=self._seconds)
                self._each("create topic", futures)
        for more in changes.partitions:
            self._each("create partitions of", target.create_partitions([more]))
        if changes.configs:
            self._each("configure", target.incremental_alter_configs(changes.configs))
        if changes.acls:
            self._each("create ACL", target.create_acls(changes.acls))

    def changes(self) -> TopicChanges:
        """Returns the changes that `tend` would make now."""
        here = self._partition_counts("source")
        there = here if self._at("source") is self._at("target") else self._partition_counts("target")
        copies = self._copies(here)
        present = {topic: remote for topic, remote in copies.items() if remote in there}
        changes = TopicChanges()
        if self.only is None:
            changes.syncs = self._new_syncs_topic(here if self._syncs_here else there)
            for topic, plan in self._planned([topic for topic in copies if topic not in present], here).items():
                new = admin.NewTopic(copies[topic], plan.partitions, plan.replication_factor, config=dict(plan.config))
                changes.topics.append(new)
            grown = [topic for topic, remote in present.items() if here[topic] > there[remote]]
            changes.partitions = [admin.NewPartitions(present[topic], here[topic]) for topic in grown]
        if self._parsed["sync.topic.configs.enabled"]:
            changes.configs = self._config_changes(present)
        if self._parsed["sync.topic.acls.enabled"]:
            changes.acls = self._acl_changes(copies if self.only is None else present)
        return changes

    def compared(self) -> Mapping[Side, Iterable[str]]:
        """Returns the topics whose configurations `changes` needs."""
        if not self._parsed["sync.topic.configs.enabled"]:
            return {}
        there = self._partition_counts("target")
        copies = {t: remote for t, remote in self._copies(self._partition_counts("source")).items() if remote in there}
        return {"source": copies.keys(), "target": copies.values()}

    def _copies(self, here: Mapping[str, int]) -> dict[str, str]:
        """Returns the copies' names by their topics' names."""
        alias, only = self._parsed["source.cluster.alias"], self.only
        topics = [topic for topic in self._chosen(here) if only is None or topic in only]
        return {topic: self._choice.policy.remote_topic(alias, topic) for topic in topics}

    def _planned(self, topics: list[str], counts: Mapping[str, int]) -> dict[str, TopicPlan]:
        """Returns the plans for copies of these topics, without topics whose configuration may not be read: a copy
        without it could lose records that its topic keeps."""
        if not topics:
            return {}
        configs = self._configs("source", topics)
        plans = {
            topic: {e.name: e.value for e in config.values() if self._replicated(e) and self._set_at_start(e)}
            for topic, config in configs.items()
            if config is not None
        }
        planned = [topic for topic in topics if topic in plans or topic not in configs]
        factor = self._parsed["replication.factor"]
        return {topic: TopicPlan(counts.get(topic, -1), factor, plans.get(topic, {})) for topic in planned}

    @property
    def _syncs_here(self) -> bool:
        return bool(self._parsed["offset-syncs.topic.location"] == "source")

    def _new_syncs_topic(self, existing: Mapping[str, int]) -> list[admin.NewTopic]:
        other = self._parsed["target.cluster.alias" if self._syncs_here else "source.cluster.alias"]
        name = self._choice.policy.offset_syncs_topic(other)
        if not self._parsed["emit.offset-syncs.enabled"] or name in existing:
            return []
        replicas = self._parsed["offset-syncs.topic.replication.factor"]
        return [admin.NewTopic(name, 1, replicas, config={"cleanup.policy": "compact"})]

    def _config_changes(self, copies: Mapping[str, str]) -> list[admin.ConfigResource]:
        if not copies:
            return []
        here = self._configs("source", list(copies))
        there = self._configs("target", list(copies.values()))
        changed = []
        for topic, remote in copies.items():
            of_topic, of_copy = here.get(topic), there.get(remote)
            if of_topic is None or of_copy is None:
                continue  # gone meanwhile, or not readable
            entries = [e for e in (self._change(e, of_copy) for e in of_topic.values()) if e is not None]
            if entries:
                changed.append(admin.ConfigResource(admin.ResourceType.TOPIC, remote, incremental_configs=entries))
        return changed

    def _change(self, entry: admin.ConfigEntry, there: Mapping[str, admin.ConfigEntry]) -> admin.ConfigEntry | None:
        other = there.get(entry.name)
        if other is not None and (entry.value, entry.source) == (other.value, other.source):
            return None  # nearly all entries are equal
        if not self._replicated(entry):
            return None
        if self._set_at_start(entry):
            same = other is not None and other.value == entry.value
            operation = admin.AlterConfigOpType.SET
        else:
            same = other is None or other.source != admin.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            operation = admin.AlterConfigOpType.DELETE
        return None if same else admin.ConfigEntry(entry.name, entry.value, incremental_operation=operation)

    def _replicated(self, entry: admin.ConfigEntry) -> bool:
        hidden = (
            entry.is_read_only or entry.is_sensitive or entry.source == admin.ConfigSource.STATIC_BROKER_CONFIG.value
        )
        return not hidden and not self._excluded(entry.name)

    def _set_at_start(self, entry: admin.ConfigEntry) -> bool:
        return not entry.is_default or self._parsed["use.defaults.from"] == "source"

    def _acl_changes(self, copies: Mapping[str, str]) -> list[admin.AclBinding]:
        here = self._acls("source") or {}
        expected = {
            remote: {_copied(acl, remote) for acl in here.get(t, ()) if _has_copy(acl)} for t, remote in copies.items()
        }
        there = self._acls("target") if any(expected.values()) else None
        return (
            [] if there is None else [a for remote, acls in expected.items() for a in acls - there.get(remote, set())]
        )

    def _acls(self, side: Side) -> Acls | None:
        """Returns a cluster's ACLs, none if we may not see them; None if the cluster has no authorizer. As with
        MirrorMaker, ACLs that may not be seen do not keep topics from being mirrored."""
        try:
            return self._at(side).acls(self._seconds)
        except KafkaException as error:
            problem = error.args[0]
            if problem.code() == KafkaError.SECURITY_DISABLED:
                return None
            if problem.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                if side == "source":
                    _log.warning("mirror_acls_refused", cluster=side, error="DESCRIBE on the cluster is not allowed")
                return {}
            raise RetriableConnectError(f"describe ACLs on {side} cluster: {problem.str()}") from error

    def _partition_counts(self, side: Side) -> Mapping[str, int]:
        try:
            return self._at(side).partition_counts(self._seconds)
        except KafkaException as error:
            raise RetriableConnectError(f"list topics on {side} cluster: {error.args[0].str()}") from error

    def _chosen(self, counts: Mapping[str, int]) -> Sequence[str]:
        """Returns the source cluster's topics to mirror, sorted."""
        choice = self._choice
        return self._at("source").chosen(counts, choice.key, lambda: sorted(filter(choice.wanted, counts)))

    def _configs(self, side: Side, topics: list[str]) -> KnownConfigs:
        try:
            configs = self._at(side).configs(topics, self._seconds)
        except KafkaException as error:
            raise RetriableConnectError(f"describe configs on {side} cluster: {error.args[0].str()}") from error
        for topic in [topic for topic, config in configs.items() if config is None]:
            what = f"describe the configuration on the {side} cluster of"
            _log.warning("mirror_topic_refused", what=what, topic=topic, error="DESCRIBE_CONFIGS is not allowed")
        return configs

    @staticmethod
    def _each(what: str, answers: Mapping[Any, Any]) -> None:
        """Logs refusals: a refusal for one topic must not keep the others from being mirrored."""
        for name, answer in answers.items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() not in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
                    subject = getattr(name, "name", name)
                    _log.warning("mirror_topic_refused", what=what, topic=subject, error=error.args[0].str())


def _has_copy(acl: admin.AclBinding) -> bool:
    """Returns whether an ACL is copied: permissions to write are not, because only the mirror writes to a copy."""
    return not (acl.permission_type is admin.AclPermissionType.ALLOW and acl.operation is admin.AclOperation.WRITE)


def _copied(acl: admin.AclBinding, remote: str) -> admin.AclBinding:
    everything = acl.permission_type is admin.AclPermissionType.ALLOW and acl.operation is admin.AclOperation.ALL
    operation = admin.AclOperation.READ if everything else acl.operation
    pattern = admin.ResourcePatternType.LITERAL
    return admin.AclBinding(
        admin.ResourceType.TOPIC, remote, pattern, acl.principal, acl.host, operation, acl.permission_type
    )
