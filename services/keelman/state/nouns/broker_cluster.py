"""Broker clusters: Kafka clusters that worker clusters use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keelman.api.connect.v1 import broker_cluster_pb2
from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1 import broker_cluster_service_pb2_grpc as grpc
from keelman.model.cluster import BrokerCluster, BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.state.clusters import broker_clusters
from keelman.state.clusters.broker_tls import TRUSTED, with_tls
from keelman.state.clusters.chosen_ports import with_broker_ports
from keelman.state.clusters.removal import check_removal, check_same_removed
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import BROKER_CLUSTER
from keelman.state.resources.transaction import Transaction


def spec_message(spec: BrokerClusterSpec) -> broker_cluster_pb2.BrokerClusterSpec:
    """Returns the message of a broker cluster's spec, complete."""
    said = annotated(spec.annotations)
    if isinstance(spec, ManagedBrokers):
        return broker_cluster_pb2.BrokerClusterSpec(managed=message_of(broker_cluster_pb2.ManagedBrokers, spec), **said)
    return broker_cluster_pb2.BrokerClusterSpec(external=message_of(broker_cluster_pb2.ExternalBrokers, spec), **said)


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


NOUN = Noun(BrokerCluster, broker_cluster_message)


def _sent(spec: BrokerClusterSpec, stored: BrokerClusterSpec | None = None) -> BrokerClusterSpec:
    """Returns the spec that a user sent, with the stored secrets in place of hidden ones."""
    kind = "managed" if isinstance(spec, ManagedBrokers) else "external"
    return kept_spec(spec, stored if isinstance(stored, type(spec)) else None, kind)


class BrokerClusterApi(NounApi[NounParts], grpc.BrokerClusterServiceServicer):
    """Broker clusters."""

    noun = BROKER_CLUSTER
    GetBrokerCluster, ListBrokerClusters = get, list_page

    @writing()
    def CreateBrokerCluster(self, tx: Transaction, request: pb.CreateBrokerClusterRequest) -> BrokerCluster:
        """Creates a broker cluster."""
        spec = _sent(spec_of(request.spec))
        if request.choose_ports:
            spec = with_broker_ports(spec, tx.snapshot, self.parts.chosen_ports)
        authorities = None if self.parts.authorities is None else self.parts.authorities.value
        spec = with_tls(spec, request.name, tx.snapshot, authorities, tx.now)
        return broker_clusters.create(tx, request.name, spec, stopped=request.stopped)

    async def _removal(self, request: pb.UpdateBrokerClusterRequest) -> Any:
        """Returns the brokers' report on those that an update removes."""
        seen = self._snapshot.broker_cluster(request.name)
        return await check_removal(self._snapshot, seen, _changed(request)(seen.spec))

    @writing(before=_removal)
    def UpdateBrokerCluster(
        self, tx: Transaction, request: pb.UpdateBrokerClusterRequest, checked: frozenset[str]
    ) -> BrokerCluster:
        """Changes the spec of a broker cluster."""
        change = _changed(request)
        cluster = tx.snapshot.broker_cluster(request.name)
        check_same_removed(tx.snapshot, cluster, change(cluster.spec), checked)
        return broker_clusters.update(tx, request.name, request.etag, change)

    @writing()
    def DeleteBrokerCluster(self, tx: Transaction, request: pb.DeleteBrokerClusterRequest) -> BrokerCluster:
        """Begins to delete a broker cluster."""
        return broker_clusters.delete(tx, request.name, request.etag)

    @writing()
    def StartBrokerCluster(self, tx: Transaction, request: pb.StartBrokerClusterRequest) -> BrokerCluster:
        """Starts the brokers."""
        return broker_clusters.start(tx, request.name, request.etag)

    @writing()
    def StopBrokerCluster(self, tx: Transaction, request: pb.StopBrokerClusterRequest) -> BrokerCluster:
        """Stops the brokers."""
        return broker_clusters.stop(tx, request.name, request.etag, force=request.force)

    def _shown(self, broker_cluster: BrokerCluster, request: Any) -> broker_cluster_pb2.BrokerCluster:
        message = broker_cluster_message(broker_cluster)
        message.status.observed_generation = self.parts.planned.observed(broker_cluster)
        return message

    def _fields(self, broker_cluster: BrokerCluster, tx: Transaction) -> dict[str, Any]:
        return {BROKER_CLUSTER: broker_cluster_message(broker_cluster)}


def _changed(request: pb.UpdateBrokerClusterRequest) -> Callable[[BrokerClusterSpec], BrokerClusterSpec]:
    """Returns the function that applies a request to a spec."""
    return lambda spec: _sent(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)


API = BrokerClusterApi
