"""Broker clusters: Kafka clusters that worker clusters use."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field

from keelman.api.connect.v1 import broker_cluster_pb2
from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1 import broker_cluster_service_pb2_grpc as grpc
from keelman.kafka.properties.broker_keys import SET_ELSEWHERE
from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    BrokerClusterStatus,
    BrokersSeen,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    new_cluster_id,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument, Violation
from keelman.model.names import MAX_NAMED
from keelman.model.shapes import LARGEST_PORT, check_labels, check_port, check_routes
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.state.nouns.checks import check_etag, check_free, check_nodes, check_same, known_nodes
from keelman.state.nouns.chosen_ports import with_broker_port
from keelman.state.nouns.clusters import (
    ClusterColumns,
    annotate,
    annotations_of,
    check_not_deleted,
    cluster_fields,
    cluster_message,
    cluster_row,
    saved,
    with_goal,
)
from keelman.state.nouns.hidden import kept_spec, shown_spec
from keelman.state.nouns.kafka_names import check_own_names
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import json_column, plain, read, read_spec
from keelman.state.nouns.serving import labelled_page, verb, written
from keelman.state.nouns.taken import check_broker_port_free, check_origin
from keelman.state.properties import in_field, raise_all
from keelman.state.removal import check_removal, check_same_removed
from keelman.state.snapshot import BROKER_CLUSTER, Snapshot
from keelman.workers.properties.refusals import client_refusals

if TYPE_CHECKING:
    from keelman.state.store import Transaction

M = TypeVar("M", bound=Message)


class BrokerClusterRow(ClusterColumns, table=True):
    """A broker cluster; `spec`, `seen` and `status` are JSON."""

    __tablename__ = "broker_cluster"
    kafka_cluster_id: str
    reachable: bool | None
    seen: dict[str, Any] = Field(sa_column=json_column())


def to_row(cluster: BrokerCluster) -> dict[str, Any]:
    """The values of its row."""
    return cluster_row(cluster) | {
        "kafka_cluster_id": cluster.kafka_cluster_id, "reachable": cluster.reachable, "seen": plain(cluster.seen),
    }  # fmt: skip


def from_row(row: BrokerClusterRow) -> BrokerCluster:
    """The broker cluster of a row."""
    kind: type[BrokerClusterSpec] = ManagedBrokers if "nodes" in row.spec else ExternalBrokers
    return BrokerCluster(
        **cluster_fields(row), spec=read_spec(kind, row.spec), kafka_cluster_id=row.kafka_cluster_id,
        reachable=row.reachable, seen=read(BrokersSeen, row.seen), status=read(BrokerClusterStatus, row.status),
    )  # fmt: skip


def spec_message(wanted: BrokerClusterSpec) -> broker_cluster_pb2.BrokerClusterSpec:
    """What a user wants of a broker cluster, on the wire, complete."""
    spec = broker_cluster_pb2.BrokerClusterSpec()
    match wanted:
        case ManagedBrokers(nodes, properties):
            managed = spec.managed
            managed.nodes.extend(nodes)
            managed.properties.update(properties)
            managed.controllers, managed.port, managed.heap_mb = wanted.controllers, wanted.port, wanted.heap_mb
            managed.routes.update(wanted.routes)
        case ExternalBrokers(bootstrap, properties):
            spec.external.bootstrap_servers = bootstrap
            spec.external.client_properties.update(properties)
    annotate(spec, wanted.annotations)
    return spec


def spec_of(message: broker_cluster_pb2.BrokerClusterSpec) -> BrokerClusterSpec:
    """What a user wants of a broker cluster; raises InvalidArgument when neither kind is given."""
    match message.WhichOneof("kind"):
        case "managed":
            managed = message.managed
            return ManagedBrokers(
                tuple(managed.nodes),
                dict(managed.properties),
                controllers=managed.controllers,
                port=managed.port,
                heap_mb=managed.heap_mb,
                routes=dict(managed.routes),
                annotations=annotations_of(message),
            )
        case "external":
            return ExternalBrokers(
                message.external.bootstrap_servers,
                dict(message.external.client_properties),
                annotations=annotations_of(message),
            )
        case _:
            raise InvalidArgument.of("spec", "", "managed (nodes to run brokers on) or external (bootstrap_servers)")


def broker_cluster_message(cluster: BrokerCluster) -> broker_cluster_pb2.BrokerCluster:
    """A broker cluster as users and events see it."""
    return broker_cluster_pb2.BrokerCluster(
        **cluster_message(cluster),
        spec=spec_message(shown_spec(cluster.spec)),
        status=broker_cluster_pb2.BrokerClusterStatus(
            state=broker_cluster_pb2.ClusterState.Value(f"CLUSTER_STATE_{cluster.status.state}"),
            message=cluster.status.message,
            bootstrap_servers=cluster.status.bootstrap_servers,
            kafka_cluster_id=cluster.kafka_cluster_id,
            stuck=cluster.status.stuck,
        ),
    )


NOUN = Noun(BrokerCluster, BrokerClusterRow, to_row, from_row, broker_cluster_message)


def _sent(spec: BrokerClusterSpec, stored: BrokerClusterSpec | None = None) -> BrokerClusterSpec:
    """The spec that a user sends, with stored secrets where hidden ones came back."""
    kind = "managed" if isinstance(spec, ManagedBrokers) else "external"
    return kept_spec(spec, stored if isinstance(stored, type(spec)) else None, kind)


def check(spec: BrokerClusterSpec, snapshot: Snapshot, name: str = "") -> None:
    """Raises InvalidArgument naming the field, the value and what is legal."""
    match spec:
        case ManagedBrokers(nodes, properties, port=port):
            check_port("spec.managed.port", port, zero="a free one on each node")
            if not nodes:
                raise InvalidArgument.of("spec.managed.nodes", "", "at least one node; " + known_nodes(snapshot))
            check_nodes("spec.managed.nodes", nodes, snapshot)
            check_broker_port_free(name, port, nodes, snapshot)
            _check_quorum(spec, snapshot)
            if spec.heap_mb and spec.heap_mb < 128:
                raise InvalidArgument.of("spec.managed.heap_mb", spec.heap_mb, "0, or at least 128")
            check_routes("spec.managed.routes", spec.routes)
            _check_properties(properties)
        case ExternalBrokers(bootstrap, properties):
            _check_bootstrap(bootstrap)
            raise_all(in_field("spec.external.client_properties", client_refusals(properties)))
    check_labels("spec.labels", spec.annotations.labels)
    check_origin(BROKER_CLUSTER, name, spec.annotations.origin, snapshot)


def _check_properties(properties: Mapping[str, str]) -> None:
    legal = "leave it out: keelman sets it itself, as it does " + ", ".join(SET_ELSEWHERE)
    found: list[Violation] = []
    for key in SET_ELSEWHERE.keys() & properties.keys():
        found += InvalidArgument.of(f"spec.managed.properties.{key}", properties[key], legal).violations
    raise_all(sorted(found, key=lambda one: one.field))


def _check_quorum(spec: ManagedBrokers, snapshot: Snapshot) -> None:
    if spec.controllers not in (0, 1, 3):
        raise InvalidArgument.of("spec.managed.controllers", spec.controllers, "1, 3, or 0 for what fits the nodes")
    if spec.controllers > len(spec.nodes):
        raise InvalidArgument.of(
            "spec.managed.controllers", spec.controllers, f"no more than there are nodes ({len(spec.nodes)})"
        )
    hosts = [snapshot.nodes[node].host for node in spec.nodes] if spec.port else []
    shared = next((host for host in hosts if host and hosts.count(host) > 1), None)
    if shared is not None:
        raise InvalidArgument.of(
            "spec.managed.port", spec.port, f"0 for a free one on each, as nodes share the host {shared}"
        )


def check_change(old: BrokerClusterSpec, new: BrokerClusterSpec) -> None:
    """Raises InvalidArgument for a field that cannot be changed."""
    if isinstance(old, ManagedBrokers) != isinstance(new, ManagedBrokers):
        raise InvalidArgument.of("spec.kind", "external" if isinstance(new, ExternalBrokers) else "managed",
                                 "what it was when the cluster was created")  # fmt: skip
    check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    if isinstance(old, ManagedBrokers) and isinstance(new, ManagedBrokers):
        check_same("spec.managed.controllers", old.controllers, new.controllers)


def _check_bootstrap(text: str) -> None:
    for server in text.split(","):
        host, colon, port = server.strip().rpartition(":")
        legal = colon and host and not any(c.isspace() or c == "/" for c in host) and port.isascii() and port.isdigit()
        if not legal or not 1 <= int(port) <= LARGEST_PORT:
            raise InvalidArgument.of(
                "spec.external.bootstrap_servers", text, "host:port, or several with commas between"
            )


def _check_managed(cluster: BrokerCluster) -> None:
    if isinstance(cluster.spec, ExternalBrokers):
        raise FailedPrecondition(
            f"broker cluster {cluster.name!r} is external: whoever runs its brokers starts and stops them",
            reason="EXTERNAL",
        )


def create(tx: Transaction, name: str, spec: BrokerClusterSpec, *, stopped: bool = False) -> BrokerCluster:
    """A new broker cluster that is asked to run, or `stopped`, which an external one cannot be."""
    if stopped and isinstance(spec, ExternalBrokers):
        raise InvalidArgument.of("stopped", True, "false: whoever runs external brokers starts and stops them")
    check_free("broker cluster", name, tx.snapshot.broker_clusters)
    check(spec, tx.snapshot, name)
    cluster_id = new_cluster_id() if isinstance(spec, ManagedBrokers) else ""
    made = BrokerCluster(
        name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", spec=spec, kafka_cluster_id=cluster_id,
        goal=ClusterGoal.STOPPED if stopped else ClusterGoal.RUNNING,
    )  # fmt: skip
    return saved(tx, made)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[BrokerClusterSpec], BrokerClusterSpec]
) -> BrokerCluster:
    """The broker cluster with the spec that `change` makes of its present one."""
    cluster = _found(tx, name, etag)
    check_not_deleted(cluster)
    spec = change(cluster.spec)
    if spec == cluster.spec:
        return cluster
    check_change(cluster.spec, spec)
    check(spec, tx.snapshot, name)
    changed = dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1, note="")
    if _servers(spec) == _servers(cluster.spec):
        return saved(tx, changed)
    # These servers may be another Kafka, perhaps one where its users' names are taken.
    changed = saved(tx, dataclasses.replace(changed, kafka_cluster_id="", reachable=None))
    for user in tx.snapshot.users_of(name):
        check_own_names(user.name, user.spec, tx.snapshot)
    return changed


def _servers(spec: BrokerClusterSpec) -> str:
    return spec.bootstrap_servers if isinstance(spec, ExternalBrokers) else ""


def delete(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks for the end of a broker cluster and of its data."""
    cluster = _found(tx, name, etag)
    if cluster.goal is not ClusterGoal.DELETED and (users := _users(tx, name)):
        names = ", ".join(u.name for u in users)
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by worker clusters {names}: delete these first",
            reason="IN_USE",
            metadata={"worker_clusters": names},
        )
    if cluster.goal is not ClusterGoal.DELETED and (topics := tx.snapshot.topics_of(name)):
        names = ", ".join(topic.name for topic in topics[:MAX_NAMED])
        more = f" and {len(topics) - MAX_NAMED} more" if len(topics) > MAX_NAMED else ""
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by topics {names}{more}: delete these first",
            reason="IN_USE",
            metadata={"topics": names},
        )
    return with_goal(tx, cluster, ClusterGoal.DELETED)


