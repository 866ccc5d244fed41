"""The scopes of calls: what a caller sees and does whose role is for one worker cluster alone."""

from typing import Any, cast

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges, ConnectorName, UnreachableClusters
from keelman.api.connect.v1.connector_service_pb2 import WatchConnectorsResponse
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2 import CreateWorkerClusterRequest
from keelman.gateway.access.scopes import CONNECTOR_CHANGES, NEW_WORKER_CLUSTER
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import Role


def changes(*clusters: str) -> WatchConnectorsResponse:
    actual_changes = ConnectorChanges(
        revision=7,
        worker_clusters=clusters,
        connectors=[Connector(worker_cluster=cluster, name="c") for cluster in clusters],
        gone=[ConnectorName(worker_cluster=cluster, name="d") for cluster in clusters],
        unreachable=UnreachableClusters(reasons=dict.fromkeys(clusters, "no answer")),
    )
    return WatchConnectorsResponse(changes=actual_changes)


def test_changes_of_other_worker_clusters_are_cut_out() -> None:
    answer = changes("mine", "theirs")
    assert CONNECTOR_CHANGES.cut is not None
    CONNECTOR_CHANGES.cut(answer, GatewayCaller("me", Role.VIEWER, frozenset({"mine"})))
    assert answer == changes("mine")
    empty = WatchConnectorsResponse(changes=ConnectorChanges(revision=7))
    CONNECTOR_CHANGES.cut(empty, GatewayCaller("me", Role.VIEWER, frozenset({"mine"})))
    assert not empty.changes.HasField("unreachable")


async def test_a_cluster_that_shares_the_user_of_others_is_a_matter_of_the_installation() -> None:
    assert NEW_WORKER_CLUSTER.find is not None
    own = CreateWorkerClusterRequest(name="mine", spec=WorkerClusterSpec())
    joining = CreateWorkerClusterRequest(name="mine", spec=WorkerClusterSpec(tenant="theirs"))
    assert await NEW_WORKER_CLUSTER.find(own, cast(Any, None)) == ("mine",)
    assert await NEW_WORKER_CLUSTER.find(joining, cast(Any, None)) == ("",)
