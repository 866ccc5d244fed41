"""Tells how a connector, as its workers report it, differs from the applied definition. Pure.

Reports have secrets hidden: two that are hidden alike count as the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.connect.config.secret_keys import shown_value
from keelman.model.connectors.connector_definition import AppliedDefinition, ConnectorDefinition, DefinitionGoal
from keelman.state.definitions.states import STEADY, state_of

REPORTED_WITHIN = timedelta(seconds=5)
"""The longest time until reports show the applied definition."""


def drifts(definition: ConnectorDefinition, connector: Connector | None, now: datetime) -> list[str]:
    """Returns how the connector differs, for people; `connector` is None when its workers report none of its name."""
    applied = definition.applied
    if definition.applying or (applied.time is not None and now < applied.time + REPORTED_WITHIN):
        return []
    if applied.goal is DefinitionGoal.ABSENT:
        return [] if connector is None else ["connector exists; the applied goal is ABSENT"]
    if connector is None:
        return [f"connector is missing; the applied goal is {applied.goal}"]
    config = _of_config(applied.config, connector.config)
    return [*_of_identity(applied, connector), *config, *_of_state(applied, connector)]


def _of_identity(applied: AppliedDefinition, connector: Connector) -> Iterator[str]:
    if applied.uid and connector.uid and applied.uid != connector.uid:
        yield f"connector: it was deleted and created again, its uid is {connector.uid}, was applied as {applied.uid}"


def _of_config(applied: Mapping[str, str], reported: Mapping[str, str]) -> Iterator[str]:
    for key in sorted((applied.keys() | reported.keys()) - {"name"}):
        had = None if key not in applied else shown_value(key, applied[key])
        has = reported.get(key)
        if had == has:
            continue
        if has is None:
            yield f"config: {key} is missing; the applied value is {had}"
        elif had is None:
            yield f"config: {key} is {shown_value(key, has)}, was not there when applied"
        else:
            yield f"config: {key} is {shown_value(key, has)}, was applied as {had}"


def _of_state(applied: AppliedDefinition, connector: Connector) -> Iterator[str]:
    state = state_of(connector)
    if state in STEADY and state != applied.goal:
        yield f"state: {state}, was applied as {applied.goal}"