def start(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks the brokers to run."""
    cluster = _found(tx, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    return with_goal(tx, cluster, ClusterGoal.RUNNING)


def stop(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks the brokers to stop; their data stays."""
    cluster = _found(tx, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    running = ", ".join(u.name for u in _users(tx, name) if u.status.state is not ClusterState.STOPPED)
    if running:
        raise FailedPrecondition(
            f"worker clusters {running} run on broker cluster {name!r}: stop these first",
            reason="IN_USE",
            metadata={"worker_clusters": running},
        )
    return with_goal(tx, cluster, ClusterGoal.STOPPED)


def _users(tx: Transaction, name: str) -> list[WorkerCluster]:
    """Its worker clusters, but for those that are being deleted and run no more."""
    return [user for user in tx.snapshot.users_of(name) if not tx.snapshot.is_past(user)]


def _found(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    cluster = tx.snapshot.broker_cluster(name)
    check_etag(name, etag, cluster.etag)
    return cluster


@dataclass(frozen=True, slots=True)
class BrokerClusterApi(grpc.BrokerClusterServiceServicer):
    """Broker clusters."""

    parts: Parts

    async def GetBrokerCluster(
        self, request: pb.GetBrokerClusterRequest, context: Context
    ) -> pb.GetBrokerClusterResponse:
        """One broker cluster."""
        cluster = self.parts.store.snapshot.broker_cluster(request.name)
        return pb.GetBrokerClusterResponse(broker_cluster=self._observed(cluster))

    async def ListBrokerClusters(
        self, request: pb.ListBrokerClustersRequest, context: Context
    ) -> pb.ListBrokerClustersResponse:
        """A page of broker clusters."""
        part, token = labelled_page(
            self.parts.store.snapshot, BROKER_CLUSTER, request, lambda c: c.spec.annotations.labels
        )
        return pb.ListBrokerClustersResponse(broker_clusters=[self._observed(c) for c in part], next_page_token=token)

    async def CreateBrokerCluster(
        self, request: pb.CreateBrokerClusterRequest, context: Context
    ) -> pb.CreateBrokerClusterResponse:
        """Creates a broker cluster."""

        def work(tx: Transaction) -> dict[str, Any]:
            spec = _sent(spec_of(request.spec))
            if request.choose_ports:
                spec = with_broker_port(spec, tx.snapshot, self.parts.chosen_ports)
            return self.fields(create(tx, request.name, spec, stopped=request.stopped))

        return await written(self.parts.store, request, pb.CreateBrokerClusterResponse, work)

    DeleteBrokerCluster = verb(
        pb.DeleteBrokerClusterRequest, pb.DeleteBrokerClusterResponse, lambda tx, r: delete(tx, r.name, r.etag)
    )
    StartBrokerCluster = verb(
        pb.StartBrokerClusterRequest, pb.StartBrokerClusterResponse, lambda tx, r: start(tx, r.name, r.etag)
    )
    StopBrokerCluster = verb(
        pb.StopBrokerClusterRequest, pb.StopBrokerClusterResponse, lambda tx, r: stop(tx, r.name, r.etag)
    )

    async def UpdateBrokerCluster(
        self, request: pb.UpdateBrokerClusterRequest, context: Context
    ) -> pb.UpdateBrokerClusterResponse:
        """Changes the spec of a broker cluster."""

        def change(spec: BrokerClusterSpec) -> BrokerClusterSpec:
            return _sent(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)

        snapshot = self.parts.store.snapshot
        seen = snapshot.broker_cluster(request.name)
        checked = await check_removal(snapshot, seen, change(seen.spec))

        def work(tx: Transaction) -> BrokerCluster:
            cluster = tx.snapshot.broker_cluster(request.name)
            check_same_removed(tx.snapshot, cluster, change(cluster.spec), checked)
            return update(tx, request.name, request.etag, change)

        return await written(
            self.parts.store, request, pb.UpdateBrokerClusterResponse, lambda tx: self.fields(work(tx))
        )

    def _observed(self, cluster: BrokerCluster) -> broker_cluster_pb2.BrokerCluster:
        message = broker_cluster_message(cluster)
        message.status.observed_generation = self.parts.planned.observed(cluster)
        return message

    def fields(self, made: BrokerCluster) -> dict[str, Any]:
        """A cluster as it was written."""
        return {"broker_cluster": broker_cluster_message(made)}


def services(parts: Parts) -> list[Service]:
    """The gRPC services of broker clusters."""
    add = grpc.add_BrokerClusterServiceServicer_to_server
    return [service("connect", "BrokerClusterService", add, BrokerClusterApi(parts))]
