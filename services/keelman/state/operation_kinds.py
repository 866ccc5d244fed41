"""The kinds of operations that this state service does."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.operation import OperationKind
from keelman.state.autoscaling import scaling
from keelman.state.dedicated import operations as dedicated
from keelman.state.dedicated.steps import STEPS
from keelman.state.definitions import applying as definitions
from keelman.state.operations.kinds import Kind
from keelman.state.planning.planned import Planned
from keelman.state.plugins import importing
from keelman.state.plugins.buckets import Buckets
from keelman.state.plugins.files import PluginFiles
from keelman.state.resources.store import Store
from keelman.state.topics import applying as topics
from keelman.workers.rest.connectors import RestConnectors


def all_kinds(
    store: Store,
    *,
    notes: topics.TopicNotes,
    connectors: RestConnectors,
    planned: Planned,
    files: PluginFiles,
    buckets: Buckets,
) -> Mapping[OperationKind, Kind]:
    """Returns every kind, ready to be used. `connectors` calls workers; `notes` keeps what an operation reads of a
    topic."""
    return {
        OperationKind.APPLY_CONNECTOR: definitions.kind(store, connectors),
        OperationKind.APPLY_TOPIC: topics.kind(store, notes),
        OperationKind.IMPORT_PLUGIN: importing.kind(store, files, buckets),
        OperationKind.SCALE: scaling.kind(store, connectors, planned),
        **{kind: dedicated.kind(store, connectors, planned) for kind in STEPS},
    }
