"""Connector definitions: connectors as users want them, and what was applied of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.resource import Resource


class DefinitionGoal(StrEnum):
    """The state that a connector is brought to."""

    ABSENT = "ABSENT"
    STOPPED = "STOPPED"
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True)
class ConnectorDefinitionSpec:
    """A connector as the user wants it; `config` is as sent."""

    worker_cluster: str
    connector: str
    config: Mapping[str, str] = field(default_factory=dict)
    annotations: Annotations = NO_ANNOTATIONS


@dataclass(frozen=True, slots=True)
class AppliedDefinition:
    """The definition that the worker cluster got last. `generation` 0: none yet."""

    generation: int = 0
    time: datetime | None = None
    goal: DefinitionGoal = DefinitionGoal.ABSENT
    config: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    """The connector's uid, if its workers report one."""


@dataclass(frozen=True, slots=True)
class ConnectorDefinition(Resource):
    """One connector definition. `operation` is the last one's name, which has not ended while `applying`."""

    NOUN: ClassVar[str] = "connector_definition"

    generation: int
    spec: ConnectorDefinitionSpec
    goal: DefinitionGoal = DefinitionGoal.ABSENT
    applied: AppliedDefinition = AppliedDefinition()
    operation: str = ""
    applying: bool = False
    message: str = ""
    """Why the last operation failed."""
    etag: str = ""
