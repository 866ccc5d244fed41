"""The access rules that the workers of one cluster need on brokers that deny all else. Pure.

`keelman print acls` prints them; docs/operations.md has the same for a cluster of the usual names. Resources, patterns
and operations are named as by kafka-acls.sh (https://kafka.apache.org/documentation/#security_authz_cli).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from keelman.kafka.security.pattern_types import LITERAL, PREFIXED
from keelman.workers.properties.storage_topics import storage_topics_of

SINKS = "connect-*"
"""The groups of sinks, by Kafka Connect's naming."""
REPORTS = "keelman.reports."
"""The beginning of the names of the topics that reports go to."""
_FLAGS = {"GROUP": "--group", "TOPIC": "--topic", "TRANSACTIONAL_ID": "--transactional-id"}
_KEPT = ("CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS")


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Operations on the resources of one name, or of all names that begin so."""

    resource: str
    name: str
    pattern: str
    operations: tuple[str, ...]

    def command(self, bootstrap_servers: str, principal: str) -> str:
        """Returns the command of Kafka's own tool that adds the rule for a principal such as User:demo."""
        operations = "".join(f" --operation {_word(operation)}" for operation in self.operations)
        return (
            f"kafka-acls.sh --bootstrap-server {bootstrap_servers} --command-config admin.properties --add "
            f"--allow-principal {quote(principal)}{operations} {_FLAGS[self.resource]} {quote(self.name)} "
            f"--resource-pattern-type {self.pattern.lower()}"
        )


def rules_of(
    cluster: str, group_id: str, properties: Mapping[str, str], topics: Sequence[str] = (), *, reports: bool = False
) -> Iterator[AccessRule]:
    """Yields the rules for a worker cluster: by its name, Connect's group.id and its worker properties. `topics` are
    those that its connectors copy from and to, `*` at the end for a prefix. `reports`: its reports go to these brokers,
    too."""
    yield from own_rules(cluster, group_id, properties)
    yield from (pattern_rule("TOPIC", topic, ("CREATE", "READ", "WRITE")) for topic in topics)
    yield pattern_rule("GROUP", SINKS, ("READ",))
    if reports:
        yield AccessRule("TOPIC", REPORTS, PREFIXED, ("CREATE", "READ", "WRITE"))


def own_rules(cluster: str, group_id: str, properties: Mapping[str, str]) -> Iterator[AccessRule]:
    """Yields the rules for names that belong to a worker cluster alone: its group, its storage topics and its
    transactional ids."""
    yield AccessRule("GROUP", group_id, LITERAL, ("READ",))
    for topic in storage_topics_of(cluster, properties).values():
        yield AccessRule("TOPIC", topic, LITERAL, _KEPT)
    yield AccessRule("TRANSACTIONAL_ID", f"connect-cluster-{group_id}", LITERAL, ("WRITE",))
    yield AccessRule("TRANSACTIONAL_ID", f"{group_id}-", PREFIXED, ("WRITE",))


def pattern_rule(resource: str, pattern: str, operations: tuple[str, ...]) -> AccessRule:
    """Returns the rule for a name, for all that begin with the text before a `*` at the end, or for all by `*`."""
    if pattern != "*" and pattern.endswith("*"):
        return AccessRule(resource, pattern[:-1], PREFIXED, operations)
    return AccessRule(resource, pattern, LITERAL, operations)


def _word(operation: str) -> str:
    """Returns an operation as the tool's help has it: DescribeConfigs."""
    return "".join(part.capitalize() for part in operation.split("_"))
