"""A user whose rights a test takes away, of a broker with access rules."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from keelman.kafka.security.jaas import PLAIN
from support.brokers.secure_broker import SECRET, USER, SecureBroker

_ABOUT = (ResourcePatternType.LITERAL, f"User:{USER}", "*")


def limited(broker: SecureBroker) -> dict[str, str]:
    """The properties by which that user reaches the broker, in Java's form; the plain listener has no access rules."""
    return {
        "bootstrap.servers": broker.at("SASL"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="{USER}" password="{SECRET}";',
    }


def allow_only(bootstrap: str, topic: str, *operations: AclOperation) -> None:
    """The user may do nothing else with the topic from now on; a resource without rules is open to all."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    bindings = [
        AclBinding(ResourceType.TOPIC, topic, *_ABOUT, operation, AclPermissionType.ALLOW) for operation in operations
    ]
    for answer in admin.create_acls(bindings).values():
        answer.result(300)


def allow_all(bootstrap: str, topic: str) -> None:
    """The user may do everything with the topic again."""
    which = AclBindingFilter(ResourceType.TOPIC, topic, *_ABOUT, AclOperation.ANY, AclPermissionType.ANY)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (answer,) = admin.delete_acls([which]).values()
    assert answer.result(300)
