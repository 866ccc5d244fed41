"""Dedicated connectors: connectors with a worker cluster of their own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Any

from keelman.api.connect.v1 import dedicated_connector_pb2
from keelman.api.connect.v1 import dedicated_connector_service_pb2 as pb
from keelman.api.connect.v1 import dedicated_connector_service_pb2_grpc as grpc
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.model.connectors.dedicated_connector import SCALING_SECONDS, DedicatedConnector, DedicatedConnectorSpec
from keelman.model.operation import Operation, OperationKind
from keelman.model.workload import WorkloadKind
from keelman.rpc.mapping import message_of
from keelman.rpc.masks import masked
from keelman.state.dedicated import life
from keelman.state.dedicated.reported import reported_of
from keelman.state.dedicated.states import standing
from keelman.state.nouns.dedicated_wire import spec_message, spec_of
from keelman.state.nouns.operation import with_operation
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.checks import check_quota
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.log_delivery import check_buckets, problem_messages
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, Remembered, get, has_labels, list_page, page_of, writing
from keelman.state.resources.snapshot import DEDICATED_CONNECTOR, OPERATION, Snapshot
from keelman.state.resources.transaction import Transaction

Made = tuple[DedicatedConnector, Operation | None]


def dedicated_message(
    connector: DedicatedConnector, *, with_secrets: bool = False
) -> dedicated_connector_pb2.DedicatedConnector:
    """Returns a dedicated connector as events have it: with the stored part of its status."""
    status = message_of(
        dedicated_connector_pb2.DedicatedConnectorStatus, connector,
        worker_cluster=connector.name, version=connector.version,
    )  # fmt: skip
    if connector.failure is not None:
        status.state = dedicated_connector_pb2.DEDICATED_CONNECTOR_STATE_FAILED
        status.code, status.message = connector.failure.code, connector.failure.message
    spec = spec_message(connector.spec if with_secrets else shown_spec(connector.spec))
    return message_of(dedicated_connector_pb2.DedicatedConnector, connector, spec=spec, status=status)


STATUS = ("broker_cluster", "operation", "failure", "updates", "connector_uid", "tasks_max")
NOUN = Noun(DedicatedConnector, dedicated_message, {"status": STATUS})


def _of_origin(connector: DedicatedConnector, own: Origin) -> bool:
    origin = connector.spec.annotations.origin
    pairs = [(own.api, "api"), (own.scope, "scope"), (own.key, "key")]
    return all(not text or (origin is not None and getattr(origin, name) == text) for text, name in pairs)


async def _settled(api: DedicatedConnectorApi, request: Any) -> None:
    """Waits until no automatic scaling of the workers is under way."""
    await api.settled(request.name)


@dataclasses.dataclass(frozen=True, slots=True)
class DedicatedConnectorApi(NounApi[NounParts], grpc.DedicatedConnectorServiceServicer):
    """Dedicated connectors."""

    noun = DEDICATED_CONNECTOR
    _messages: Remembered[DedicatedConnector, dedicated_connector_pb2.DedicatedConnector] = dataclasses.field(
        default_factory=lambda: Remembered(dedicated_message)
    )
    GetDedicatedConnector, ListDedicatedConnectors = get, list_page

    @writing()
    def CreateDedicatedConnector(self, tx: Transaction, request: pb.CreateDedicatedConnectorRequest) -> Made:
        """Stores a dedicated connector and its worker cluster, and begins to bring it up."""
        spec = kept_spec(spec_of(request.spec), None)
        check_buckets("spec.log_delivery", spec.log_delivery, self.parts.buckets)
        name = request.name or life.new_name()
        _check_quota(tx.snapshot, name, spec, 0, request.max_workers_of_scope)
        self.parts.named_brokers.check(spec, tx.snapshot)
        return life.create(tx, name, spec)

    @writing(before=_settled)
    def UpdateDedicatedConnector(
        self, tx: Transaction, request: pb.UpdateDedicatedConnectorRequest, settled: None
    ) -> Made:
        """Changes a dedicated connector."""

        def change(spec: DedicatedConnectorSpec) -> DedicatedConnectorSpec:
            sent = spec_of(masked(spec_message(spec), request.spec, request.update_mask))
            sent = dataclasses.replace(
                sent, connector=sent.connector or spec.connector, topic_prefix=sent.topic_prefix or spec.topic_prefix,
                topic_suffix=sent.topic_suffix or spec.topic_suffix,
            )  # fmt: skip
            return kept_spec(sent, spec)

        before = tx.snapshot.dedicated_connector(request.name).spec.capacity.most_workers
        updated = life.update(
            tx, request.name, request.etag, change,
            version=request.version, skip_health_check=request.skip_health_check,
        )  # fmt: skip
        _check_quota(tx.snapshot, request.name, updated[0].spec, before, request.max_workers_of_scope)
        return updated

    @writing(before=_settled)
    def PauseDedicatedConnector(
        self, tx: Transaction, request: pb.PauseDedicatedConnectorRequest, _settled: None
    ) -> Made:
        """Begins to pause the connector."""
        return life.pause(tx, request.name, request.etag)

    @writing(before=_settled)
    def ResumeDedicatedConnector(
        self, tx: Transaction, request: pb.ResumeDedicatedConnectorRequest, _settled: None
    ) -> Made:
        """Begins to resume the connector."""
        return life.resume(tx, request.name, request.etag)

    @writing(before=_settled)
    def RestartDedicatedConnector(
        self, tx: Transaction, request: pb.RestartDedicatedConnectorRequest, _settled: None
    ) -> Made:
        """Begins to restart the connector."""
        return life.restart(tx, request.name, request.etag, only_failed=request.only_failed)

    @writing()
    def DeleteDedicatedConnector(self, tx: Transaction, request: pb.DeleteDedicatedConnectorRequest) -> Made:
        """Begins to delete the connector."""
        return life.delete(tx, request.name, request.etag, version=request.version)

    def _page(self, request: pb.ListDedicatedConnectorsRequest) -> tuple[list[DedicatedConnector], str]:
        snapshot, labels = self._snapshot, request.labels.items()

        def is_wanted(connector: DedicatedConnector) -> bool:
            return (
                has_labels(connector.spec.annotations.labels, labels)
                and connector.spec.connector.startswith(request.connector_prefix)
                and _of_origin(connector, request.origin)
            )

        return page_of(snapshot.names(DEDICATED_CONNECTOR), snapshot.dedicated_connectors, request, is_wanted)

    def _shown(self, connector: DedicatedConnector, request: Any) -> dedicated_connector_pb2.DedicatedConnector:
        return self._standing(connector, self._under_way(connector), dedicated_message(connector, with_secrets=True))

    def _in_list(self, connector: DedicatedConnector, request: Any) -> dedicated_connector_pb2.DedicatedConnector:
        return self._standing(connector, self._under_way(connector), self._messages.copy(connector.name, connector))

    def _fields(self, result: Made, tx: Transaction) -> dict[str, Any]:
        connector, operation = result
        return with_operation(
            {DEDICATED_CONNECTOR: self._standing(connector, operation, dedicated_message(connector))}, operation
        )

    async def settled(self, name: str) -> None:
        """Waits while the workers of a dedicated connector are scaled automatically."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SCALING_SECONDS):
                with self.parts.commits.subscribe(OPERATION) as changed:
                    while self._is_scaling(name):
                        changed.clear()
                        await changed.wait()

    def _is_scaling(self, name: str) -> bool:
        under_way = self._snapshot.unfinished_operation(DEDICATED_CONNECTOR, name)
        return under_way is not None and under_way.kind is OperationKind.SCALE

    def _under_way(self, connector: DedicatedConnector) -> Operation | None:
        return self._snapshot.unfinished_operation(DEDICATED_CONNECTOR, connector.name)

    def _standing(
        self,
        connector: DedicatedConnector,
        under_way: Operation | None,
        message: dedicated_connector_pb2.DedicatedConnector,
    ) -> dedicated_connector_pb2.DedicatedConnector:
        """Returns the message of a dedicated connector, with its complete status."""
        snapshot = self._snapshot
        status, now = message.status, self.parts.store.database.clock()
        reported = reported_of(connector, snapshot, self.parts.reports, now)
        if reported.is_fresh and reported.connector is not None:
            status.connector.CopyFrom(reported.connector)
        state, failure = standing(connector, under_way, snapshot, reported, now)
        status.state = dedicated_connector_pb2.DedicatedConnectorState.Value(f"DEDICATED_CONNECTOR_STATE_{state}")
        status.code, status.message = ("", "") if failure is None else (failure.code, failure.message)
        if under_way is not None and failure is None:
            status.message = under_way.message
        cluster = snapshot.worker_clusters.get(connector.name)
        workers = snapshot.workloads_in(WorkloadKind.WORKER, connector.name)
        status.log_problems.extend(problem_messages(*(worker.status for worker in workers)))
        status.workers = 0 if cluster is None else cluster.status.ready_workers
        return message


def _check_quota(snapshot: Snapshot, name: str, spec: DedicatedConnectorSpec, former: int, most: int) -> None:
    """Raises Exhausted if a connector that had `former` workers gets more of them, and its scope more than `most`."""
    if (most_workers := spec.capacity.most_workers) <= former:
        return
    others = (other.spec for other in snapshot.dedicated_connectors.values() if other.name != name)
    present = ((other.annotations.origin, other.capacity.most_workers) for other in others)
    check_quota("workers", spec.annotations.origin, present, most_workers, most)


API = DedicatedConnectorApi
