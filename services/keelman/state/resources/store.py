"""Keeps all resources in the database, and as a snapshot in memory that each commit advances.

A transaction works on a draft of the snapshot; at its end the rows that it changed are written with their events, and
the statuses of the clusters that it touched are derived again, so a stored status always fits the rows behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.state.database.database import Database
from keelman.state.database.failpoints import hit
from keelman.state.database.tables import CounterRow, OutboxRow, ResourceRow
from keelman.state.resources.noun import Noun, Nouns
from keelman.state.resources.sealed import opened, sealed
from keelman.state.resources.snapshot import WORKLOAD, Snapshot
from keelman.state.resources.transaction import Change, Transaction


def _table(row: type[SQLModel]) -> sa.Table:
    table: sa.Table = row.__table__  # type: ignore[attr-defined]
    return table


_RESOURCES = _table(ResourceRow)
_SESSIONS = "counter of sessions"
_AT_PLACE = (_RESOURCES.c.noun == sa.bindparam("of_noun"), _RESOURCES.c.name == sa.bindparam("of_name"))


class ResourceStore:
    """The only access to stored resources: all readers take `snapshot`, all writers a transaction.

    `settle` is called at the end of each transaction, to write what follows from its writes.
    """

    def __init__(self, database: Database, nouns: Nouns, settle: Callable[[Transaction], None]) -> None:
        self.database = database
        self.nouns = nouns
        self.settle = settle
        self._snapshot = Snapshot()
        self._revision = 0
        self._listeners: list[Callable[[Sequence[Change]], None]] = []
        self._followers: list[Callable[[Sequence[Mapping[str, Any]]], None]] = []
        self._loaded = False
        self._lock = asyncio.Lock()

    @property
    def snapshot(self) -> Snapshot:
        """The present resources, as far as this process knows."""
        return self._snapshot

    @property
    def revision(self) -> int:
        """The number of the last change in the snapshot."""
        return self._revision

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Opens one transaction: all of the block is stored, or nothing."""
        async with self._lock:
            async with self.database.write() as turn:
                await self._catch_up(turn.session, turn.revision)
                hit("write-begun")
                tx = Transaction(turn, self.snapshot, self.snapshot.draft(), self.database.clock(), self.nouns)
                yield tx
                self.settle(tx)
                hit("statuses-derived")
                changes = self._changes(tx.snapshot)
                await write_rows(tx.session, self.nouns, changes, tx.events)
                for statement in tx.statements:
                    await (await tx.session.connection()).execute(statement)
            # A transaction whose commit was cut off does not get here: the revision shows the next one whether it was
            # stored.
            if tx.events:
                hit("committed")
                self.snapshot.advance(tx.snapshot)
                self._revision = turn.revision
                hit("snapshot-advanced")
                for follower in self._followers:
                    follower(tx.events)
                self._notify(changes)
                hit("listeners-told")

    def listen(self, listener: Callable[[Sequence[Change]], None]) -> None:
        """Calls the listener after each commit, also of other processes, with its changes; it must not wait."""
        self._listeners.append(listener)

    @contextlib.contextmanager
    def listening(self, listener: Callable[[Sequence[Change]], None]) -> Iterator[None]:
        """Does as `listen` within the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def follow(self, follower: Callable[[Sequence[Mapping[str, Any]]], None]) -> None:
        """Gives the follower the rows of the outbox of each commit of this process, before the listeners hear of it."""
        self._followers.append(follower)

    def _notify(self, changes: Sequence[Change]) -> None:
        for listener in self._listeners:
            listener(changes)

    async def catch_up(self) -> None:
        """Reads the writes of other processes to this database."""
        async with self._lock, self.database.read() as session:
            await self._catch_up(session, await revision_of(session))

    async def _catch_up(self, session: AsyncSession, revision: int) -> None:
        """Reads the resources that the outbox lists as changed up to a revision, or all if it does not go back that
        far."""
        if self._loaded and revision == self.revision:
            return
        statement = select(OutboxRow.noun, OutboxRow.name).where(col(OutboxRow.revision) > self.revision)
        changed = (await session.exec(statement)).all() if self._loaded else []
        if self._loaded and len(changed) == revision - self.revision:
            draft = self.snapshot.draft()
            for noun, name in dict.fromkeys(changed):
                await _read_again(session, self.nouns[noun], draft, name)
            changes = self._changes(draft)
            self.snapshot.advance(draft)
        else:
            loaded = await load(session, self.nouns)
            changes = _differences(self.nouns, self.snapshot, loaded)
            self._snapshot = loaded
        self._revision, self._loaded = revision, True
        self._notify(changes)

    def _changes(self, draft: Snapshot) -> list[Change]:
        changes = []
        for noun in self.nouns:
            before = self.snapshot.resources(noun)
            for name, new in draft.changes(noun).items():
                old = before.get(name)
                if old != new:
                    changes.append(Change(noun, name, old, new))
        return changes


async def load(session: AsyncSession, nouns: Nouns) -> Snapshot:
    """Reads everything from the database, as of one moment."""
    snapshot = Snapshot()
    rows = (await (await session.connection()).execute(sa.select(_RESOURCES))).all()
    snapshot.fill([nouns[row.noun].from_row(row.name, row.revision, opened(session, row)) for row in rows])
    return snapshot


async def revision_of(session: AsyncSession) -> int:
    """Returns the number of the last change."""
    return (await session.exec(select(CounterRow.value).where(col(CounterRow.name) == "revision"))).one()


async def next_session(tx: Transaction) -> int:
    """Returns a new session number, never used before."""
    counter: CounterRow | None = tx.session.info.get(_SESSIONS)
    if counter is None:  # the transaction's first
        counter = tx.session.info[_SESSIONS] = await tx.session.get_one(CounterRow, "session", with_for_update=True)
    counter.value += 1
    return counter.value


async def write_rows(
    session: AsyncSession, nouns: Nouns, changes: Sequence[Change], events: list[dict[str, Any]]
) -> None:
    """Writes the rows of changes and their events."""
    connection = await session.connection()
    rows = [(c, sealed(session, nouns[c.noun].to_row(c.new))) for c in changes if c.new is not None]
    if new := [row for change, row in rows if change.old is None]:
        await connection.execute(sa.insert(_RESOURCES), new)
        hit("rows-added")
    if changed := [row | _place(change) for change, row in rows if change.old is not None]:
        await connection.execute(sa.update(_RESOURCES).where(*_AT_PLACE), changed)
        hit("rows-changed")
    if gone := [_place(change) for change in changes if change.new is None]:
        await connection.execute(sa.delete(_RESOURCES).where(*_AT_PLACE), gone)
        hit("rows-deleted")
    if events:
        await connection.execute(sa.insert(_table(OutboxRow)), events)
        hit("events-added")


def _place(change: Change) -> dict[str, str]:
    return {"of_noun": change.noun, "of_name": change.name}


async def _read_again(session: AsyncSession, noun: Noun[Any], draft: Snapshot, name: str) -> None:
    statement = sa.select(_RESOURCES).where(_RESOURCES.c.noun == noun.name, _RESOURCES.c.name == name)
    row = (await (await session.connection()).execute(statement)).one_or_none()
    if row is not None:
        draft.put(noun.from_row(row.name, row.revision, opened(session, row)))
    elif name in draft.resources(noun.name):
        draft.drop(noun.name, name)


def _differences(nouns: Nouns, old: Snapshot, new: Snapshot) -> list[Change]:
    differing = []
    for noun in nouns:
        before, after = old.resources(noun), new.resources(noun)
        pairs = ((name, before.get(name), after.get(name)) for name in before.keys() | after.keys())
        differing += [Change(noun, *pair) for pair in pairs if pair[1] != pair[2]]
    return differing


def subjects_of(changes: Sequence[Change]) -> set[Hashable]:
    """Returns the subjects to wake the hub for: nouns, single resources, and the workloads of nodes."""
    subjects: set[Hashable] = {change.noun for change in changes}
    subjects |= {(change.noun, change.name) for change in changes}
    subjects |= {carried_by(w.node) for c in changes if c.noun == WORKLOAD for w in (c.old, c.new) if w is not None}
    return subjects


def carried_by(node: str) -> Hashable:
    """Returns the subject of a node's workloads."""
    return ("carried by", node)
