"""Reads and changes the access rules (ACLs) of a Kafka cluster.

Sources: KIP-290 and the codes in `AclOperation.java`, `AclPermissionType.java`, `PatternType.java` and
`ResourceType.java` of https://github.com/apache/kafka/tree/4.3/clients/src/main/java/org/apache/kafka/common
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from keelman.kafka.clients import no_broker
from keelman.kafka.leaders.client import LeaderClient, answer_of_any, open_client
from keelman.kafka.security.pattern_types import LITERAL, PREFIXED
from keelman.kafka.topic_brokers import refusal
from keelman.model.errors import FailedPrecondition

CLIENT = "keelman-access"
AT_ONCE = 500
"""The most rules in one request."""
ANY_HOST = "*"
ALLOW, DENY = "ALLOW", "DENY"
_ANY = 1
_RESOURCES = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5, "DELEGATION_TOKEN": 6, "USER": 7}
_PATTERNS = {LITERAL: 3, PREFIXED: 4}
_OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12, "CREATE_TOKENS": 13, "DESCRIBE_TOKENS": 14,
}  # fmt: skip
_PERMISSIONS = {DENY: 2, ALLOW: 3}
_Row: TypeAlias = tuple[int, str, int, str, str, int, int]


@dataclass(frozen=True, slots=True, order=True)
class AccessBinding:
    """A rule for a principal such as User:CN=demo, from any host: one operation on the resources of one name, or of all
    names that begin so. The words are Kafka's."""

    principal: str
    resource: str
    name: str
    pattern: str
    operation: str
    permission: str = ALLOW

    def row(self) -> _Row:
        """Returns the rule as requests have it."""
        return (
            _RESOURCES[self.resource], self.name, _PATTERNS[self.pattern], self.principal, ANY_HOST,
            _OPERATIONS[self.operation], _PERMISSIONS[self.permission],
        )  # fmt: skip


class _Create(CreateAclsRequest):  # type: ignore[misc]
    """Creates several rules; the library's request has one."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(list(self._rows))


class _Delete(DeleteAclsRequest):  # type: ignore[misc]
    """Deletes several rules; the library's request has one."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(list(self._rows))


class AccessControl:
    """Opened with `open`. Its methods raise Unavailable when no broker answers (a retry may help), PermissionDenied
    without ALTER and DESCRIBE on the cluster, and FailedPrecondition for other refusals, such as brokers without an
    authorizer."""

    def __init__(self, client: LeaderClient, properties: Mapping[str, str]) -> None:
        self._client = client
        self._properties = properties

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: Mapping[str, str], *, answer_seconds: float = 10.0) -> AsyncIterator[AccessControl]:
        """Yields an open client. `properties` are Java's. Raises Unavailable, Unauthenticated, InvalidArgument."""
        client = await open_client(properties, client_id=CLIENT, timeout_ms=int(answer_seconds * 1000))
        try:
            yield AccessControl(client, properties)
        finally:
            await client.close()

    async def bindings(self) -> set[AccessBinding]:
        """Returns all rules for any host, but for those of resources or operations that are not known here."""
        request = DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)
        with self._errors():
            answer = await answer_of_any(self._client, request)
        if answer.error_code:
            raise refusal("the access rules cannot be read", answer.error_code, answer.error_message)
        return set(_read(answer.resources))

    async def create(self, bindings: Collection[AccessBinding]) -> None:
        """Creates rules; those that exist stay as they are."""
        for rows in _portions(bindings):
            with self._errors():
                answer = await answer_of_any(self._client, _Create(rows))
            for (code, message), row in zip(answer.creation_responses, rows, strict=True):
                if code:
                    raise refusal(f"an access rule for {row[3]} on {row[1]} cannot be created", code, message)

    async def delete(self, bindings: Collection[AccessBinding]) -> None:
        """Deletes rules; those that do not exist are passed over."""
        for rows in _portions(bindings):
            with self._errors():
                answer = await answer_of_any(self._client, _Delete(rows))
            for (code, message, _deleted), row in zip(answer.filter_responses, rows, strict=True):
                if code:
                    raise refusal(f"an access rule for {row[3]} on {row[1]} cannot be deleted", code, message)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except IncompatibleBrokerVersion as error:
            raise FailedPrecondition(f"the brokers are too old: {error}", reason="BROKERS_TOO_OLD") from None
        except (KafkaError, OSError, TimeoutError) as error:
            raise no_broker(self._properties, error) from None


def _read(resources: Any) -> Iterator[AccessBinding]:
    kinds, patterns = _words(_RESOURCES), _words(_PATTERNS)
    operations, permissions = _words(_OPERATIONS), _words(_PERMISSIONS)
    for kind, name, pattern, rules in resources:
        for principal, host, operation, permission in rules:
            words = kinds.get(kind), patterns.get(pattern), operations.get(operation), permissions.get(permission)
            if host == ANY_HOST and all(words):
                yield AccessBinding(principal, str(words[0]), name, str(words[1]), str(words[2]), str(words[3]))


def _words(codes: Mapping[str, int]) -> dict[int, str]:
    return {code: word for word, code in codes.items()}


def _portions(bindings: Collection[AccessBinding]) -> list[list[_Row]]:
    rows = [binding.row() for binding in sorted(bindings)]
    return [rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE)]
