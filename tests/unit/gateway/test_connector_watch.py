"""A watch's events about connectors without reports, which the gateway reads from their workers."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    Connector,
    ConnectorChanges,
)
from keelman.api.connect.v1.connector_report_service_pb2 import UnreportedClusters, WatchConnectorReportsResponse
from keelman.api.connect.v1.connector_service_pb2 import WatchConnectorsRequest
from keelman.gateway import connector_watch
from keelman.gateway.connector_watch import Asked, ConnectorWatch
from keelman.gateway.state import State
from keelman.rpc.watching import KnownConnectors
from keelman.workers.rest.connectors import ListedConnectors, RestConnectors

RUNS = Connector(worker_cluster="a", name="x", state=CONNECTOR_STATE_RUNNING)
FAILED = Connector(worker_cluster="a", name="x", state=CONNECTOR_STATE_FAILED)


def test_first_all_of_a_cluster_then_what_differs() -> None:
    request = Asked()
    request.ask(["a", "b"])
    first = request.news({"a": {"x": RUNS}, "b": {}}, {})
    assert first is not None
    assert (list(first.worker_clusters), list(first.connectors), list(first.gone)) == (["a", "b"], [RUNS], [])
    assert request.news({"a": {"x": RUNS}, "b": {}}, {}) is None
    second = request.news({"a": {"x": FAILED}, "b": {}}, {})
    assert second is not None
    assert (list(second.worker_clusters), list(second.connectors)) == ([], [FAILED])
    last = request.news({"a": {}, "b": {}}, {})
    assert last is not None
    assert [(connector.worker_cluster, connector.name) for connector in last.gone] == [("a", "x")]


def test_one_that_is_reported_again_is_told_of_no_more_and_begins_anew_later() -> None:
    request = Asked()
    request.ask(["a"])
    request.news({"a": {"x": RUNS}}, {})
    request.ask([])
    assert request.news({"a": {}}, {}) is None, "the answer came late"
    request.ask(["a"])
    again = request.news({"a": {"x": RUNS}}, {})
    assert again is not None
    assert list(again.worker_clusters) == ["a"]


def test_who_does_not_answer_is_told_of_once_for_a_reason() -> None:
    request = Asked()
    request.ask(["a"])
    first = request.news({}, {"a": "no answer"})
    assert first is not None
    assert dict(first.unreachable.reasons) == {"a": "no answer"}
    assert request.news({}, {"a": "no answer"}) is None
    again = request.news({"a": {"x": RUNS}}, {})
    assert again is not None
    assert (again.HasField("unreachable"), dict(again.unreachable.reasons)) == (True, {})


class World:
    """A state service and workers. `known` is the view of a client of the watch."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[WatchConnectorReportsResponse] = asyncio.Queue()
        self.listing = ListedConnectors([], {})
        self.known = KnownConnectors()
        self.watch = self.begun()

    def begun(self) -> AsyncGenerator[ConnectorChanges, None]:
        """Opens a stream at another gateway."""
        request = WatchConnectorsRequest(from_revision=self.known.begin())
        return ConnectorWatch(cast(State, self), cast(RestConnectors, self)).changes(request)

    async def watched_connectors(self, request: object) -> AsyncGenerator[WatchConnectorReportsResponse, None]:
        while True:
            yield await self.reports.get()

    async def all(self, clusters: list[str]) -> ListedConnectors:
        return self.listing

    def unreported(self, *clusters: str) -> None:
        self.reports.put_nowait(WatchConnectorReportsResponse(unreported=UnreportedClusters(worker_clusters=clusters)))

    def reported(self, revision: int, *connectors: Connector, snapshot: bool = False) -> None:
        changes = ConnectorChanges(revision=revision, snapshot=snapshot, connectors=connectors)
        self.reports.put_nowait(WatchConnectorReportsResponse(changes=changes))

    async def fold(self) -> tuple[list[str], dict[str, str]]:
        """The known connectors and the unreachable clusters after the next message."""
        async with asyncio.timeout(30):
            self.known.fold(await anext(self.watch))
        return [name for _, name in self.known.connectors], self.known.unreachable


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(connector_watch, "ASK_SECONDS", 0.0)
    return World()


async def test_what_is_known_of_who_does_not_answer_stays(world: World) -> None:
    world.listing = ListedConnectors([RUNS], {})
    world.unreported("a")
    world.reported(7, snapshot=True)
    assert await world.fold() == ([], {})
    assert await world.fold() == (["x"], {})
    world.listing = ListedConnectors([], {"a": "no answer"})
    assert await world.fold() == (["x"], {"a": "no answer"})
    world.listing = ListedConnectors([], {})
    assert await world.fold() == ([], {})
    await world.watch.aclose()


async def test_who_is_reported_again_is_not_said_to_be_away(world: World) -> None:
    world.listing = ListedConnectors([], {"a": "no answer"})
    world.unreported("a")
    world.reported(7, snapshot=True)
    await world.fold()
    assert await world.fold() == ([], {"a": "no answer"})
    world.unreported()
    assert await world.fold() == ([], {})
    await world.watch.aclose()


@pytest.mark.parametrize("unreported", [(), ("a",)])
async def test_another_gateway_takes_back_who_was_away(world: World, unreported: tuple[str, ...]) -> None:
    world.known.unreachable = {"a": "no answer"}
    world.unreported(*unreported)
    world.reported(7, snapshot=True)
    await world.fold()
    if unreported:
        await world.fold()
    assert world.known.unreachable == {}
    await world.watch.aclose()
