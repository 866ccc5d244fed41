"""The events of a connector watch for a caller whose role is for one worker cluster alone."""

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges, ConnectorName, UnreachableClusters
from keelman.api.connect.v1.connector_service_pb2 import WatchConnectorsResponse
from keelman.gateway.access.scopes import CONNECTOR_CHANGES
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
