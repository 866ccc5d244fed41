"""Connector definitions: connectors as users want them, applied by operations on request."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1 import connector_definition_pb2
from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.api.connect.v1 import connector_definition_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterGoal, ClusterState
from keelman.model.connectors.connector_definition import ConnectorDefinition, ConnectorDefinitionSpec, DefinitionGoal
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation, OperationKind, OperationTarget
from keelman.model.workload import WorkloadKind
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.rpc.times import to_timestamp
from keelman.state.definitions.checks import check, check_change, check_worker_cluster
from keelman.state.definitions.drift import drifts
from keelman.state.definitions.steps import STEPS, facts_of
from keelman.state.nouns.operation import with_operation
from keelman.state.nouns.parts import NounParts
from keelman.state.operations.begin import begin, check_no_operation
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, Remembered, get, labelled_page, list_page, writing
from keelman.state.resources.snapshot import CONNECTOR_DEFINITION, Snapshot
from keelman.state.resources.transaction import Transaction


def spec_message(spec: ConnectorDefinitionSpec) -> connector_definition_pb2.ConnectorDefinitionSpec:
    """Returns the message of a connector's spec, complete."""
    return message_of(connector_definition_pb2.ConnectorDefinitionSpec, spec, **annotated(spec.annotations))


def spec_of(message: connector_definition_pb2.ConnectorDefinitionSpec, default: str) -> ConnectorDefinitionSpec:
    """Returns the spec of a message; `default` is the connector's name in the worker cluster if the message has
    none."""
    return value_of(
        ConnectorDefinitionSpec, message,
        connector=message.connector or default, annotations=annotations_of(message),
    )  # fmt: skip


def definition_message(
    definition: ConnectorDefinition, *, with_secrets: bool = False
) -> connector_definition_pb2.ConnectorDefinition:
    """Returns a connector definition as events have it, and as users see it but for its connector."""
    applied = definition.applied
    status = message_of(
        connector_definition_pb2.ConnectorDefinitionStatus, definition,
        applied_generation=applied.generation, apply_time=to_timestamp(applied.time),
        applied_goal=_goal_message(applied.goal),
    )  # fmt: skip
    spec = spec_message(definition.spec if with_secrets else shown_spec(definition.spec))
    return message_of(connector_definition_pb2.ConnectorDefinition, definition, spec=spec, status=status)


def _goal_message(goal: DefinitionGoal) -> connector_definition_pb2.DefinitionGoal.ValueType:
    return connector_definition_pb2.DefinitionGoal.Value(f"DEFINITION_GOAL_{goal}")


NOUN = Noun(
    ConnectorDefinition, definition_message,
    {"spec": {"wanted": "spec", "applied": "applied"}, "status": ("operation", "applying", "message")},
)  # fmt: skip


def create(tx: Transaction, name: str, spec: ConnectorDefinitionSpec) -> ConnectorDefinition:
    """Stores a new connector definition; applies nothing."""
    check_free("connector definition", name, tx.snapshot.connector_definitions)
    check_worker_cluster(spec, tx.snapshot)
    check(name, spec, tx.snapshot)
    return tx.put(ConnectorDefinition(name, str(uuid.uuid4()), tx.now, tx.now, 1, spec))


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[ConnectorDefinitionSpec], ConnectorDefinitionSpec]
) -> ConnectorDefinition:
    """Changes the spec of the connector definition by `change`."""
    definition = present(tx, ConnectorDefinition, name, etag)
    spec = change(definition.spec)
    if spec == definition.spec:
        return definition
    check_change(definition, spec)
    if spec.worker_cluster != definition.spec.worker_cluster:
        check_worker_cluster(spec, tx.snapshot)
    check(name, spec, tx.snapshot)
    is_other = _asked(spec) != _asked(definition.spec)
    return tx.put(dataclasses.replace(definition, spec=spec, generation=definition.generation + is_other))


def apply(tx: Transaction, request: pb.ApplyConnectorDefinitionRequest) -> tuple[ConnectorDefinition, Operation]:
    """Begins an operation that brings the connector to its definition; returns the definition and the operation."""
    definition = present(tx, ConnectorDefinition, request.name, request.etag)
    check_no_operation(tx, CONNECTOR_DEFINITION, definition.name)
    goal = _goal_of(request.goal) if request.goal else definition.goal
    gone = _nothing_to_do(definition, goal, tx.snapshot)
    target = OperationTarget(CONNECTOR_DEFINITION, definition.name, definition.generation, str(goal))
    operation = begin(
        tx, OperationKind.APPLY_CONNECTOR, target, STEPS[goal], facts_of(definition, gone=gone),
        origin=definition.spec.annotations.origin,
    )  # fmt: skip
    changed = dataclasses.replace(definition, goal=goal, operation=operation.name, applying=True, message="")
    return tx.put(changed), operation


def delete(tx: Transaction, name: str, etag: str, *, keep_connector: bool) -> ConnectorDefinition:
    """Forgets a connector definition. Raises FailedPrecondition while an operation on it has not ended, and while its
    worker cluster has the connector unless the caller keeps it there."""
    definition = present(tx, ConnectorDefinition, name, etag)
    check_no_operation(tx, CONNECTOR_DEFINITION, name)
    spec, clusters = definition.spec, tx.snapshot.worker_clusters
    is_there = definition.applied.goal is not DefinitionGoal.ABSENT and spec.worker_cluster in clusters
    if is_there and not keep_connector:
        raise FailedPrecondition(
            f"worker cluster {spec.worker_cluster!r} has connector {spec.connector!r} of definition {name!r}: "
            "apply it as ABSENT first, or keep the connector (keep_connector)",
            reason="PRESENT",
            metadata={"worker_cluster": spec.worker_cluster, "connector": spec.connector},
        )
    tx.drop(CONNECTOR_DEFINITION, name)
    return definition


