"""Watches through real services on both databases, with deaths on the way."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.api.event.v1.event_pb2 import EVENT_TYPE_CREATED, EVENT_TYPE_UPDATED, Event
from keelman.api.event.v1.watch_service_pb2 import WatchRequest, WatchResponse
from keelman.api.event.v1.watch_service_pb2_grpc import WatchServiceStub
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.rpc.watching import KnownResources, watch
from support.eventually import eventually
from support.gateway.system import state_and_gateway
from support.state.service import Clients, StateProcess, state_in_loop

pytestmark = pytest.mark.component
NOWHERE = "127.0.0.1:1"


class Seen:
    """A client that watches for as long as the block runs, and all changes that it received."""

    def __init__(self, address: str, *nouns: str) -> None:
        self.address, self.nouns = address, nouns
        self.known = KnownResources()
        self.events: list[Event] = []
        self.away = 0
        self.begun = False

    async def __aenter__(self) -> "Seen":
        self.task = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> None:
        async with channel(self.address) as link:
            async for present, changed in watch(link, self.nouns, on_away=self._count):
                self.known, self.begun = present, True
                self.events += changed

    def _count(self, _: Unavailable) -> None:
        self.away += 1

    @property
    def names(self) -> list[str]:
        return sorted(n for _, n in self.known.resources)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An SQLite file or a PostgreSQL; other tests also show watches over the latter."""
    if request.param == "sqlite":
        return str(tmp_path / "state.db")
    database: str = request.getfixturevalue("postgresql")()
    return database


async def test_a_watch_outlives_the_gateway_and_the_state_service(database: str, tmp_path: Path) -> None:
    async with state_and_gateway(tmp_path, "--database", database) as (state, gateway):
        async with channel(f"127.0.0.1:{state.port}") as connection, Seen(gateway.address) as seen:
            clients = Clients(connection)
            await eventually(lambda: seen.begun, what="the watch has begun, with nothing to see")
            for number in range(3):
                await clients.create_external(f"a-{number}", NOWHERE)
            await eventually(lambda: seen.names == ["a-0", "a-1", "a-2"], what="the present values are seen")
            gateway.stop(signal.SIGKILL)
            for number in range(3):
                await clients.create_external(f"b-{number}", NOWHERE)
            await gateway.start()
            await eventually(lambda: len(seen.names) == 6, what="the missed changes are seen")
            await state.end(signal.SIGKILL)
            await state.start()
            await clients.create_external("c-0", NOWHERE)
            await eventually(lambda: len(seen.names) == 7, what="the watch continues after the state service's death")
            assert await state.end() == 0
            await state.start()
            await clients.create_external("d-0", NOWHERE)
            await eventually(lambda: len(seen.names) == 8, what="the watch continues after the state service's end")
        assert seen.away >= 3
    assert [e.revision for e in seen.events] == list(range(1, seen.known.revision + 1)), "each change once, in order"
    assert EVENT_TYPE_UPDATED in {e.type for e in seen.events}


async def test_a_watch_sees_what_another_process_writes(postgresql, tmp_path: Path) -> None:
    url = postgresql()
    flags = ("--database", url, "--key-file", str(tmp_path / "secrets.key"))
    first, second = (StateProcess(tmp_path / home, *flags) for home in ("one", "two"))
    await first.start()
    try:
        await second.start()
        async with (
            channel(f"127.0.0.1:{second.port}") as connection,
            Seen(f"127.0.0.1:{first.port}", "broker_cluster") as seen,
        ):
            await eventually(lambda: seen.begun, what="the watch has begun")
            for number in range(5):
                await Clients(connection).create_external(f"ext-{number}", NOWHERE)
            await eventually(lambda: len(seen.names) == 5)
    finally:
        await first.end()
        await second.end()


async def answers(port: int, **fields: object) -> AsyncIterator[WatchResponse]:
    async with channel(f"127.0.0.1:{port}") as link:
        call = WatchServiceStub(link).Watch(WatchRequest(**fields))
        try:
            async for answer in translated_stream(call):
                yield answer
        finally:
            call.cancel()


async def test_what_a_watch_is_told_first(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, port):
        empty = await anext(answers(port, nouns=["node"]))
        assert (empty.snapshot, empty.snapshot_end, len(empty.events)) == (True, True, 0)
        await clients.create_external("one", NOWHERE)
        await clients.create_external("two", NOWHERE)
        whole = await anext(answers(port))
        assert [(e.name, e.type, e.revision) for e in whole.events] == [
            (n, EVENT_TYPE_CREATED, whole.revision) for n in ("one", "two")
        ]
        named = await anext(answers(port, nouns=["broker_cluster"], name="two"))
        assert [e.name for e in named.events] == ["two"]
        resumed = await anext(answers(port, from_revision=whole.revision, name="none"))
        assert (resumed.snapshot, len(resumed.events)) == (False, 0)
        assert resumed.revision >= whole.revision
        since = await anext(answers(port, from_revision=1))
        assert not since.snapshot
        assert [e.revision for e in since.events] == list(range(2, since.revision + 1))
        future = await anext(answers(port, from_revision=whole.revision + 1000))
        assert (future.snapshot_end, [e.name for e in future.events]) == (True, ["one", "two"])
        nouns = "broker_cluster, connector_definition, dedicated_connector, document, node, operation, plugin, "
        with pytest.raises(InvalidArgument, match=rf"nouns\[1\]: 'topics' .* {nouns}"):
            await anext(answers(port, nouns=["node", "topics"]))
        with pytest.raises(InvalidArgument, match="from_revision: -1"):
            await anext(answers(port, from_revision=-1))


async def test_a_watch_ends_with_the_service(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, port):
        await clients.create_external("one", NOWHERE)
        running = answers(port)
        await anext(running)
    with pytest.raises(Unavailable, match="the state service is stopping: watch again"):
        async for _ in running:
            pass


async def test_a_watch_that_reads_nothing_holds_nothing_up(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, port):
        await clients.create_external("one", NOWHERE)
        slow = answers(port, nouns=["broker_cluster"])
        first = await anext(slow)
        for number in range(300):
            await clients.create_external(f"ext-{number:03}", NOWHERE)
        known_resources = KnownResources()
        known_resources.fold(first)
        async with asyncio.timeout(300):
            while len(known_resources.resources) < 301:
                known_resources.fold(await anext(slow))
        await slow.aclose()
