"""The database of a simulated plane: a real SQLite file, used by connections that run in place on fake time.

For one state service it behaves as SQLite does. For several it behaves as PostgreSQL does: writers take turns, the
transaction of a dead process is rolled back, and a NOTIFY reaches all listening connections once its transaction is
stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg

from keelman.state.database.database import Database, sqlite_engine
from keelman.state.replicas.exchange import Exchange
from simulation.network import Network
from support.fake_time import FakeProcess, FakeTimeLoop, own_process

SERVER = "database"
IDLE_SECONDS = 10.0
"""The server ends a transaction that is idle for longer. `database.py` sets the same timeout in PostgreSQL."""
SILENT_SECONDS = 8.0
"""A client gives a connection up after so long without an answer."""


class Server:
    """The database's server."""

    def __init__(self, loop: FakeTimeLoop, network: Network, chance: random.Random, path: Path) -> None:
        self.loop, self.network, self.chance, self.path = loop, network, chance, path
        self.is_away = False
        self.connections: list[Connection] = []
        self.listening: list[Listening] = []
        self._holder: Connection | None = None
        self._waiting: deque[tuple[Connection, asyncio.Future[None]]] = deque()

    def engine(self) -> Any:
        """Returns an engine for the calling process."""

        def connect() -> Connection:
            connection = Connection(self)
            self.connections.append(connection)
            return connection

        return sqlite_engine(self.path, async_creator=connect)

    def go_away(self) -> None:
        """Makes the server unreachable until `come_back`, and rolls open transactions back."""
        self.is_away = True
        for connection in list(self.connections):
            connection.cut()
        self.hang_up(lambda _: True)

    def come_back(self) -> None:
        """Makes the server reachable again."""
        self.is_away = False

    def forget(self, process: FakeProcess) -> None:
        """Rolls the transactions of a dead process back."""
        for item in [c for c in self.connections if c.process is process]:
            item.cut()
        self.hang_up(lambda listening: listening.process is process)

    def hang_up(self, which: Callable[[Listening], bool]) -> None:
        """Ends listening connections."""
        for listening in [listening for listening in self.listening if which(listening)]:
            listening.break_off()

    async def turn(self, connection: Connection) -> None:
        """Waits until no other connection writes."""
        if self._holder is not None:
            future = self.loop.create_future()
            self._waiting.append((connection, future))
            await future
        self._hold(connection)

    def leave(self, connection: Connection) -> None:
        """Removes a closed connection from the queue of writers; its wait, if any, fails."""
        for after, future in self._waiting:
            if after is connection and not future.done():
                future.set_exception(sqlite3.OperationalError("connection closed"))

    def _hold(self, connection: Connection) -> None:
        self._holder = connection
        connection.turns += 1
        self.loop.call_later(IDLE_SECONDS, self._end_idle, connection, connection.turns)

    def _end_idle(self, connection: Connection, turn: int) -> None:
        process = connection.process
        stands_still = process is not None and (process.is_frozen or self.network.is_cut(process.name, SERVER))
        if self._holder is connection and connection.turns == turn and stands_still:
            connection.cut()

    def done(self, connection: Connection) -> None:
        """Ends a transaction; the next writer may begin."""
        if self._holder is not connection:
            return
        self._holder = None
        while self._waiting:
            after, future = self._waiting.popleft()
            if not future.done() and not after.is_cut:
                self._holder = after
                future.set_result(None)
                return

    def notify(self, notes: list[tuple[str, str]]) -> None:
        """Sends the notifications to all listening connections."""
        for item in list(self.listening):
            item.send(notes)


class _Inline:
    """Runs at once the call that a connection's thread would run."""

    def put_nowait(self, work: tuple[asyncio.Future[Any] | None, Callable[[], Any]]) -> None:
        future, function = work
        try:
            result = function()
        except Exception as error:
            if future is not None:
                future.set_exception(error)
        else:
            if future is not None:
                future.set_result(result)