def _nothing_to_do(definition: ConnectorDefinition, goal: DefinitionGoal, snapshot: Snapshot) -> bool:
    """Returns whether the connector is surely absent already. Raises FailedPrecondition if its worker cluster shall not
    run."""
    cluster = snapshot.worker_clusters.get(definition.spec.worker_cluster)
    if cluster is not None and cluster.goal is ClusterGoal.RUNNING:
        return False
    is_absent = cluster is None or definition.applied.goal is DefinitionGoal.ABSENT
    if goal is DefinitionGoal.ABSENT and is_absent:
        return True
    name = definition.spec.worker_cluster
    if cluster is None:
        raise FailedPrecondition(
            f"worker cluster {name!r} of definition {definition.name!r} is gone: create it again, or change "
            "the definition's worker_cluster",
            reason="NO_WORKER_CLUSTER",
            metadata={"worker_cluster": name},
        )
    raise FailedPrecondition(
        f"worker cluster {name!r} of definition {definition.name!r} is {cluster.status.state}: start it first"
        + (", or delete the definition and keep the connector" if goal is DefinitionGoal.ABSENT else ""),
        reason="NOT_RUNNING",
        metadata={"worker_cluster": name},
    )


def _goal_of(goal: connector_definition_pb2.DefinitionGoal.ValueType) -> DefinitionGoal:
    for goal_member in DefinitionGoal:
        if _goal_message(goal_member) == goal:
            return goal_member
    raise InvalidArgument.of("goal", goal, ", ".join(DefinitionGoal))


def _asked(spec: ConnectorDefinitionSpec) -> tuple[Any, ...]:
    return spec.worker_cluster, spec.connector, dict(spec.config)


@dataclass(frozen=True, slots=True)
class ConnectorDefinitionApi(NounApi[NounParts], grpc.ConnectorDefinitionServiceServicer):
    """Connector definitions."""

    noun = CONNECTOR_DEFINITION
    _messages: Remembered[ConnectorDefinition, connector_definition_pb2.ConnectorDefinition] = dataclasses.field(
        default_factory=lambda: Remembered(definition_message)
    )
    GetConnectorDefinition, ListConnectorDefinitions = get, list_page

    @writing()
    def CreateConnectorDefinition(
        self, tx: Transaction, request: pb.CreateConnectorDefinitionRequest
    ) -> ConnectorDefinition:
        """Stores a connector definition."""
        return create(tx, request.name, kept_spec(spec_of(request.spec, request.name), None))

    @writing()
    def UpdateConnectorDefinition(
        self, tx: Transaction, request: pb.UpdateConnectorDefinitionRequest
    ) -> ConnectorDefinition:
        """Changes the spec of a connector definition."""

        def change(spec: ConnectorDefinitionSpec) -> ConnectorDefinitionSpec:
            sent = masked(spec_message(spec), request.spec, request.update_mask)
            return kept_spec(spec_of(sent, spec.connector), spec)

        return update(tx, request.name, request.etag, change)

    @writing()
    def ApplyConnectorDefinition(
        self, tx: Transaction, request: pb.ApplyConnectorDefinitionRequest
    ) -> tuple[ConnectorDefinition, Operation]:
        """Begins to bring the connector to its definition."""
        return apply(tx, request)

    @writing()
    def DeleteConnectorDefinition(
        self, tx: Transaction, request: pb.DeleteConnectorDefinitionRequest
    ) -> ConnectorDefinition:
        """Forgets a connector definition."""
        return delete(tx, request.name, request.etag, keep_connector=request.keep_connector)

    def _page(self, request: pb.ListConnectorDefinitionsRequest) -> tuple[list[ConnectorDefinition], str]:
        of_cluster = sorted(self._snapshot.definitions_on(request.worker_cluster)) if request.worker_cluster else None
        return labelled_page(self._snapshot, CONNECTOR_DEFINITION, request, of_cluster)

    def _fields(
        self, result: ConnectorDefinition | tuple[ConnectorDefinition, Operation], tx: Transaction
    ) -> dict[str, Any]:
        definition, operation = result if isinstance(result, tuple) else (result, None)
        return with_operation({CONNECTOR_DEFINITION: self._in_list(definition, None)}, operation)

    def _in_list(self, definition: ConnectorDefinition, request: Any) -> connector_definition_pb2.ConnectorDefinition:
        return self._with_connector(definition, self._messages.copy(definition.name, definition))

    def _shown(self, definition: ConnectorDefinition, request: Any) -> connector_definition_pb2.ConnectorDefinition:
        return self._with_connector(definition, definition_message(definition, with_secrets=True))

    def _with_connector(
        self, definition: ConnectorDefinition, message: connector_definition_pb2.ConnectorDefinition
    ) -> connector_definition_pb2.ConnectorDefinition:
        """Adds the connector to a definition's message, as far as its workers report."""
        spec, reports = definition.spec, self.parts.reports
        cluster = self._snapshot.worker_clusters.get(spec.worker_cluster)
        # Reports from before the workers were stopped are outdated.
        is_down = cluster is None or cluster.status.state is ClusterState.STOPPED
        if is_down or not reports.connectors.reported(spec.worker_cluster):
            return message
        connector = reports.connectors.one(spec.worker_cluster, spec.connector)
        if connector is not None:
            workers = self._snapshot.workloads_in(WorkloadKind.WORKER, spec.worker_cluster)
            message.status.connector.CopyFrom(reports.with_lag(connector, workers))
        found_drifts = drifts(definition, connector, self.parts.store.database.clock())
        message.status.drifts.extend(found_drifts)
        message.status.drifted = bool(found_drifts)
        return message


API = ConnectorDefinitionApi
