"""Checks dedicated connectors. The errors name the field, the value and the legal values. Pure."""

from __future__ import annotations

import re

from keelman.model.autoscale import check_autoscale
from keelman.model.connectors.dedicated_connector import DedicatedConnector, DedicatedConnectorSpec
from keelman.model.errors import Conflict, InvalidArgument
from keelman.state.dedicated.composition import FIXED, internal_topics
from keelman.state.definitions.checks import check_config
from keelman.state.resources.annotations import check_annotations
from keelman.state.resources.checks import check_same
from keelman.state.resources.log_delivery import check_topic
from keelman.state.resources.snapshot import DEDICATED_CONNECTOR, Snapshot

MAX_TOPIC = 249
CLASS = "connector.class"
_CONNECTOR = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TOPIC_PART = re.compile(r"[A-Za-z0-9._-]*")


def check(name: str, spec: DedicatedConnectorSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for values that are never legal, FailedPrecondition for an origin of another connector.
    Checks of its worker cluster against the rest follow when that is written."""
    legal = "1 to 128 letters, digits, '.', '_' and '-': it is part of the names of its topics"
    if not _CONNECTOR.fullmatch(spec.connector):
        raise InvalidArgument.of("spec.connector", spec.connector[:200], legal)
    if not spec.config.get(CLASS):
        raise InvalidArgument.of(f"spec.config.{CLASS}", spec.config.get(CLASS, ""), "the class of the connector")
    check_config(spec.connector, spec.config)
    if not (spec.broker_cluster or spec.bootstrap_servers):
        raise InvalidArgument.of("spec.brokers", "", "broker_cluster (its name) or external (bootstrap_servers)")
    if spec.capacity.autoscale is not None:
        check_autoscale("spec.capacity.autoscale", spec.capacity.autoscale)
    elif spec.capacity.count < 1:
        raise InvalidArgument.of("spec.capacity.count", spec.capacity.count, "a whole number of at least 1")
    for field, part in (("spec.topic_prefix", spec.topic_prefix), ("spec.topic_suffix", spec.topic_suffix)):
        if not _TOPIC_PART.fullmatch(part):
            raise InvalidArgument.of(field, part, "letters, digits, '.', '_' and '-': it is part of names of topics")
    longest = max(internal_topics(spec).values(), key=len)
    if len(longest) > MAX_TOPIC:
        raise InvalidArgument.of("spec.topic_prefix", longest, f"such that no topic has more than {MAX_TOPIC} letters")
    for key in FIXED:
        if key in spec.properties:
            reason = "leave it out: each dedicated connector has its own"
            raise InvalidArgument.of(f"spec.properties.{key}", spec.properties[key], reason)
    check_topic("spec.log_delivery", spec.log_delivery)
    check_annotations(DEDICATED_CONNECTOR, name, spec.annotations, snapshot)


def check_change(old: DedicatedConnectorSpec, new: DedicatedConnectorSpec) -> None:
    """Raises InvalidArgument for a field that cannot be changed, or not together with another."""
    check_same("spec.connector", old.connector, new.connector)
    check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    check_same("spec.broker_cluster", old.broker_cluster, new.broker_cluster)
    check_same("spec.external.bootstrap_servers", old.bootstrap_servers, new.bootstrap_servers)
    if dict(old.client_properties) != dict(new.client_properties):
        legal = "as when it was created: it cannot be changed"
        raise InvalidArgument.of("spec.external.client_properties", sorted(new.client_properties), legal)
    check_same("spec.topic_prefix", old.topic_prefix, new.topic_prefix)
    check_same("spec.topic_suffix", old.topic_suffix, new.topic_suffix)
    check_same("spec.engine", old.engine, new.engine)
    check_same("spec.log_delivery", old.log_delivery, new.log_delivery)
    check_same(f"spec.config.{CLASS}", old.config.get(CLASS), new.config.get(CLASS))
    if changes_config(old, new) and changes_workers(old, new):
        legal = "either `config` or what its workers are, not both at once: send two updates"
        raise InvalidArgument.of("update_mask", "config and workers", legal)


def changes_config(old: DedicatedConnectorSpec, new: DedicatedConnectorSpec) -> bool:
    """Returns whether its configuration changes."""
    return dict(old.config) != dict(new.config)


def changes_workers(old: DedicatedConnectorSpec, new: DedicatedConnectorSpec) -> bool:
    """Returns whether its workers change."""
    return _workers(old) != _workers(new)


def _workers(spec: DedicatedConnectorSpec) -> tuple[object, ...]:
    return (
        spec.capacity, spec.plugins, spec.libraries, spec.worker_configuration, dict(spec.properties),
        dict(spec.node_selector),
    )  # fmt: skip


def check_version(connector: DedicatedConnector, version: str) -> None:
    """Raises Conflict for a version other than the present one."""
    if version and version != connector.version:
        raise Conflict(
            f"version: {version!r} is not the present version of {connector.name!r}, which is {connector.version!r}",
            reason="VERSION_MISMATCH",
            metadata={"version": connector.version},
        )
