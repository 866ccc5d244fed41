"""Dedicated connectors: connectors with a worker cluster of their own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import dedicated_connector_pb2
from keelman.api.connect.v1 import dedicated_connector_service_pb2 as pb
from keelman.api.connect.v1 import dedicated_connector_service_pb2_grpc as grpc
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.model.cluster import ClusterState
from keelman.model.dedicated_connector import (
    DedicatedConnector,
    DedicatedConnectorSpec,
    DedicatedFailure,
    DedicatedGoal,
)
from keelman.model.operation import Operation
from keelman.model.workload import WorkloadKind
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.dedicated import life
from keelman.state.dedicated.states import standing
from keelman.state.dedicated.wire import spec_message, spec_of
from keelman.state.nouns.hidden import kept_spec, shown_spec
from keelman.state.nouns.log_delivery import check_buckets
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.operation import operation_message
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, plain_spec, read, read_spec
from keelman.state.nouns.serving import has_labels, page_of, verb, written
from keelman.state.snapshot import DEDICATED_CONNECTOR, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

Made = tuple[DedicatedConnector, Operation | None]


class DedicatedConnectorRow(SQLModel, table=True):
    """A dedicated connector; `spec` and `status` are JSON."""

    __tablename__ = "dedicated_connector"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    generation: int = Field(sa_column=big_column())
    goal: str
    spec: dict[str, Any] = Field(sa_column=json_column())
    status: dict[str, Any] = Field(sa_column=json_column())


@dataclass(frozen=True, slots=True)
class _Status:
    broker_cluster: str = ""
    operation: str = ""
    failure: DedicatedFailure | None = None
    updates: int = 0
    connector_uid: str = ""
    tasks_max: int = 0


def to_row(connector: DedicatedConnector) -> dict[str, Any]:
    """The values of its row."""
    status = _Status(**{field.name: getattr(connector, field.name) for field in dataclasses.fields(_Status)})
    return {
        "name": connector.name, "uid": connector.uid, "create_time": micros(connector.create_time),
        "update_time": micros(connector.update_time), "revision": int(connector.etag or 0),
        "generation": connector.generation, "goal": str(connector.goal), "spec": plain_spec(connector.spec),
        "status": plain(status),
    }  # fmt: skip


def from_row(row: DedicatedConnectorRow) -> DedicatedConnector:
    """The dedicated connector of a row."""
    status = read(_Status, row.status)
    return DedicatedConnector(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        generation=row.generation, spec=read_spec(DedicatedConnectorSpec, row.spec), goal=DedicatedGoal(row.goal),
        etag=str(row.revision), **{field.name: getattr(status, field.name) for field in dataclasses.fields(_Status)},
    )  # fmt: skip


def dedicated_message(
    connector: DedicatedConnector, *, with_secrets: bool = False
) -> dedicated_connector_pb2.DedicatedConnector:
    """A dedicated connector as events have it: with what is stored of its status."""
    status = dedicated_connector_pb2.DedicatedConnectorStatus(
        worker_cluster=connector.name,
        broker_cluster=connector.broker_cluster,
        operation=connector.operation,
        tasks_max=connector.tasks_max,
        version=connector.version,
    )
    if connector.failure is not None:
        status.state = dedicated_connector_pb2.DEDICATED_CONNECTOR_STATE_FAILED
        status.code, status.message = connector.failure.code, connector.failure.message
    return dedicated_connector_pb2.DedicatedConnector(
        name=connector.name,
        uid=connector.uid,
        create_time=to_timestamp(connector.create_time),
        update_time=to_timestamp(connector.update_time),
        generation=connector.generation,
        etag=connector.etag,
        spec=spec_message(connector.spec if with_secrets else shown_spec(connector.spec)),
        goal=dedicated_connector_pb2.DedicatedConnectorGoal.Value(f"DEDICATED_CONNECTOR_GOAL_{connector.goal}"),
        status=status,
    )


NOUN = Noun(DedicatedConnector, DedicatedConnectorRow, to_row, from_row, dedicated_message)


def _of_origin(connector: DedicatedConnector, wanted: Origin) -> bool:
    origin = connector.spec.annotations.origin
    pairs = [(wanted.api, "api"), (wanted.scope, "scope"), (wanted.key, "key")]
    return all(not text or (origin is not None and getattr(origin, name) == text) for text, name in pairs)


@dataclass(frozen=True, slots=True)
class DedicatedConnectorApi(grpc.DedicatedConnectorServiceServicer):
    """Dedicated connectors."""

    parts: Parts

    async def GetDedicatedConnector(
        self, request: pb.GetDedicatedConnectorRequest, context: Context
    ) -> pb.GetDedicatedConnectorResponse:
        """One dedicated connector, with its configuration as it was sent."""
        snapshot = self._snapshot
        connector = snapshot.dedicated_connector(request.name)
        under_way = snapshot.unfinished_operation(DEDICATED_CONNECTOR, connector.name)
        shown = self._shown(snapshot, connector, under_way, with_secrets=True)
        return pb.GetDedicatedConnectorResponse(dedicated_connector=shown)

    async def ListDedicatedConnectors(
        self, request: pb.ListDedicatedConnectorsRequest, context: Context
    ) -> pb.ListDedicatedConnectorsResponse:
        """A page of dedicated connectors."""
        snapshot, labels = self._snapshot, request.labels.items()

        def is_wanted(one: DedicatedConnector) -> bool:
            return (
                has_labels(one.spec.annotations.labels, labels)
                and one.spec.connector.startswith(request.connector_prefix)
                and _of_origin(one, request.origin)
            )

        names = snapshot.names(DEDICATED_CONNECTOR)
        part, token = page_of(names, snapshot.dedicated_connectors, request, is_wanted)
        shown = [
            self._shown(snapshot, one, snapshot.unfinished_operation(DEDICATED_CONNECTOR, one.name)) for one in part
        ]
        return pb.ListDedicatedConnectorsResponse(dedicated_connectors=shown, next_page_token=token)

    async def CreateDedicatedConnector(
        self, request: pb.CreateDedicatedConnectorRequest, context: Context
    ) -> pb.CreateDedicatedConnectorResponse:
        """Stores a dedicated connector and its worker cluster, and begins to bring it up."""

        def work(tx: Transaction) -> dict[str, Any]:
            spec = kept_spec(spec_of(request.spec), None)
            check_buckets("spec.log_delivery", spec.log_delivery, self.parts.buckets)
            return self.fields(life.create(tx, request.name or life.new_name(), spec))

        return await written(self.parts.store, request, pb.CreateDedicatedConnectorResponse, work)

    async def UpdateDedicatedConnector(
        self, request: pb.UpdateDedicatedConnectorRequest, context: Context
    ) -> pb.UpdateDedicatedConnectorResponse:
        """Changes a dedicated connector."""

        def change(spec: DedicatedConnectorSpec) -> DedicatedConnectorSpec:
            sent = spec_of(masked(spec_message(spec), request.spec, request.update_mask))
            sent = dataclasses.replace(
                sent, connector=sent.connector or spec.connector, topic_prefix=sent.topic_prefix or spec.topic_prefix,
                topic_suffix=sent.topic_suffix or spec.topic_suffix,
            )  # fmt: skip
            return kept_spec(sent, spec)

        def work(tx: Transaction) -> dict[str, Any]:
            made = life.update(
                tx, request.name, request.etag, change,
                version=request.version, skip_health_check=request.skip_health_check,
            )  # fmt: skip
            return self.fields(made)

        return await written(self.parts.store, request, pb.UpdateDedicatedConnectorResponse, work)

    PauseDedicatedConnector = verb(
        pb.PauseDedicatedConnectorRequest, pb.PauseDedicatedConnectorResponse,
        lambda tx, r: life.pause(tx, r.name, r.etag),
    )  # fmt: skip
    ResumeDedicatedConnector = verb(
        pb.ResumeDedicatedConnectorRequest, pb.ResumeDedicatedConnectorResponse,
        lambda tx, r: life.resume(tx, r.name, r.etag),
    )  # fmt: skip
    RestartDedicatedConnector = verb(
        pb.RestartDedicatedConnectorRequest, pb.RestartDedicatedConnectorResponse,
        lambda tx, r: life.restart(tx, r.name, r.etag, only_failed=r.only_failed),
    )  # fmt: skip
    DeleteDedicatedConnector = verb(
        pb.DeleteDedicatedConnectorRequest, pb.DeleteDedicatedConnectorResponse,
        lambda tx, r: life.delete(tx, r.name, r.etag, version=r.version),
    )  # fmt: skip

    def fields(self, made: Made) -> dict[str, Any]:
        """What an answer has of a dedicated connector that was written, and of the operation that was begun."""
        connector, operation = made
        shown = {"dedicated_connector": self._shown(self._snapshot, connector, operation)}
        return shown if operation is None else shown | {"operation": operation_message(operation)}

    @property
    def _snapshot(self) -> Snapshot:
        return self.parts.store.snapshot

    def _shown(
        self,
        snapshot: Snapshot,
        connector: DedicatedConnector,
        under_way: Operation | None,
        *,
        with_secrets: bool = False,
    ) -> dedicated_connector_pb2.DedicatedConnector:
        """A dedicated connector with all that is known of it."""
        made = dedicated_message(connector, with_secrets=with_secrets)
        status, reported = made.status, self._reported(snapshot, connector)
        if reported is not None:
            status.connector.CopyFrom(reported)
        state, failure = standing(connector, under_way, snapshot, reported)
        status.state = dedicated_connector_pb2.DedicatedConnectorState.Value(f"DEDICATED_CONNECTOR_STATE_{state}")
        status.code, status.message = ("", "") if failure is None else (failure.code, failure.message)
        if under_way is not None:
            status.message = under_way.message
        cluster = snapshot.worker_clusters.get(connector.name)
        status.workers = 0 if cluster is None else cluster.status.ready_workers
        return made

    def _reported(self, snapshot: Snapshot, connector: DedicatedConnector) -> Connector | None:
        """Its connector as its workers reported it last; None where they are stopped or silent. Reports of an earlier
        incarnation count for nothing."""
        reports, cluster = self.parts.reports, snapshot.worker_clusters.get(connector.name)
        if cluster is None or cluster.status.state is ClusterState.STOPPED:
            return None
        if not reports.connectors.reported(connector.name):
            return None
        found = reports.connectors.one(connector.name, connector.spec.connector)
        if found is None or not connector.connector_uid or found.uid != connector.connector_uid:
            return None
        return reports.with_lag(found, snapshot.workloads_in(WorkloadKind.WORKER, connector.name))


def services(parts: Parts) -> list[Service]:
    """The gRPC services of dedicated connectors."""
    add = grpc.add_DedicatedConnectorServiceServicer_to_server
    return [service("connect", "DedicatedConnectorService", add, DedicatedConnectorApi(parts))]
