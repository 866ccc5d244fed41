"""Decides the access rules of managed brokers: what each worker cluster, and writers of reports, may do. Pure.

A worker cluster may use its own group, storage topics and transactional ids, and the topics and groups that its spec
allows. Kafka has no "all but": where an allowed pattern means names of others, rules that deny those are added, and a
denying rule counts more than any that allows. The storage topics of deleted clusters, which stay, are denied to all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from keelman.kafka.access_control import ALLOW, DENY, AccessBinding
from keelman.kafka.security.pattern_types import LITERAL, PREFIXED
from keelman.model.cluster import BrokerCluster, ClusterGoal, ManagedBrokers, WorkerCluster
from keelman.model.log_delivery import targets_of
from keelman.rpc.identity import Identity, IdentityKind
from keelman.state.kafka.properties import group_of
from keelman.workers.access_rules import REPORTS, SINKS, AccessRule, own_rules, pattern_rule

ALL, EVERYONE, ALL_NAMES = "ALL", "User:*", "*"
CLUSTER = AccessRule("CLUSTER", "kafka-cluster", LITERAL, ("DESCRIBE_CONFIGS",))
"""By it workers know how long brokers keep the offsets of idle sinks."""
OF_KAFKA = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
"""Topics of Kafka's brokers."""
INTERNAL = (
    *(AccessRule("TOPIC", f"keelman.{kind}.", PREFIXED, (ALL,)) for kind in ("events", "audit", "reports")),
    *(AccessRule("TOPIC", name, LITERAL, (ALL,)) for name in OF_KAFKA),
)
"""The rules for topics of keelman and of Kafka."""
HEARTBEATS = "heartbeats"
MIRRORS = (
    AccessRule("TOPIC", "mm2-offset-syncs.", PREFIXED, ("CREATE", "WRITE")),
    AccessRule("TOPIC", HEARTBEATS, LITERAL, ("READ", "DESCRIBE_CONFIGS")),
)
"""The rules for topics that a mirror uses beside those that it copies: its own, and MirrorMaker 2's heartbeats."""
REPLAYS, LOGS = "keelman-replay-", "keelman-logs-"
"""Beginnings of the names by which dead letters are replayed, and logs delivered to a topic."""
STORAGE_MARK = "DESCRIBE_CONFIGS"
"""An operation that a worker cluster is allowed on single topics only if they are its storage topics, or heartbeats."""


def worker_identity(cluster: WorkerCluster) -> Identity:
    """Returns the holder of a worker cluster's certificate. With its uid: a later cluster of its name is another."""
    return Identity(IdentityKind.WORKER, f"{cluster.name}.{cluster.uid}")


def reports_identity(broker_cluster: str) -> Identity:
    """Returns the holder of the certificate by which reports are written to a broker cluster."""
    return Identity(IdentityKind.REPORTS, broker_cluster)


def has_running_rules(cluster: BrokerCluster) -> bool:
    """Returns whether keelman keeps the access rules of these brokers, and they run."""
    return isinstance(cluster.spec, ManagedBrokers) and cluster.spec.has_rules and cluster.goal is ClusterGoal.RUNNING


AUTHORIZER, SUPER_USERS = "authorizer.class.name", "super.users"
OTHER_RULES = (AUTHORIZER, "ssl.principal.mapping.rules", "principal.builder.class", "allow.everyone.if.no.acl.found")
"""Properties of brokers by which users arrange access themselves."""


def broker_properties(cluster: BrokerCluster, spec: ManagedBrokers) -> dict[str, str]:
    """Returns the properties of brokers with access rules: brokers and the state service may do all, and those whom the
    user's `super.users` name; all others what a rule allows. Empty for open brokers.

    The certificates of all brokers become one principal, so that another broker needs no change of the others. Source:
    https://kafka.apache.org/documentation/#security_authz
    """
    if not spec.has_rules:
        return {}
    own = Identity(IdentityKind.CLIENT, cluster.name).principal
    users = spec.properties.get(SUPER_USERS, "")
    return {
        AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "ssl.principal.mapping.rules": rf"RULE:^CN={IdentityKind.BROKER}\/.*$/{IdentityKind.BROKER}/,DEFAULT",
        SUPER_USERS: ";".join(filter(None, (f"User:{IdentityKind.BROKER}", own, users))),
    }


@dataclass(frozen=True, slots=True)
class AccessChanges:
    """The rules to create, which comes first, and to delete."""

    create: frozenset[AccessBinding]
    delete: frozenset[AccessBinding]


