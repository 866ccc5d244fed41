"""A table of numbered rows that change, and an oracle for the change records of a connector that follows it.

Each change of a row increments its version, so the versions that a reader sees show missed and repeated changes.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

TABLE = "numbered"
SHOWN = 5
CHANGES_AT_ONCE = 10


class NumberedRows:
    """The table in one database. A call may be repeated if the server was killed meanwhile."""

    def __init__(self, url: str) -> None:
        """Creates the tables; a row's last version goes to `gone` when it is deleted."""
        self.url = url
        with self.connected() as connection:
            connection.execute(f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, version INT NOT NULL, words TEXT NOT NULL)")
            connection.execute(f"ALTER TABLE {TABLE} REPLICA IDENTITY FULL")
            connection.execute("CREATE TABLE gone (id INT PRIMARY KEY, version INT NOT NULL)")

    @contextlib.contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection to the database; each statement is a transaction."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield connection

    def add(self, count: int, first: int = 0) -> None:
        """Adds rows of version 0."""
        words = "'row ' || n || ' of a table that is followed by a connector'"
        with self.connected() as connection:
            rows = f"SELECT n, 0, {words} FROM generate_series({first}, {first + count - 1}) AS n"
            connection.execute(f"INSERT INTO {TABLE} {rows}")

    def remove(self, ids: Sequence[int]) -> None:
        """Deletes rows."""
        with self.connected() as connection:
            deleted = f"DELETE FROM {TABLE} WHERE id = ANY(%s) RETURNING id, version"
            connection.execute(f"WITH old AS ({deleted}) INSERT INTO gone SELECT * FROM old", (list(ids),))

    def change(self, first: int, count: int) -> None:
        """Increments the versions of these rows, in one transaction."""
        with self.connected() as connection:
            _change(connection, first, count)

    def versions(self, table: str = TABLE) -> dict[int, int]:
        """The present versions, by row."""
        with self.connected() as connection:
            return dict(connection.execute(f"SELECT id, version FROM {table}").fetchall())

    def judged(self, seen: Iterable[Change], before: Mapping[int, int]) -> RowReport:
        """Reports the faults in the observed changes. `before` holds the versions when the connector was created."""
        return judge(seen, before, self.versions(), self.versions("gone"))

    @contextlib.contextmanager
    def changing(self, rows: int, *, rest: float = 0.005) -> Iterator[Changing]:
        """Changes one row after another during the block; an attempt that the server's end interrupts is repeated."""
        changing = Changing(self, rows, rest)
        thread = threading.Thread(target=changing.work)
        thread.start()
        try:
            yield changing
        finally:
            changing.ended.set()
            thread.join(300)


@dataclass
class Changing:
    """Changes that continue in the background of a test."""

    table: NumberedRows
    rows: int
    rest: float
    made: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Changes rows until it is ended."""
        while not self.ended.is_set():
            with contextlib.suppress(psycopg.Error), self.table.connected() as connection:
                while not self.ended.wait(self.rest):
                    _change(connection, self.made % self.rows, CHANGES_AT_ONCE)
                    self.made += CHANGES_AT_ONCE
            self.ended.wait(0.1)


def _change(connection: psycopg.Connection[Any], first: int, count: int) -> None:
    update = f"UPDATE {TABLE} SET version = version + 1 WHERE id >= %s AND id < %s"
    connection.execute(update, (first, first + count))


@dataclass(frozen=True, slots=True)
class Change:
    """One record of Debezium's: `r` is a row of a snapshot; `first` marks the row that began it."""

    op: str
    id: int
    version: int
    first: bool = False


def change_of(value: bytes) -> Change:
    """The change in a record, with its schema or without."""
    document = json.loads(value)
    envelope = document.get("payload", document)
    row = envelope["after"] or envelope["before"]
    begins = str(envelope["source"].get("snapshot")) in ("first", "first_in_data_collection")
    return Change(envelope["op"], row["id"], row["version"], begins)


