"""Keeps all resources in the database, and as a snapshot in memory that each commit advances.

A transaction works on a draft of the snapshot; at its end the rows that it changed are written with their events, and
the statuses of the clusters that it touched are derived again, so a stored status always fits the rows behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import sqlalchemy as sa
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.model.errors import InvalidArgument
from keelman.model.workload import WorkloadKind
from keelman.state.clusters.kafka_names import rivals_of, users_of_kafka
from keelman.state.clusters.status import with_status
from keelman.state.database.database import Database, Turn, open_database
from keelman.state.database.failpoints import hit
from keelman.state.database.key_source import KeySource
from keelman.state.database.tables import CounterRow, OutboxRow
from keelman.state.nouns.registry import CREATED, DELETED, NOUNS, UPDATED, event_bytes
from keelman.state.resources.noun import Noun
from keelman.state.resources.rows import micros
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, WORKLOAD, Resource, Snapshot
from keelman.state.secrets.sealed_rows import open_sealer, opened, sealed

R = TypeVar("R", bound=Resource)
CLUSTERS = {WorkloadKind.BROKER: BROKER_CLUSTER, WorkloadKind.WORKER: WORKER_CLUSTER}


class Change(NamedTuple):
    """A commit's change of a resource; `old` is None for a new resource, `new` for a deleted one."""

    noun: str
    name: str
    old: Any
    new: Any


@dataclass(slots=True)
class Transaction:
    """One writing transaction. `before` is the snapshot at its start, `snapshot` includes its writes so far; `now` is
    the time of everything in it."""

    turn: Turn
    before: Snapshot
    snapshot: Snapshot
    now: datetime
    events: list[dict[str, Any]] = field(default_factory=list)
    statements: list[sa.Executable] = field(default_factory=list)
    """For tables that belong to no noun; executed at the end."""

    @property
    def session(self) -> AsyncSession:
        """Returns the session, for tables that belong to no noun."""
        return self.turn.session

    def put(self, resource: R) -> R:
        """Stores a resource that is new or has changed, with its event; returns it with its new etag."""
        noun = NOUNS[resource.NOUN]
        known = resource.name in self.snapshot.resources(noun.name)
        revision = self.turn.revision + 1
        if noun.has_etag:
            resource = dataclasses.replace(cast(Any, resource), update_time=self.now, etag=str(revision))
        self.snapshot.put(resource)
        self._record(resource, UPDATED if known else CREATED)
        return resource

    def drop(self, noun: str, name: str) -> None:
        """Forgets a resource that is gone, with its event."""
        resource = self.snapshot.resources(noun)[name]
        self.snapshot.drop(noun, name)
        self._record(resource, DELETED)

    def _record(self, resource: Resource, kind: Any) -> None:
        self.turn.revision += 1
        self.events.append(
            {
                "revision": self.turn.revision,
                "time": micros(self.now),
                "noun": resource.NOUN,
                "name": resource.name,
                "payload": event_bytes(kind, resource, self.turn.revision, self.now),
            }
        )


class Store:
    """The only access to stored resources: all readers take `snapshot`, all writers a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database
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
                tx = Transaction(turn, self.snapshot, self.snapshot.draft(), self.database.clock())
                yield tx
                settle(tx)
                hit("statuses-derived")
                changes = self._changes(tx.snapshot)
                await write_rows(tx.session, changes, tx.events)
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
                await _read_again(session, draft, noun, name)
            changes = self._changes(draft)
            self.snapshot.advance(draft)
        else:
            loaded = await load(session)
            changes = _differences(self.snapshot, loaded)
            self._snapshot = loaded
        self._revision, self._loaded = revision, True
        self._notify(changes)

    def _changes(self, draft: Snapshot) -> list[Change]:
        found = []
        for noun in NOUNS:
            before = self.snapshot.resources(noun)
            for name, new in draft.changes(noun).items():
                old = before.get(name)
                if old != new:
                    found.append(Change(noun, name, old, new))
        return found


@contextlib.asynccontextmanager
async def open_store(url: str, *, key_file: KeySource | None = None) -> AsyncIterator[Store]:
    """Opens the store of a path or a postgresql:// URL, with all of it read. Secrets are sealed with the key of
    `key_file`; None: in secrets.key beside an SQLite file.

    Raises as `open_database` and `open_sealer`.
    """
    if key_file is None and "://" in url:
        raise InvalidArgument.of("state.key_file", "", "a file: there is none beside a database that is no file")
    async with open_database(url) as database:
        database.sealer = await open_sealer(database.engine, key_file or Path(url).with_name("secrets.key"))
        store = Store(database)
        await store.catch_up()
        yield store


async def load(session: AsyncSession) -> Snapshot:
    """Reads everything from the database, as of one moment."""
    made = Snapshot()
    for noun in NOUNS.values():
        rows = (await (await session.connection()).execute(sa.select(_table(noun.table)))).all()
        made.fill([noun.from_row(opened(session, noun.name, row)) for row in rows])
    return made


async def revision_of(session: AsyncSession) -> int:
    """Returns the number of the last change."""
    return (await session.exec(select(CounterRow.value).where(col(CounterRow.name) == "revision"))).one()


async def next_session(tx: Transaction) -> int:
    """Returns a new session number, never used before."""
    counter = await tx.session.get_one(CounterRow, "session", with_for_update=True)
    counter.value += 1
    return counter.value


def settle(tx: Transaction) -> None:
    """Derives the statuses of the clusters that a transaction touched, and stores those that changed."""
    snapshot = tx.snapshot
    brokers, workers = _touched(tx)
    for name in sorted(brokers):
        cluster = snapshot.broker_clusters.get(name)
        if cluster is not None and (found := with_status(cluster, snapshot, tx.now)) != cluster:
            tx.put(found)
    for name in sorted(workers):
        users = snapshot.worker_clusters.get(name)
        if users is not None and (seen := with_status(users, snapshot, tx.now)) != users:
            tx.put(seen)


def _touched(tx: Transaction) -> tuple[set[str], set[str]]:
    """Returns the broker clusters and worker clusters whose status may change by the transaction's writes."""
    found = {kind: set(tx.snapshot.changes(noun)) for kind, noun in CLUSTERS.items()}
    nodes = set(tx.snapshot.changes(NODE))
    for name, workload in tx.snapshot.changes(WORKLOAD).items():
        for one in (tx.before.workloads.get(name), workload):
            if one is not None and one.kind is WorkloadKind.SPARK:
                nodes.add(one.node)
            elif one is not None:
                found[one.kind].add(one.cluster)
    for node in nodes:
        for workload in tx.snapshot.workloads_on(node):
            if workload.kind in found:
                found[workload.kind].add(workload.cluster)
    return found[WorkloadKind.BROKER], found[WorkloadKind.WORKER] | _sharing_names(tx)


