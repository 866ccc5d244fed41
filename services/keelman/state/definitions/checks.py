"""Checks connector definitions. The errors name the field, the value and the legal values."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.connectors.connector_definition import ConnectorDefinition, ConnectorDefinitionSpec, DefinitionGoal
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules.names import MAX_NAMED
from keelman.state.clusters.goals import check_not_deleted
from keelman.state.resources.annotations import check_annotations
from keelman.state.resources.checks import check_same
from keelman.state.resources.snapshot import CONNECTOR_DEFINITION, Snapshot

MAX_CONNECTOR = 255
MAX_CONFIG_BYTES = 512 << 10
"""Its event has to fit into a record of Kafka."""


def check(name: str, spec: ConnectorDefinitionSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for values that are never legal, FailedPrecondition for a connector or origin of another
    one."""
    connector = spec.connector
    if not connector.strip() or len(connector) > MAX_CONNECTOR or not connector.isprintable():
        legal = f"1 to {MAX_CONNECTOR} printable characters"
        raise InvalidArgument.of("spec.connector", connector[:MAX_CONNECTOR], legal)
    check_config(connector, spec.config)
    check_annotations(CONNECTOR_DEFINITION, name, spec.annotations, snapshot)
    for other in sorted(snapshot.definitions_of_connector(spec.worker_cluster, connector) - {name}):
        raise FailedPrecondition(
            f"spec.connector: connector {connector!r} of worker cluster {spec.worker_cluster!r} is that of connector "
            f"definition {other!r}: give another",
            reason="CONNECTOR_IN_USE",
            metadata={
                "kind": CONNECTOR_DEFINITION, "name": other, "worker_cluster": spec.worker_cluster,
                "connector": connector,
            },
        )  # fmt: skip


def check_config(connector: str, config: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a connector's configuration that is never legal."""
    if config.get("name", connector) != connector:
        raise InvalidArgument.of("spec.config.name", config["name"], f"{connector!r}, as spec.connector, or nothing")
    if "" in config:
        raise InvalidArgument.of("spec.config", "", "keys that are not empty")
    size = sum(len(key.encode()) + len(text.encode()) for key, text in config.items())
    if size > MAX_CONFIG_BYTES:
        raise InvalidArgument.of("spec.config", f"{size} bytes", f"at most {MAX_CONFIG_BYTES} bytes")


def check_worker_cluster(spec: ConnectorDefinitionSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for an unknown worker cluster, FailedPrecondition for one being deleted."""
    clusters = snapshot.worker_clusters
    if spec.worker_cluster not in clusters:
        names = sorted(clusters)
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        there = f"{', '.join(names[:MAX_NAMED])}{more}" if names else "none exists yet: create one first"
        raise InvalidArgument.of("spec.worker_cluster", spec.worker_cluster, f"the name of a worker cluster ({there})")
    check_not_deleted(clusters[spec.worker_cluster])


def check_change(definition: ConnectorDefinition, new: ConnectorDefinitionSpec) -> None:
    """Raises InvalidArgument for a change of a fixed field, FailedPrecondition for a change that is not possible
    now."""
    old = definition.spec
    check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    if (old.worker_cluster, old.connector) == (new.worker_cluster, new.connector):
        return
    if definition.applied.goal is not DefinitionGoal.ABSENT or definition.applying:
        field = "spec.worker_cluster" if old.worker_cluster != new.worker_cluster else "spec.connector"
        raise FailedPrecondition(
            f"{field}: worker cluster {old.worker_cluster!r} has connector {old.connector!r}: apply the definition as "
            "ABSENT first, then change it",
            reason="PRESENT",
            metadata={"worker_cluster": old.worker_cluster, "connector": old.connector},
        )
