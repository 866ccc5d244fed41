"""Pages together are the whole list, and each reads no more reports than it shows.

This holds for connectors that are reported, were written a moment ago, or are known to workers only.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.api.connect.v1.connector_report_service_pb2 import ListConnectorReportsResponse
from keelman.api.connect.v1.connector_service_pb2 import ListConnectorsRequest
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.gateway.listing import ConnectorListing, RecentWrites
from keelman.rpc.pages import connector_key
from keelman.state.reports.connector_reports import ConnectorReports
from keelman.workers.connector_messages import is_in
from keelman.workers.rest import connectors as rest

CLUSTERS, SILENT = ("a", "b", "d"), "c"
STATES = (pb.CONNECTOR_STATE_RUNNING, pb.CONNECTOR_STATE_FAILED)
dictionaries = st.dictionaries(st.sampled_from("pqrstuvw"), st.sampled_from(STATES), max_size=8)
written = st.dictionaries(
    st.tuples(st.sampled_from((*CLUSTERS, SILENT)), st.sampled_from("pqrstuvwxyz")),
    st.none() | st.sampled_from(STATES),
    max_size=8,
)


def connector(cluster: str, name: str, state: Any) -> pb.Connector:
    return pb.Connector(worker_cluster=cluster, name=name, state=state)


class Reported:
    """The state service's answers; `shown` counts the connectors in them."""

    def __init__(self, reports: ConnectorReports) -> None:
        self.reports, self.shown = reports, 0

    async def connector_reports(self, request: ListConnectorsRequest) -> ListConnectorReportsResponse:
        clusters = [item for item in CLUSTERS if request.worker_cluster in ("", item)]
        part, token = self.reports.page(clusters, request.state, request.page_size, request.page_token)
        self.shown += len(part)
        unreported = [SILENT] if request.worker_cluster in ("", SILENT) else []
        return ListConnectorReportsResponse(connectors=part, next_page_token=token, unreported=unreported)

    async def reported_connectors(self, connectors: Sequence[pb.Connector]) -> set[tuple[str, str]]:
        names = [f"{connector.worker_cluster}/{connector.name}" for connector in connectors]
        these = self.reports.named(names, CLUSTERS, pb.CONNECTOR_STATE_UNSPECIFIED)
        self.shown += len(these)
        return {(item.worker_cluster, item.name) for item in these}


class Workers:
    """The workers of the cluster without reports."""

    def __init__(self, there: dict[str, Any]) -> None:
        self.there = there

    async def all(self, clusters: Iterable[str]) -> rest.ListedConnectors:
        return rest.ListedConnectors(
            [connector(cluster, name, state) for cluster in clusters for name, state in self.there.items()], {}
        )


async def listed(listing: ConnectorListing, **given_: Any) -> list[pb.Connector]:
    everything: list[pb.Connector] = []
    token = ""
    while True:
        answer = await listing.page(ListConnectorsRequest(page_token=token, **given_))
        assert len(answer.connectors) <= given_["page_size"]
        everything += answer.connectors
        token = answer.next_page_token
        if not token:
            return everything


@settings(max_examples=150, deadline=None)
@given(
    reported=st.fixed_dictionaries(dict.fromkeys(CLUSTERS, dictionaries)), asked=dictionaries, recent=written,
    size=st.integers(1, 7), state=st.sampled_from((pb.CONNECTOR_STATE_UNSPECIFIED, *STATES)),
    only=st.sampled_from(("", *CLUSTERS, SILENT)),
)  # fmt: skip
def test_pages_are_the_list(*, reported: Any, asked: Any, recent: Any, size: int, state: Any, only: str) -> None:
    reports, notes = ConnectorReports(lambda: 0.0), RecentWrites(lambda: 0.0)
    present_connectors = {(SILENT, name): connector(SILENT, name, value) for name, value in asked.items()}
    for cluster, connectors in reported.items():
        for name, value in connectors.items():
            present_connectors[cluster, name] = connector(cluster, name, value)
            reports.fold(ConnectorReport(connector=present_connectors[cluster, name], round="1"), f"{cluster}/{name}")
        reports.close(ConnectorsReport(worker_cluster=cluster, round="1"), cluster)
        reports.hear(cluster)
    for (cluster, name), value in recent.items():
        new_connector = None if value is None else connector(cluster, name, value)
        notes.note(cluster, name, new_connector)
        if cluster == SILENT:
            continue  # its workers have just reported a newer state
        if new_connector is None:
            present_connectors.pop((cluster, name), None)
        else:
            present_connectors.setdefault((cluster, name), new_connector)
    expected = [
        value
        for key, value in sorted(present_connectors.items(), key=lambda pair: connector_key(*pair[0]))
        if only in ("", key[0])
    ]
    source = Reported(reports)
    listing = ConnectorListing(cast(Any, source), cast(Any, Workers(asked)), notes)
    got = asyncio.run(listed(listing, page_size=size, state=state, worker_cluster=only))
    assert got == [item for item in expected if is_in(item, state)]


def test_what_was_written_makes_no_page_dearer() -> None:
    reports, notes = ConnectorReports(lambda: 0.0), RecentWrites(lambda: 0.0)
    for number in range(2000):
        single_connector = connector("a", f"c{number:04}", pb.CONNECTOR_STATE_RUNNING)
        reports.fold(ConnectorReport(connector=single_connector, round="1"), f"a/{single_connector.name}")
    reports.close(ConnectorsReport(worker_cluster="a", round="1"), "a")
    reports.hear("a")
    notes.note("a", "c0005x", connector("a", "c0005x", pb.CONNECTOR_STATE_UNASSIGNED))
    source = Reported(reports)
    page = ListConnectorsRequest(page_size=10, worker_cluster="a")
    answer = asyncio.run(ConnectorListing(cast(Any, source), cast(Any, Workers({})), notes).page(page))
    assert [connector.name for connector in answer.connectors][5:8] == ["c0005", "c0005x", "c0006"]
    assert source.shown == 10
