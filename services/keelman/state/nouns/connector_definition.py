"""Connector definitions: connectors as users want them, applied by operations that somebody asks for."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import connector_definition_pb2
from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.api.connect.v1 import connector_definition_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterGoal, ClusterState
from keelman.model.connector_definition import (
    AppliedDefinition,
    ConnectorDefinition,
    ConnectorDefinitionSpec,
    DefinitionGoal,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation, OperationKind, Target
from keelman.model.workload import WorkloadKind
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.definitions.checks import check, check_change, check_worker_cluster
from keelman.state.definitions.drift import drifts
from keelman.state.nouns.checks import check_etag, check_free
from keelman.state.nouns.clusters import annotate, annotations_of
from keelman.state.nouns.hidden import kept_spec, shown_spec
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.operation import begin, check_no_operation, operation_message
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, plain_spec, read, read_spec
from keelman.state.nouns.serving import Remembered, has_labels, page_of, written
from keelman.state.operations.connector_steps import STEPS, facts_of
from keelman.state.snapshot import CONNECTOR_DEFINITION, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

WANTED, APPLIED = "wanted", "applied"


class ConnectorDefinitionRow(SQLModel, table=True):
    """A connector definition; `spec` is JSON of what is wanted and what was applied, `status` of its last operation."""

    __tablename__ = "connector_definition"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    generation: int = Field(sa_column=big_column())
    goal: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    status: dict[str, Any] = Field(sa_column=json_column())


def to_row(definition: ConnectorDefinition) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": definition.name, "uid": definition.uid, "create_time": micros(definition.create_time),
        "update_time": micros(definition.update_time), "revision": int(definition.etag or 0),
        "generation": definition.generation, "goal": str(definition.goal),
        "spec": {WANTED: plain_spec(definition.spec), APPLIED: plain(definition.applied)},
        "status": {
            "operation": definition.operation, "applying": definition.applying, "message": definition.message,
        },
    }  # fmt: skip


def from_row(row: ConnectorDefinitionRow) -> ConnectorDefinition:
    """The connector definition of a row."""
    time = row.spec[APPLIED]["time"]
    applied = read(AppliedDefinition, {**row.spec[APPLIED], "time": None})
    return ConnectorDefinition(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        generation=row.generation, spec=read_spec(ConnectorDefinitionSpec, row.spec[WANTED]),
        goal=DefinitionGoal(row.goal), etag=str(row.revision), **row.status,
        applied=applied if time is None else dataclasses.replace(applied, time=moment(time)),
    )  # fmt: skip


def spec_message(wanted: ConnectorDefinitionSpec) -> connector_definition_pb2.ConnectorDefinitionSpec:
    """What a user wants of a connector, on the wire, complete."""
    spec = connector_definition_pb2.ConnectorDefinitionSpec(
        worker_cluster=wanted.worker_cluster, connector=wanted.connector, config=dict(wanted.config)
    )
    annotate(spec, wanted.annotations)
    return spec


def spec_of(message: connector_definition_pb2.ConnectorDefinitionSpec, default: str) -> ConnectorDefinitionSpec:
    """What a user wants of a connector; its name in the worker cluster is the default where none is given."""
    return ConnectorDefinitionSpec(
        worker_cluster=message.worker_cluster,
        connector=message.connector or default,
        config=dict(message.config),
        annotations=annotations_of(message),
    )


def definition_message(
    definition: ConnectorDefinition, *, with_secrets: bool = False
) -> connector_definition_pb2.ConnectorDefinition:
    """A connector definition as events have it, and as users see it but for its connector."""
    applied = definition.applied
    status = connector_definition_pb2.ConnectorDefinitionStatus(
        applied_generation=applied.generation,
        apply_time=None if applied.time is None else to_timestamp(applied.time),
        applied_goal=_goal_message(applied.goal),
        operation=definition.operation,
        applying=definition.applying,
        message=definition.message,
    )
    return connector_definition_pb2.ConnectorDefinition(
        name=definition.name,
        uid=definition.uid,
        create_time=to_timestamp(definition.create_time),
        update_time=to_timestamp(definition.update_time),
        generation=definition.generation,
        etag=definition.etag,
        spec=spec_message(definition.spec if with_secrets else shown_spec(definition.spec)),
        goal=_goal_message(definition.goal),
        status=status,
    )


def _goal_message(goal: DefinitionGoal) -> connector_definition_pb2.DefinitionGoal.ValueType:
    return connector_definition_pb2.DefinitionGoal.Value(f"DEFINITION_GOAL_{goal}")


NOUN = Noun(ConnectorDefinition, ConnectorDefinitionRow, to_row, from_row, definition_message)


def create(tx: Transaction, name: str, spec: ConnectorDefinitionSpec) -> ConnectorDefinition:
    """A new connector definition; nothing is applied."""
    check_free("connector definition", name, tx.snapshot.connector_definitions)
    check_worker_cluster(spec, tx.snapshot)
    check(name, spec, tx.snapshot)
    return tx.put(ConnectorDefinition(name, str(uuid.uuid4()), tx.now, tx.now, 1, spec))


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[ConnectorDefinitionSpec], ConnectorDefinitionSpec]
) -> ConnectorDefinition:
    """The connector definition with the spec that `change` makes of its present one."""
    definition = _found(tx, name, etag)
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
    """The connector definition with an operation that brings its connector to what it says."""
    definition = _found(tx, request.name, request.etag)
    check_no_operation(tx, CONNECTOR_DEFINITION, definition.name)
    goal = _goal_of(request.goal) if request.goal else definition.goal
    gone = _nothing_to_do(definition, goal, tx.snapshot)
    target = Target(CONNECTOR_DEFINITION, definition.name, definition.generation, str(goal))
    operation = begin(
        tx, OperationKind.APPLY_CONNECTOR, target, STEPS[goal], facts_of(definition, gone=gone),
        origin=definition.spec.annotations.origin,
    )  # fmt: skip
    changed = dataclasses.replace(definition, goal=goal, operation=operation.name, applying=True, message="")
    return tx.put(changed), operation


def delete(tx: Transaction, name: str, etag: str, *, keep_connector: bool) -> ConnectorDefinition:
    """Forgets a connector definition. Raises FailedPrecondition while an operation on it has not ended, and while its
    worker cluster has the connector unless that is to stay."""
    definition = _found(tx, name, etag)
    check_no_operation(tx, CONNECTOR_DEFINITION, name)
    spec, clusters = definition.spec, tx.snapshot.worker_clusters
    is_there = definition.applied.goal is not DefinitionGoal.ABSENT and spec.worker_cluster in clusters
    if is_there and not keep_connector:
        raise FailedPrecondition(
            f"worker cluster {spec.worker_cluster!r} has connector {spec.connector!r} of definition {name!r}: "
            "apply it as ABSENT first, or say that the connector is to stay there (keep_connector)",
            reason="PRESENT",
            metadata={"worker_cluster": spec.worker_cluster, "connector": spec.connector},
        )
    tx.drop(CONNECTOR_DEFINITION, name)
    return definition


def _nothing_to_do(definition: ConnectorDefinition, goal: DefinitionGoal, snapshot: Snapshot) -> bool:
    """Whether the connector can only be absent already. Raises FailedPrecondition where its worker cluster is not to
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
    for one in DefinitionGoal:
        if _goal_message(one) == goal:
            return one
    raise InvalidArgument.of("goal", goal, ", ".join(DefinitionGoal))


