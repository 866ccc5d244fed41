"""Broker clusters: Kafka clusters that worker clusters use."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON
from sqlmodel import Field

from keelman.api.connect.v1 import broker_cluster_pb2
from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1 import broker_cluster_service_pb2_grpc as grpc
from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    new_cluster_id,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules.names import MAX_NAMED
from keelman.model.workload import WorkloadKind
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.state.clusters.broker_checks import check, check_change
from keelman.state.clusters.broker_tls import TRUSTED, with_kept_tls, with_tls
from keelman.state.clusters.chosen_ports import with_broker_ports
from keelman.state.clusters.credentials import with_credentials
from keelman.state.clusters.goals import ClusterColumns, check_not_deleted, saved, with_goal
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.clusters.removal import check_removal, check_same_removed
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, Steps, get, list_page, rpc, verb, writing
from keelman.state.resources.snapshot import BROKER_CLUSTER

if TYPE_CHECKING:
    from keelman.state.resources.store import Transaction


class BrokerClusterRow(ClusterColumns, table=True):
    """A broker cluster; `spec`, `seen` and `status` are JSON."""

    __tablename__ = "broker_cluster"
    kafka_cluster_id: str
    reachable: bool | None
    seen: dict[str, Any] = Field(sa_type=JSON)
    force: bool


def spec_message(wanted: BrokerClusterSpec) -> broker_cluster_pb2.BrokerClusterSpec:
    """Returns the message of a broker cluster's spec, complete."""
    said = annotated(wanted.annotations)
    if isinstance(wanted, ManagedBrokers):
        return broker_cluster_pb2.BrokerClusterSpec(
            managed=message_of(broker_cluster_pb2.ManagedBrokers, wanted), **said
        )
    return broker_cluster_pb2.BrokerClusterSpec(external=message_of(broker_cluster_pb2.ExternalBrokers, wanted), **said)


def spec_of(message: broker_cluster_pb2.BrokerClusterSpec) -> BrokerClusterSpec:
    """Returns the spec of a message; raises InvalidArgument when neither kind is given."""
    match message.WhichOneof("kind"):
        case "managed":
            return value_of(ManagedBrokers, message.managed, annotations=annotations_of(message))
        case "external":
            return value_of(ExternalBrokers, message.external, annotations=annotations_of(message))
        case _:
            raise InvalidArgument.of("spec", "", "managed (nodes to run brokers on) or external (bootstrap_servers)")


def broker_cluster_message(cluster: BrokerCluster) -> broker_cluster_pb2.BrokerCluster:
    """Returns a broker cluster as users and events see it."""
    spec, client = shown_spec(cluster.spec), {}
    if isinstance(spec, ManagedBrokers) and spec.client_properties:
        client = {**spec.client_properties, TRUSTED: cluster.spec.client_properties[TRUSTED]}  # the CA is public
    status = message_of(
        broker_cluster_pb2.BrokerClusterStatus, cluster.status, kafka_cluster_id=cluster.kafka_cluster_id,
        client_properties=client,
    )  # fmt: skip
    return message_of(broker_cluster_pb2.BrokerCluster, cluster, spec=spec_message(spec), status=status)


NOUN = Noun(BrokerCluster, BrokerClusterRow, broker_cluster_message)


def _sent(spec: BrokerClusterSpec, stored: BrokerClusterSpec | None = None) -> BrokerClusterSpec:
    """Returns the spec that a user sent, with the stored secrets in place of hidden ones."""
    kind = "managed" if isinstance(spec, ManagedBrokers) else "external"
    return kept_spec(spec, stored if isinstance(stored, type(spec)) else None, kind)


def _check_managed(cluster: BrokerCluster) -> None:
    if isinstance(cluster.spec, ExternalBrokers):
        raise FailedPrecondition(
            f"broker cluster {cluster.name!r} is external: whoever runs its brokers starts and stops them",
            reason="EXTERNAL",
        )