class Connection(aiosqlite.Connection):
    """A connection without a thread, to a server that may be slow, away or unreachable."""

    def __init__(self, server: Server) -> None:
        self._connection: sqlite3.Connection | None = None
        self._running = True
        self._iter_chunk_size = 64
        self._tx = _Inline()  # type: ignore[assignment]
        self._notes: list[tuple[str, str]] = []
        self._server = server
        self.process = own_process()
        self.is_cut = False
        self.turns = 0

    def __del__(self) -> None:
        """Ends no thread, since the connection has none."""

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._open().__await__()

    async def _open(self) -> Connection:
        await self._reach()
        raw = sqlite3.connect(self._server.path, timeout=0, isolation_level=None)
        raw.create_function("pg_notify", 2, lambda channel, payload: self._notes.append((channel, payload)))
        self._connection = raw
        return self

    async def _reach(self) -> None:
        """Delays the request by the network's time."""
        server, name = self._server, self.process.name if self.process is not None else ""
        if server.is_away or self.is_cut:
            raise sqlite3.OperationalError("connection closed")
        if not name:
            return  # the test's own connection
        if server.chance.random() < 0.1:
            await asyncio.sleep(server.chance.random() * 0.01)
        end = server.loop.time() + SILENT_SECONDS
        while server.network.is_cut(name, SERVER) or server.network.is_cut(SERVER, name):
            if server.loop.time() >= end:
                self.is_cut = True
                break
            await asyncio.sleep(0.5)
        if server.is_away or self.is_cut:
            raise sqlite3.OperationalError("connection closed")

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if fn.__name__ == "close":
            return fn()  # calls on a cursor do not reach PostgreSQL's server
        await self._reach()
        if args and args[0] == "BEGIN IMMEDIATE":
            await self._server.turn(self)
        connection = self._connection
        if connection is None or self.is_cut:
            self._server.done(self)
            raise sqlite3.OperationalError("connection closed")
        result = fn(*args, **kwargs)
        self._look(connection)
        return result

    async def commit(self) -> None:
        """Stores the transaction, then sends the answer, which may be lost."""
        await super().commit()
        await self._reach()

    def _look(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            notes, self._notes = self._notes, []
            self._server.done(self)
            self._server.notify(notes)

    async def rollback(self) -> None:
        """Rolls the transaction back and drops its notifications."""
        self._notes.clear()
        if self._connection is not None and not self.is_cut:
            self._connection.rollback()
        self._server.done(self)

    def cut(self) -> None:
        """Cuts the connection; uncommitted changes are lost."""
        self.is_cut = True
        self._end()

    def _end(self) -> None:
        self._notes.clear()
        if self._connection is not None:
            self._connection.rollback()
            self._connection.close()
            self._connection = None
        self._server.done(self)
        self._server.leave(self)
        if self in self._server.connections:
            self._server.connections.remove(self)

    async def close(self) -> None:
        """Ends the connection."""
        self._end()

    def stop(self) -> asyncio.Future[Any] | None:
        """Ends the connection at once."""
        self._end()
        return None


class SharedDatabase(Database):
    """A database that several state services share."""

    @property
    def is_sole(self) -> bool:
        return False


class Listening:
    """A listening connection, with psycopg's `notifies`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.process = own_process()
        self._notes: deque[psycopg.Notify] = deque()
        self._news = asyncio.Event()
        self._due = 0.0
        self._is_broken = False

    def send(self, notes: list[tuple[str, str]]) -> None:
        """Delivers the notifications in order once the network allows it."""
        if not notes or self._is_broken:
            return
        self._due = max(self._due, self._server.loop.time() + self._server.chance.random() * 0.02)
        self._server.loop.call_at(self._due, self._arrive, notes)

    def _arrive(self, notes: list[tuple[str, str]]) -> None:
        name = self.process.name if self.process is not None else ""
        if self._server.network.is_cut(SERVER, name):
            self._due = self._server.loop.time() + 0.5
            self._server.loop.call_at(self._due, self._arrive, notes)
            return
        self._notes.extend(psycopg.Notify(channel, payload, 0) for channel, payload in notes)
        self._news.set()

    def break_off(self) -> None:
        """Ends the connection with an error."""
        self._is_broken = True
        if self in self._server.listening:
            self._server.listening.remove(self)
        self._news.set()

    async def notifies(self, *, timeout: float) -> AsyncIterator[psycopg.Notify]:
        """Yields the notifications that arrive within the timeout."""
        loop = self._server.loop
        end = loop.time() + timeout
        while True:
            if self._is_broken:
                raise psycopg.OperationalError("the connection is lost")
            while self._notes:
                yield self._notes.popleft()
            if loop.time() >= end:
                return
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await self._news.wait()


class SimulatedExchange(Exchange):
    """The exchange over connections to the simulated server."""

    server: Server

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        if self.server.is_away:
            raise psycopg.OperationalError("the database does not answer")
        listening = Listening(self.server)
        self.server.listening.append(listening)
        self._own = self.clock()
        try:
            yield listening
        finally:
            listening.break_off()