def _asked(spec: ConnectorDefinitionSpec) -> tuple[Any, ...]:
    return spec.worker_cluster, spec.connector, dict(spec.config)


def _found(tx: Transaction, name: str, etag: str) -> ConnectorDefinition:
    definition = tx.snapshot.connector_definition(name)
    check_etag(name, etag, definition.etag)
    return definition


@dataclass(frozen=True, slots=True)
class ConnectorDefinitionApi(grpc.ConnectorDefinitionServiceServicer):
    """Connector definitions."""

    parts: Parts
    _messages: Remembered[ConnectorDefinition, connector_definition_pb2.ConnectorDefinition] = dataclasses.field(
        default_factory=lambda: Remembered(definition_message)
    )

    async def GetConnectorDefinition(
        self, request: pb.GetConnectorDefinitionRequest, context: Context
    ) -> pb.GetConnectorDefinitionResponse:
        """One connector definition, with its configuration as it was sent."""
        definition = self._snapshot.connector_definition(request.name)
        return pb.GetConnectorDefinitionResponse(connector_definition=self._shown(definition, with_secrets=True))

    async def ListConnectorDefinitions(
        self, request: pb.ListConnectorDefinitionsRequest, context: Context
    ) -> pb.ListConnectorDefinitionsResponse:
        """A page of connector definitions."""
        snapshot, labels = self._snapshot, request.labels.items()
        names = snapshot.names(CONNECTOR_DEFINITION)
        if request.worker_cluster:
            names = sorted(snapshot.definitions_on(request.worker_cluster))
        part, token = page_of(
            names, snapshot.connector_definitions, request, lambda d: has_labels(d.spec.annotations.labels, labels)
        )
        shown = [self._shown(definition) for definition in part]
        return pb.ListConnectorDefinitionsResponse(connector_definitions=shown, next_page_token=token)

    async def CreateConnectorDefinition(
        self, request: pb.CreateConnectorDefinitionRequest, context: Context
    ) -> pb.CreateConnectorDefinitionResponse:
        """Stores a connector definition."""

        def work(tx: Transaction) -> dict[str, Any]:
            spec = kept_spec(spec_of(request.spec, request.name), None)
            return self._fields(create(tx, request.name, spec))

        return await written(self.parts.store, request, pb.CreateConnectorDefinitionResponse, work)

    async def UpdateConnectorDefinition(
        self, request: pb.UpdateConnectorDefinitionRequest, context: Context
    ) -> pb.UpdateConnectorDefinitionResponse:
        """Changes the spec of a connector definition."""

        def change(spec: ConnectorDefinitionSpec) -> ConnectorDefinitionSpec:
            sent = masked(spec_message(spec), request.spec, request.update_mask)
            return kept_spec(spec_of(sent, spec.connector), spec)

        return await written(
            self.parts.store, request, pb.UpdateConnectorDefinitionResponse,
            lambda tx: self._fields(update(tx, request.name, request.etag, change)),
        )  # fmt: skip

    async def ApplyConnectorDefinition(
        self, request: pb.ApplyConnectorDefinitionRequest, context: Context
    ) -> pb.ApplyConnectorDefinitionResponse:
        """Begins an operation on a connector."""

        def work(tx: Transaction) -> dict[str, Any]:
            definition, operation = apply(tx, request)
            return self._fields(definition) | {"operation": operation_message(operation)}

        return await written(self.parts.store, request, pb.ApplyConnectorDefinitionResponse, work)

    async def DeleteConnectorDefinition(
        self, request: pb.DeleteConnectorDefinitionRequest, context: Context
    ) -> pb.DeleteConnectorDefinitionResponse:
        """Forgets a connector definition."""
        return await written(
            self.parts.store, request, pb.DeleteConnectorDefinitionResponse,
            lambda tx: self._fields(delete(tx, request.name, request.etag, keep_connector=request.keep_connector)),
        )  # fmt: skip

    @property
    def _snapshot(self) -> Snapshot:
        return self.parts.store.snapshot

    def _fields(self, definition: ConnectorDefinition) -> dict[str, Any]:
        return {"connector_definition": self._shown(definition)}

    def _shown(
        self, definition: ConnectorDefinition, *, with_secrets: bool = False
    ) -> connector_definition_pb2.ConnectorDefinition:
        """A connector definition with its connector, as far as its workers report."""
        if with_secrets:
            made = definition_message(definition, with_secrets=True)
        else:
            made = self._messages.copy(definition.name, definition)
        spec, reports = definition.spec, self.parts.reports
        cluster = self._snapshot.worker_clusters.get(spec.worker_cluster)
        # What workers said before they were stopped is no longer so.
        is_down = cluster is None or cluster.status.state is ClusterState.STOPPED
        if is_down or not reports.connectors.reported(spec.worker_cluster):
            return made
        connector = reports.connectors.one(spec.worker_cluster, spec.connector)
        if connector is not None:
            workers = self._snapshot.workloads_in(WorkloadKind.WORKER, spec.worker_cluster)
            made.status.connector.CopyFrom(reports.with_lag(connector, workers))
        found = drifts(definition, connector, self.parts.store.database.clock())
        made.status.drifts.extend(found)
        made.status.drifted = bool(found)
        return made


def services(parts: Parts) -> list[Service]:
    """The gRPC services of connector definitions."""
    add = grpc.add_ConnectorDefinitionServiceServicer_to_server
    return [service("connect", "ConnectorDefinitionService", add, ConnectorDefinitionApi(parts))]