def _sharing_names(tx: Transaction) -> set[str]:
    """Returns the worker clusters that may share a name in Kafka with another, or no longer do, by the transaction's
    writes."""
    found: set[str] = set()
    for name, brokers in tx.snapshot.changes(BROKER_CLUSTER).items():
        known = tx.before.broker_clusters.get(name)
        if known is not None and brokers is not None and known.kafka_cluster_id != brokers.kafka_cluster_id:
            found.update(user.name for some in (tx.before, tx.snapshot) for user in users_of_kafka(name, some))
    for name, cluster in tx.snapshot.changes(WORKER_CLUSTER).items():
        former = tx.before.worker_clusters.get(name)
        if former is not None and (cluster is None or (cluster.goal, cluster.spec) != (former.goal, former.spec)):
            found.update(rival.name for rival in rivals_of(name, former.spec, tx.before))
    return found


async def write_rows(session: AsyncSession, changes: Sequence[Change], events: list[dict[str, Any]]) -> None:
    """Writes the rows of changes and their events."""
    connection = await session.connection()
    nouns = [noun for noun in _in_order() if any(c.noun == noun.name for c in changes)]
    for noun in nouns:
        table, mine = _table(noun.table), [c for c in changes if c.noun == noun.name]
        new = [sealed(session, noun.name, noun.to_row(c.new)) for c in mine if c.old is None]
        changed = [
            sealed(session, noun.name, noun.to_row(c.new)) | {"key": c.name}
            for c in mine
            if c.old is not None and c.new is not None
        ]
        if new:
            await connection.execute(sa.insert(table), new)
            hit("rows-added")
        if changed:
            await connection.execute(_update_by_name(table), changed)
            hit("rows-changed")
    for noun in reversed(nouns):
        table = _table(noun.table)
        gone = [{"key": c.name} for c in changes if c.noun == noun.name and c.new is None]
        if gone:
            await connection.execute(sa.delete(table).where(table.c.name == sa.bindparam("key")), gone)
            hit("rows-deleted")
    if events:
        await connection.execute(sa.insert(_table(OutboxRow)), events)
        hit("events-added")


@cache
def _in_order() -> Sequence[Noun[Any]]:
    """Returns the nouns so that each comes after those that its table refers to."""
    order = {table.name: number for number, table in enumerate(SQLModel.metadata.sorted_tables)}
    return sorted(NOUNS.values(), key=lambda n: order[_table(n.table).name])


@cache
def _update_by_name(table: sa.Table) -> sa.Update:
    return sa.update(table).where(table.c.name == sa.bindparam("key"))


async def _read_again(session: AsyncSession, draft: Snapshot, noun: str, name: str) -> None:
    table = _table(NOUNS[noun].table)
    row = (await (await session.connection()).execute(sa.select(table).where(table.c.name == name))).one_or_none()
    if row is not None:
        draft.put(NOUNS[noun].from_row(opened(session, noun, row)))
    elif name in draft.resources(noun):
        draft.drop(noun, name)


def _differences(old: Snapshot, new: Snapshot) -> list[Change]:
    found = []
    for noun in NOUNS:
        before, after = old.resources(noun), new.resources(noun)
        pairs = ((name, before.get(name), after.get(name)) for name in before.keys() | after.keys())
        found += [Change(noun, *pair) for pair in pairs if pair[1] != pair[2]]
    return found


def _table(row: type[SQLModel]) -> sa.Table:
    found: sa.Table = row.__table__  # type: ignore[attr-defined]
    return found


def subjects_of(changes: Sequence[Change]) -> set[Hashable]:
    """Returns the subjects to wake the hub for: nouns, single resources, and the workloads of nodes."""
    found: set[Hashable] = {change.noun for change in changes}
    found |= {(change.noun, change.name) for change in changes}
    found |= {carried_by(w.node) for c in changes if c.noun == WORKLOAD for w in (c.old, c.new) if w is not None}
    return found


def carried_by(node: str) -> Hashable:
    """Returns the subject of a node's workloads."""
    return ("carried by", node)