def create(tx: Transaction, name: str, spec: BrokerClusterSpec, *, stopped: bool = False) -> BrokerCluster:
    """Stores a new broker cluster that shall run, or `stopped`, which an external one cannot be."""
    if stopped and isinstance(spec, ExternalBrokers):
        raise InvalidArgument.of("stopped", True, "false: whoever runs external brokers starts and stops them")
    check_free("broker cluster", name, tx.snapshot.broker_clusters)
    spec = with_credentials(spec, tx.snapshot)
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
    """Changes the spec of the broker cluster by `change`."""
    cluster = present(tx, BrokerCluster, name, etag)
    check_not_deleted(cluster)
    spec = with_credentials(with_kept_tls(change(cluster.spec), cluster.spec), tx.snapshot)
    if spec == cluster.spec:
        return cluster
    check_change(cluster.spec, spec, placed=bool(tx.snapshot.workloads_in(WorkloadKind.BROKER, name)))
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
    """Begins to delete a broker cluster and its data."""
    cluster = present(tx, BrokerCluster, name, etag)
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
    """Sets the goal that the brokers run."""
    cluster = present(tx, BrokerCluster, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    return with_goal(tx, cluster, ClusterGoal.RUNNING)


def stop(tx: Transaction, name: str, etag: str, *, force: bool = False) -> BrokerCluster:
    """Sets the goal that the brokers stop, or with `force` that they are killed; their data stays."""
    cluster = present(tx, BrokerCluster, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    running = ", ".join(u.name for u in _users(tx, name) if u.status.state is not ClusterState.STOPPED)
    if running:
        raise FailedPrecondition(
            f"worker clusters {running} run on broker cluster {name!r}: stop these first",
            reason="IN_USE",
            metadata={"worker_clusters": running},
        )
    return with_goal(tx, cluster, ClusterGoal.STOPPED, force=force)


def _users(tx: Transaction, name: str) -> list[WorkerCluster]:
    """Returns its worker clusters, except those that are being deleted and no longer run."""
    return [user for user in tx.snapshot.users_of(name) if not tx.snapshot.is_past(user)]


class BrokerClusterApi(NounApi, grpc.BrokerClusterServiceServicer):
    """Broker clusters."""

    noun = BROKER_CLUSTER
    GetBrokerCluster, ListBrokerClusters = get, list_page
    DeleteBrokerCluster = verb(lambda tx, r: delete(tx, r.name, r.etag))
    StartBrokerCluster = verb(lambda tx, r: start(tx, r.name, r.etag))
    StopBrokerCluster = verb(lambda tx, r: stop(tx, r.name, r.etag, force=r.force))

    @writing
    def CreateBrokerCluster(self, tx: Transaction, request: pb.CreateBrokerClusterRequest) -> BrokerCluster:
        """Creates a broker cluster."""
        spec = _sent(spec_of(request.spec))
        if request.choose_ports:
            spec = with_broker_ports(spec, tx.snapshot, self.parts.chosen_ports)
        spec = with_tls(spec, request.name, tx.snapshot, self.parts.authority, tx.now)
        return create(tx, request.name, spec, stopped=request.stopped)

    async def _removal(self, request: pb.UpdateBrokerClusterRequest) -> Any:
        """Returns the brokers' report on those that an update removes."""
        seen = self._snapshot.broker_cluster(request.name)
        return await check_removal(self._snapshot, seen, _changed(request)(seen.spec))

    def _update(self, tx: Transaction, request: pb.UpdateBrokerClusterRequest, checked: Any) -> BrokerCluster:
        """Changes the spec of a broker cluster."""
        change = _changed(request)
        cluster = tx.snapshot.broker_cluster(request.name)
        check_same_removed(tx.snapshot, cluster, change(cluster.spec), checked)
        return update(tx, request.name, request.etag, change)

    UpdateBrokerCluster = rpc(Steps(_update, before=_removal))

    def _shown(self, found: BrokerCluster, request: Any) -> broker_cluster_pb2.BrokerCluster:
        message = broker_cluster_message(found)
        message.status.observed_generation = self.parts.planned.observed(found)
        return message

    def _fields(self, made: BrokerCluster, tx: Transaction) -> dict[str, Any]:
        return {BROKER_CLUSTER: broker_cluster_message(made)}


def _changed(request: pb.UpdateBrokerClusterRequest) -> Callable[[BrokerClusterSpec], BrokerClusterSpec]:
    """Returns the function that applies a request to a spec."""
    return lambda spec: _sent(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)


API = BrokerClusterApi
