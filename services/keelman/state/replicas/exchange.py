"""Exchanges news among the state services of one PostgreSQL: commits, heartbeats of nodes, and the planner's progress.

They send these with NOTIFY, which writes no table. A process that receives its own heartbeats knows that it receives
those of the others; as long as it does not, it judges no node, and the others miss its news: it sends its agents to
them. https://www.postgresql.org/docs/current/sql-notify.html
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import sqlalchemy as sa

from keelman.model.errors import KeelmanError
from keelman.model.node import NodeFigures
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of, supervise, wait_or_stop
from keelman.state.database.database import COMMITTED, reach
from keelman.state.database.migrations.migrate import USED_LOCK
from keelman.state.replicas.heard import Heard
from keelman.state.replicas.lease import identity
from keelman.state.resources.store import ResourceStore

log = get_logger()
EXCHANGED = "keelman_told"
"""The channel of the messages that they send each other beside commits."""
PAYLOAD_BYTES = 7_500
"""PostgreSQL takes fewer than 8,000 bytes a notification."""
LOOK_SECONDS = 0.5
DEAF_BEATS = 3
"""The number of its own heartbeats in a row that do not come back to a process that is cut off."""


@dataclass(slots=True)
class Exchange:
    """`run` sends and receives."""

    url: str
    store: ResourceStore
    heard: Heard
    beat_seconds: float
    on_cut_off: Callable[[], None]
    """Called again and again while no own message comes back."""
    clock: Callable[[], float] = time.monotonic
    is_cut_off: bool = False
    """True while no own message comes back."""
    _me: str = field(default_factory=identity)
    _own: float = 0.0
    """The time when a message of this process last came back."""
    _sent: float = float("-inf")
    """Nodes' reports from before this time have been sent."""
    _planned: int = 0
    """The revision up to which this process has planned while it led."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _committed: int = 0
    """The newest revision that any process has committed, as far as received."""
    _planned_elsewhere: int = 0
    """The revision up to which another process has planned, as far as received."""
    _commits: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, planned: Callable[[int], None]) -> None:
        """Runs until cancelled, and connects again when the database was away. `planned` is called with
        the revision up to which another state service has planned."""
        self._own = self.clock()
        await supervise(partial(self._exchange, planned), self._watch)

    async def _watch(self) -> None:
        runs_since, pause = self.clock(), min(LOOK_SECONDS, self.beat_seconds / 2)
        while True:
            begun = self.clock()
            await asyncio.sleep(pause)
            now = self.clock()
            if now - begun > pause + self.beat_seconds:
                runs_since = now  # after a halt of this process the messages of that time are still unread
            self.is_cut_off = self._is_deaf and now - runs_since > self.beat_seconds
            if self.is_cut_off:
                self.on_cut_off()

    @property
    def _is_deaf(self) -> bool:
        return self.clock() - self._own > DEAF_BEATS * self.beat_seconds

    async def _exchange(self, planned: Callable[[int], None]) -> None:
        backoff = Backoff(first=0.2, most=2.0)
        while True:
            try:
                async with self._connected() as connection:
                    backoff.reset()
                    await first_of(self._hear(connection, planned), self._catch_up(planned), self._send_news())
            except (psycopg.Error, KeelmanError, OSError) as error:
                if backoff.is_new(str(error)):
                    log.warning("exchange_lost", error=str(error).strip())
            finally:
                self.heard.deaf()
            await asyncio.sleep(backoff.next())

    def planned(self, revision: int) -> None:
        """Called by the leader's planner: everything up to a revision is planned."""
        self._planned = revision
        self._news.set()

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True, **reach(self.url))
        async with connection:
            await connection.execute(f"SELECT pg_advisory_lock_shared({USED_LOCK})")
            for channel in (COMMITTED, EXCHANGED):
                await connection.execute(f"LISTEN {channel}")
            self._own = self.clock()
            yield connection

    async def _hear(self, connection: psycopg.AsyncConnection[Any], planned: Callable[[int], None]) -> None:
        while True:
            async with contextlib.aclosing(connection.notifies(timeout=LOOK_SECONDS)) as notes:
                async for note in notes:
                    await self._take(note.channel, note.payload, planned)
            if self._is_deaf:
                self.heard.deaf()

    async def _take(self, channel: str, payload: str, planned: Callable[[int], None]) -> None:
        if channel == COMMITTED:
            self._committed = max(self._committed, int(payload))
            self._commits.set()
            return
        message = json.loads(payload)
        if message["from"] == self._me:
            self._own = self.clock()
            self.heard.listens()
        else:
            self._planned_elsewhere = max(self._planned_elsewhere, message["planned"])
            if self._planned_elsewhere <= self.store.revision:
                planned(self._planned_elsewhere)
            else:  # the other's progress is still to apply
                self._committed = max(self._committed, self._planned_elsewhere)
                self._commits.set()
            for node, *figures in message["nodes"]:
                self.heard.note(node, NodeFigures(*figures[:_FIGURES]) if figures else None)

    async def _catch_up(self, planned: Callable[[int], None]) -> None:
        """Applies commits of others, and then the planner's progress. It runs beside the receiver, because it waits
        behind all writers of this process, and a receiver that gets nothing for that long takes itself for cut off."""
        while True:
            await self._commits.wait()
            self._commits.clear()
            if self._committed > self.store.revision:
                await self.store.catch_up()
            planned(self._planned_elsewhere)

    async def _send_news(self) -> None:
        """Sends the nodes that reported here, and the planner's progress, as often as nodes report and when there is
        more. Unchanged news is sent again: a message reaches only those who listen then."""
        while True:
            self._news.clear()
            now = self.clock()
            news = [_plain(node, beat.figures) for node, beat in self.heard.newer_than(self._sent) if beat.is_own]
            for part in _parts(news):
                await self._notify({"from": self._me, "planned": self._planned, "nodes": part})
            self._sent = now
            await wait_or_stop(self._news, self.beat_seconds)

    async def _notify(self, message: dict[str, Any]) -> None:
        payload = json.dumps(message, separators=(",", ":"))
        async with self.store.database.aside() as connection:
            await connection.execute(sa.select(sa.func.pg_notify(EXCHANGED, payload)))


_FIGURES = len(dataclasses.fields(NodeFigures))  # another version may send more


def _plain(node: str, figures: NodeFigures | None) -> list[Any]:
    return [node] if figures is None else [node, *dataclasses.astuple(figures)]


def _parts(nodes: Iterable[list[Any]]) -> list[list[list[Any]]]:
    """Returns the nodes in as many messages as they need, at least one."""
    parts: list[list[list[Any]]] = [[]]
    size = 0
    for node in nodes:
        size += len(json.dumps(node)) + 1
        if size > PAYLOAD_BYTES:
            parts.append([])
            size = len(json.dumps(node)) + 1
        parts[-1].append(node)
    return parts