@dataclass(frozen=True, slots=True)
class RowReport:
    """The faults, a line each, and Debezium's own repetitions: snapshots that were begun again."""

    wrong: Sequence[str]
    snapshots: int
    repeated: int
    changes: int

    @property
    def clean(self) -> bool:
        """Nothing was lost, doubled or out of order."""
        return not self.wrong

    def __str__(self) -> str:
        some = "; ".join(self.wrong[:SHOWN])
        told = f"{self.changes} changes, {self.snapshots} snapshots that repeated {self.repeated} records"
        return f"{told}; {len(self.wrong)} wrong: {some}" if some else told


def judge(
    seen: Iterable[Change], before: Mapping[int, int], after: Mapping[int, int], gone: Mapping[int, int]
) -> RowReport:
    """Judges one topic. Pure.

    A snapshot that is begun again repeats rows of its former try, which is Debezium's own way; then each row must be
    there once, in the version of that snapshot, and each later change once and in its order. A change before the
    repeated snapshot may be contained in it, and then comes once more after it: Debezium streams from the start of its
    replication slot, which was created at the first try.
    """
    records = list(seen)
    starts = [n for n, record in enumerate(records) if record.first]
    begun = starts[-1] if starts else 0
    wrong: list[str] = []
    earlier = {(record.id, record.version) for record in records[:begun] if record.op != "r"}
    if len(earlier) != sum(record.op != "r" for record in records[:begun]):
        wrong.append("changes were doubled before a snapshot was begun again")
    at: dict[int, int] = {}
    ended: set[int] = set()
    contained: set[tuple[int, int]] = set()
    snapshot: dict[int, int] = {}
    for record in records[begun:]:
        last = at.get(record.id)
        if record.op == "r":
            snapshot[record.id] = record.version
            if last is not None:
                wrong.append(f"row {record.id} is twice in a snapshot")
            elif record.version < before.get(record.id, 0):
                wrong.append(f"row {record.id} has version {record.version}, older than {before[record.id]}")
        elif record.op == "d":
            if record.id in ended or last not in (None, record.version):
                wrong.append(f"row {record.id} is deleted as {record.version} behind {last}")
            ended.add(record.id)
        elif record.op == "c" and (last is not None or record.version != 0):
            wrong.append(f"row {record.id} is made with version {record.version} behind {last}")
        elif record.op == "u" and len(starts) > 1 and last == snapshot.get(record.id, -1) >= record.version:
            if (record.id, record.version) in contained:
                wrong.append(f"row {record.id} changes to {record.version} twice")
            contained.add((record.id, record.version))
            continue
        elif record.op == "u" and last is not None and record.version != last + 1:
            wrong.append(f"row {record.id} goes from version {last} to {record.version}")
        elif record.op == "u" and last is None:
            wrong.append(f"row {record.id} changes to {record.version}, and was never seen")
        at[record.id] = record.version
    for row, version in after.items():
        if at.get(row) != version:
            wrong.append(f"row {row} has version {version}, last seen was {at.get(row)}")
    missed = [row for row in gone if row not in ended and (row in at or row in before)]
    wrong += [f"row {row} was deleted, which was not seen" for row in missed]
    wrong += [f"row {row} was deleted and is there" for row in ended - set(gone)]
    repeated = sum(record.op == "r" for record in records[:begun]) + len(contained)
    return RowReport(wrong, max(1, len(starts)), repeated, sum(record.op != "r" for record in records))


def written_lsn(rows: NumberedRows) -> str:
    """The present end of the server's log."""
    with rows.connected() as connection:
        result = connection.execute("SELECT pg_current_wal_lsn()").fetchone()
    assert result is not None
    return str(result[0])


def confirmed(rows: NumberedRows, slot: str, lsn: str) -> bool:
    """Whether the replication slot has confirmed the log up to this position, so that the server may drop it."""
    query = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
    with rows.connected() as connection:
        result = connection.execute(query, (lsn, slot)).fetchone()
    return bool(result and result[0])
