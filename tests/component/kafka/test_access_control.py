"""Access rules as the brokers have them, beside those that librdkafka's client sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from keelman.kafka.access_control import DENY, AccessBinding, AccessControl
from keelman.kafka.security.pattern_types import LITERAL, PREFIXED
from keelman.model.errors import FailedPrecondition
from support.brokers.secure_broker import secure_broker

pytestmark = pytest.mark.component
RULES = {
    AccessBinding("User:CN=worker/a", "TOPIC", "orders-", PREFIXED, "READ"),
    AccessBinding("User:CN=worker/a", "TOPIC", "*", LITERAL, "ALL"),
    AccessBinding("User:CN=worker/a", "TOPIC", "b.connect-configs", LITERAL, "ALL", DENY),
    AccessBinding("User:ä", "GROUP", "g", LITERAL, "DELETE"),
    AccessBinding("User:*", "CLUSTER", "kafka-cluster", LITERAL, "DESCRIBE_CONFIGS"),
    AccessBinding("User:x", "TRANSACTIONAL_ID", "x-", PREFIXED, "WRITE"),
    *(AccessBinding("User:many", "TOPIC", f"topic-{number}", LITERAL, "WRITE") for number in range(1100)),
}
ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def seen(admin: AdminClient) -> set[AccessBinding]:
    """The rules by another client, which calls the cluster BROKER."""
    return {
        AccessBinding(
            rule.principal,
            rule.restype.name.replace("BROKER", "CLUSTER"),
            rule.name,
            rule.resource_pattern_type.name,
            rule.operation.name,
            rule.permission_type.name,
        )
        for rule in admin.describe_acls(ANY).result(300)
    }


async def test_rules_are_created_read_and_deleted(tmp_path: Path) -> None:
    async with secure_broker(tmp_path / "broker", closed=True) as secured:
        admin = AdminClient({"bootstrap.servers": secured.at("PLAINTEXT")})
        before = seen(admin)
        async with AccessControl.open({"bootstrap.servers": secured.at("PLAINTEXT")}) as control:
            assert await control.bindings() == before
            await control.create(RULES)
            await control.create(RULES)
            assert await control.bindings() == before | RULES == seen(admin)
            gone = {rule for rule in RULES if rule.principal in ("User:many", "User:ä")}
            await control.delete(gone | {AccessBinding("User:none", "TOPIC", "none", LITERAL, "READ")})
            assert await control.bindings() == (before | RULES) - gone == seen(admin)


async def test_brokers_without_an_authorizer_refuse(bootstrap: str) -> None:
    async with AccessControl.open({"bootstrap.servers": bootstrap}) as control:
        with pytest.raises(FailedPrecondition, match=r"the access rules cannot be read: .*[Aa]uthorizer"):
            await control.bindings()
