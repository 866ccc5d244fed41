"""The kinds of operations that this state service does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from keelman.model.operation import OperationKind
from keelman.state.autoscaling import scaling as scale
from keelman.state.dedicated import operations as dedicated
from keelman.state.dedicated.steps import STEPS
from keelman.state.definitions import applying as apply_connector
from keelman.state.operations.kinds import Kind, Tools
from keelman.state.plugins import importing as import_plugin
from keelman.state.topics import applying as apply_topic

MAKERS: Mapping[OperationKind, Callable[[Tools], Kind]] = {
    OperationKind.APPLY_CONNECTOR: apply_connector.kind,
    OperationKind.APPLY_TOPIC: apply_topic.kind,
    OperationKind.IMPORT_PLUGIN: import_plugin.kind,
    OperationKind.SCALE: scale.kind,
    **dict.fromkeys(STEPS, dedicated.kind),
}


def all_kinds(tools: Tools) -> Mapping[OperationKind, Kind]:
    """Returns every kind, ready to be used."""
    return {kind: make(tools) for kind, make in MAKERS.items()}
