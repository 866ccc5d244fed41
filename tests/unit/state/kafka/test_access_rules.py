"""The access rules of managed brokers: what worker clusters may do, and what is denied to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from keelman.kafka.access_control import ALLOW, DENY, AccessBinding
from keelman.kafka.security.pattern_types import LITERAL, PREFIXED
from keelman.model.cluster import (
    BrokerAccess,
    BrokerCluster,
    BrokerTls,
    ClusterGoal,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.state.kafka.access_rules import EVERYONE, broker_properties, changes, reports_identity, worker_identity

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def workers(name: str, uid: str = "", **spec: object) -> WorkerCluster:
    new_spec = WorkerClusterSpec("default", **spec)  # type: ignore[arg-type]
    return WorkerCluster(name, uid or f"uid-of-{name}", NOW, NOW, 1, "", ClusterGoal.RUNNING, new_spec)


def applied(*users: WorkerCluster, present: Iterable[AccessBinding] = ()) -> set[AccessBinding]:
    found = changes("default", users, present)
    assert not found.create & found.delete
    return ({*present} - found.delete) | found.create


def is_allowed(rules: Iterable[AccessBinding], user: WorkerCluster, resource: str, name: str, operation: str) -> bool:
    """Decides as Kafka's StandardAuthorizer does: a rule that denies counts more than all that allow."""
    principals = {worker_identity(user).principal, EVERYONE}
    permissions = {
        rule.permission
        for rule in rules
        if rule.principal in principals
        and rule.resource == resource
        and (rule.name in (name, "*") if rule.pattern == LITERAL else name.startswith(rule.name))
        and rule.operation in ("ALL", operation)
    }
    return DENY not in permissions and ALLOW in permissions


A, B = workers("a"), workers("b")
OWN = [
    ("TOPIC", "a.connect-configs", "WRITE"),
    ("TOPIC", "a.connect-offsets", "READ"),
    ("GROUP", "keelman-a", "READ"),
    ("TRANSACTIONAL_ID", "connect-cluster-keelman-a", "WRITE"),
    ("TRANSACTIONAL_ID", "keelman-a-from-file-0", "WRITE"),
]


def test_a_cluster_has_its_own_names_and_the_topics_of_users() -> None:
    rules = applied(A, B)
    for resource, name, operation in [
        *OWN,
        ("TOPIC", "orders", "WRITE"),
        ("TOPIC", "__debezium-heartbeat.x", "WRITE"),
        ("GROUP", "connect-out", "READ"),
    ]:
        assert is_allowed(rules, A, resource, name, operation), name
    for resource, name, operation in OWN:
        assert not is_allowed(rules, B, resource, name, operation), name


@pytest.mark.parametrize(
    "topic", ["keelman.events.worker_cluster", "keelman.audit.v1", "keelman.reports.worker", "__consumer_offsets"]
)
def test_internal_topics_are_denied(topic: str) -> None:
    for user in (A, replace(A, spec=replace(A.spec, allowed_topics=("*",)))):
        assert not is_allowed(applied(user), user, "TOPIC", topic, "READ")


def test_allowed_topics_and_groups_narrow_it() -> None:
    narrow = workers("a", allowed_topics=("orders-*", "one"), allowed_groups=("mine",))
    rules = applied(narrow, B)
    for resource, name in [("TOPIC", "orders-1"), ("TOPIC", "one"), ("GROUP", "mine")]:
        assert is_allowed(rules, narrow, resource, name, "READ"), name
    for resource, name in [("TOPIC", "one-more"), ("TOPIC", "x"), ("GROUP", "connect-out"), ("GROUP", "mine-2")]:
        assert not is_allowed(rules, narrow, resource, name, "READ"), name
    assert all(is_allowed(rules, narrow, *own) for own in OWN)
    assert not [
        rule for rule in rules if rule.permission == DENY and rule.principal == worker_identity(narrow).principal
    ]


