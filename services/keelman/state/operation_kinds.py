"""The procedures of the operations that this state service runs."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.operation import OperationKind
from keelman.state.autoscaling import scaling
from keelman.state.dedicated import operations as dedicated
from keelman.state.dedicated.policy import NO_POLICY, NamedBrokers
from keelman.state.dedicated.steps import STEPS
from keelman.state.definitions import applying as definitions
from keelman.state.operations.kinds import OperationProcedure
from keelman.state.planning.planned import Planned
from keelman.state.plugins import importing
from keelman.state.plugins.buckets import Buckets
from keelman.state.plugins.files import PluginFiles
from keelman.state.resources.store import ResourceStore
from keelman.state.topics import applying as topics
from keelman.workers.rest.connectors import RestConnectors


def procedures(
    store: ResourceStore,
    *,
    notes: topics.TopicNotes,
    connectors: RestConnectors,
    planned: Planned,
    files: PluginFiles,
    buckets: Buckets,
    named_brokers: NamedBrokers = NO_POLICY,
) -> Mapping[OperationKind, OperationProcedure]:
    """Returns the procedure of every kind of operation. `connectors` calls workers; `notes` keeps the
    facts that an operation reads of a topic."""
    return {
        OperationKind.APPLY_CONNECTOR: definitions.procedure(store, connectors),
        OperationKind.APPLY_TOPIC: topics.procedure(store, notes),
        OperationKind.IMPORT_PLUGIN: importing.procedure(store, files, buckets),
        OperationKind.SCALE: scaling.procedure(store, connectors, planned),
        **{kind: dedicated.procedure(store, connectors, planned, named_brokers) for kind in STEPS},
    }
