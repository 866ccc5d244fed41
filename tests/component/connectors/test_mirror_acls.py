"""A mirror gives the copies the ACLs of their topics, and gives no user the right to write to them."""

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from keelman.connectors.mirror.source import MirrorSource
from support.brokers.secure_broker import SecureBroker
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = pytest.mark.component
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def acl(topic: str, who: str, operation: AclOperation, permission: AclPermissionType = ALLOW) -> AclBinding:
    pattern = ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, pattern, f"User:{who}", "*", operation, permission)


def test_copies_have_the_acls_of_their_topics(broker: SecureBroker) -> None:
    servers = broker.at("PLAINTEXT")
    admin = AdminClient({"bootstrap.servers": servers})
    create_topic(servers, "orders", 1)
    values = [
        acl("orders", "reader", AclOperation.READ),
        acl("orders", "owner", AclOperation.ALL),
        acl("orders", "owner", AclOperation.READ),  # which its other one is, too, for the copy
        acl("orders", "writer", AclOperation.WRITE),
        acl("orders", "banned", AclOperation.WRITE, DENY),
        acl("other", "reader", AclOperation.READ),
    ]
    config = {
        "name": "acls",
        "source.cluster.alias": "there",
        "source.cluster.bootstrap.servers": servers,
        "target.cluster.bootstrap.servers": servers,
        "topics": "orders",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
    }

    def which(topic: str) -> AclBindingFilter:
        pattern = ResourcePatternType.LITERAL
        return AclBindingFilter(ResourceType.TOPIC, topic, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)

    def copied(topic: str = "there.orders") -> set[AclBinding]:
        return set(admin.describe_acls(which(topic)).result(300))

    def settled() -> bool:
        return MirrorSource.settled([(config, tasks)])[0]

    MirrorSource.tend(config)
    tasks = MirrorSource.task_configs(config, 1)
    until(settled, "there is nothing to copy yet")
    for created_acl in admin.create_acls(values).values():
        created_acl.result(300)
    until(lambda: not settled(), "the ACLs are seen")
    MirrorSource.tend(config)
    expected = {
        acl("there.orders", "reader", AclOperation.READ),
        acl("there.orders", "owner", AclOperation.READ),
        acl("there.orders", "banned", AclOperation.WRITE, DENY),
    }
    until(lambda: copied() == expected, "the copy has them")
    until(settled, "that is all")

    create_topic(servers, "other", 1)
    (cleared,) = admin.delete_acls([which("there.orders")]).values()
    assert set(cleared.result(300)) == expected
    config |= {"topics": "orders,other", "refresh.topics.enabled": "false"}
    until(lambda: not settled(), "they are missed")
    assert MirrorSource.tend_again(config, tasks)
    until(lambda: copied() == expected and settled(), "the copy has them again")
    assert copied("there.other") == set(), "it has no copy yet"
    MirrorSource.tend(config)
    until(lambda: copied("there.other") == {acl("there.other", "reader", AclOperation.READ)}, "now it has")