def test_narrowed_clusters_may_mirror() -> None:
    narrow = workers("a", allowed_topics=("orders",))
    rules = applied(narrow, B)
    for name, operation in [
        ("mm2-offset-syncs.there.internal", "CREATE"),
        ("mm2-offset-syncs.there.internal", "WRITE"),
        ("heartbeats", "READ"),
        ("heartbeats", "DESCRIBE_CONFIGS"),
    ]:
        assert is_allowed(rules, narrow, "TOPIC", name, operation), name
    for name, operation in [("mm2-offset-syncs.there.internal", "READ"), ("heartbeats", "WRITE"), ("heart", "READ")]:
        assert not is_allowed(rules, narrow, "TOPIC", name, operation), name
    without = applied(B, present=rules)
    assert is_allowed(without, B, "TOPIC", "heartbeats", "WRITE"), "it is closed with the storage topics of the deleted"
    assert not is_allowed(without, B, "TOPIC", "a.connect-status", "READ")


def test_names_that_begin_as_ones_own_are_still_another_clusters() -> None:
    longer = workers("a-2")
    rules = applied(A, longer)
    assert is_allowed(rules, longer, "TRANSACTIONAL_ID", "keelman-a-2-x-0", "WRITE")
    assert not is_allowed(rules, A, "TRANSACTIONAL_ID", "keelman-a-2-x-0", "WRITE")
    assert is_allowed(rules, A, "TRANSACTIONAL_ID", "keelman-a-x-0", "WRITE")
    usual = workers("usual", properties={"group.id": "connect-cluster"})
    assert is_allowed(applied(A, usual), A, "TRANSACTIONAL_ID", "connect-cluster-keelman-a", "WRITE")


def test_a_shared_offset_topic_is_denied_to_neither() -> None:
    sharing = [
        workers(name, shared_offset_topic=True, properties={"offset.storage.topic": "shared"}) for name in ("a", "b")
    ]
    rules = applied(*sharing)
    assert all(is_allowed(rules, user, "TOPIC", "shared", "WRITE") for user in sharing)


def test_topics_of_a_deleted_cluster_are_closed_until_one_of_its_name_comes() -> None:
    both = applied(A, B)
    without = applied(B, present=both)
    assert not [rule for rule in without if rule.principal == worker_identity(A).principal]
    assert not is_allowed(without, B, "TOPIC", "a.connect-configs", "READ")
    assert applied(B, present=without) == without
    later = workers("a", uid="another")
    again = applied(B, later, present=without)
    assert is_allowed(again, later, "TOPIC", "a.connect-configs", "READ")
    assert not is_allowed(again, A, "TOPIC", "a.connect-configs", "READ"), "its certificate is of the former cluster"
    assert not is_allowed(again, B, "TOPIC", "a.connect-configs", "READ")


def test_rules_of_others_stay() -> None:
    others = {
        AccessBinding("User:CN=me", "TOPIC", "x", LITERAL, "READ"),
        AccessBinding("User:*", "TOPIC", "open-", PREFIXED, "READ"),
        AccessBinding("User:*", "GROUP", "g", LITERAL, "ALL", DENY),
    }
    found = changes("default", [A], others)
    assert not found.delete
    assert changes("default", [A], others | found.create).create == frozenset()


def test_reports_are_written_by_a_principal_that_may_do_nothing_else() -> None:
    rules = {rule for rule in applied(A) if rule.principal == reports_identity("default").principal}
    assert rules == {
        AccessBinding("User:CN=reports/default", "TOPIC", "keelman.reports.", PREFIXED, operation)
        for operation in ("CREATE", "WRITE")
    }


def test_brokers_know_each_other_as_one_principal_and_keep_the_users_super_users() -> None:
    spec = ManagedBrokers(("n1",), {"super.users": "User:CN=me"}, tls=BrokerTls.MUTUAL, access=BrokerAccess.RULES)
    cluster = BrokerCluster("default", "u", NOW, NOW, 1, "", ClusterGoal.RUNNING, spec)
    assert broker_properties(cluster, spec) == {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "ssl.principal.mapping.rules": r"RULE:^CN=broker\/.*$/broker/,DEFAULT",
        "super.users": "User:broker;User:CN=client/default;User:CN=me",
    }
    assert broker_properties(cluster, replace(spec, access=BrokerAccess.OPEN)) == {}