def changes(broker_cluster: str, users: Iterable[WorkerCluster], present: Iterable[AccessBinding]) -> AccessChanges:
    """Returns the changes from the present rules of a broker cluster to those of its worker clusters. Rules for other
    principals are not touched."""
    users, now = list(users), {binding for binding in present if _is_ours(binding)}
    wanted = {binding for user in users for binding in _of_user(user, users)}
    wanted |= _bindings(reports_identity(broker_cluster).principal, [_reports()], ALLOW)
    wanted |= _closed(users, now)
    return AccessChanges(frozenset(wanted - now), frozenset(now - wanted))


def _is_ours(binding: AccessBinding) -> bool:
    ours = tuple(Identity(kind, "").principal for kind in (IdentityKind.WORKER, IdentityKind.REPORTS))
    return binding.principal.startswith(ours) or _closes(binding)


def _closes(binding: AccessBinding) -> bool:
    """Returns whether a rule denies one topic to all, as those of deleted worker clusters."""
    named = (binding.principal, binding.resource, binding.pattern, binding.operation, binding.permission)
    return named == (EVERYONE, "TOPIC", LITERAL, ALL, DENY)


def _of_user(user: WorkerCluster, users: Iterable[WorkerCluster]) -> Iterator[AccessBinding]:
    own = _own(user)
    topics = [pattern_rule("TOPIC", topic, (ALL,)) for topic in user.spec.allowed_topics or (ALL_NAMES,)]
    if user.spec.allowed_topics:
        topics += MIRRORS
    groups = [pattern_rule("GROUP", group, (ALL,)) for group in user.spec.allowed_groups or (SINKS,)]
    allowed = [*own, *topics, *groups, *_writers(REPLAYS), CLUSTER]
    if log_topic := targets_of(user.spec.log_delivery, user.name, "", "").topic:
        allowed += [*_writers(LOGS), AccessRule("TOPIC", log_topic, LITERAL, ("CREATE", "WRITE"))]
    others = [*INTERNAL, *(rule for other in users if other.uid != user.uid for rule in _own(other))]
    denied = [rule for rule in others if not _is_same(rule, own) and any(_means(mine, rule) for mine in allowed)]
    principal = worker_identity(user).principal
    yield from _bindings(principal, allowed, ALLOW)
    yield from _bindings(principal, [AccessRule(r.resource, r.name, r.pattern, (ALL,)) for r in denied], DENY)


def _own(user: WorkerCluster) -> list[AccessRule]:
    return list(own_rules(user.name, group_of(user.name, user.spec.properties), user.spec.properties))


def _writers(beginning: str) -> list[AccessRule]:
    """Returns the rules for writers whose group and transactional id have one name with this beginning."""
    return [
        AccessRule("GROUP", beginning, PREFIXED, ("READ",)),
        AccessRule("TRANSACTIONAL_ID", beginning, PREFIXED, ("WRITE",)),
    ]


def _is_same(rule: AccessRule, own: Iterable[AccessRule]) -> bool:
    """Returns whether a name of another is one's own, too: worker clusters may share their offset topic."""
    return any((rule.resource, rule.name, rule.pattern) == (mine.resource, mine.name, mine.pattern) for mine in own)


def _means(allowed: AccessRule, other: AccessRule) -> bool:
    """Returns whether an allowed pattern means all names of another rule. A name of one's own within another's pattern
    stays allowed: a rule that denied the pattern would deny it, too."""
    if allowed.resource != other.resource:
        return False
    if allowed.pattern == LITERAL:
        return allowed.name in (ALL_NAMES, other.name)
    return other.name.startswith(allowed.name)


def _closed(users: Iterable[WorkerCluster], now: Iterable[AccessBinding]) -> set[AccessBinding]:
    """Returns the rules that deny to all the storage topics of worker clusters that had rules, and are gone."""
    topics = {rule.name for user in users for rule in _own(user) if rule.resource == "TOPIC"}
    left = {binding.name for binding in now if _closes(binding) or _marks_storage(binding)}
    rules = [AccessRule("TOPIC", topic, LITERAL, (ALL,)) for topic in left - topics]
    return _bindings(EVERYONE, rules, DENY)


def _marks_storage(binding: AccessBinding) -> bool:
    """Returns whether a rule allows a worker cluster what it is allowed on its storage topics alone."""
    named = (binding.permission, binding.resource, binding.pattern, binding.operation)
    return named == (ALLOW, "TOPIC", LITERAL, STORAGE_MARK) and binding.name != HEARTBEATS


def _reports() -> AccessRule:
    return AccessRule("TOPIC", REPORTS, PREFIXED, ("CREATE", "WRITE"))


def _bindings(principal: str, rules: Iterable[AccessRule], permission: str) -> set[AccessBinding]:
    return {
        AccessBinding(principal, rule.resource, rule.name, rule.pattern, operation, permission)
        for rule in rules
        for operation in rule.operations
    }
