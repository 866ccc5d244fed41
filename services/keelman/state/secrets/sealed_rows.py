"""Opens a database's secrets at start with its key, seals values that an earlier keelman wrote in the clear, and seals
all of them with another key."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from keelman.api.event.v1 import event_pb2
from keelman.connect.config.secret_keys import shown, shown_json
from keelman.model.errors import FailedPrecondition
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.database import open_database
from keelman.state.database.key_source import KeySource, made_key, new_key_file, read_keys, setting_of
from keelman.state.database.migrations.migrate import MIGRATION_LOCK, USED_LOCK
from keelman.state.database.sealing import Sealer, wrong_key
from keelman.state.database.tables import AUTHORITY, AuthorityRow, OutboxRow, RequestRow, ResourceRow, SealingRow
from keelman.state.resources.hidden import PROPERTIES
from keelman.state.resources.sealed import with_secrets

log = get_logger()
ROWS_AT_ONCE = 100
"""The number of rows sealed without a pause."""
_AREAS = ("connect", "node")
_MESSAGES = ((OutboxRow, "revision", "payload", ""), (RequestRow, "request_id", "answer", "method"))
"""Rows with messages of the wire: their key, the bytes, and the column that names the message; without one it is an
event."""


async def open_sealer(engine: AsyncEngine, source: KeySource) -> Sealer:
    """Opens the sealer of a migrated database. The first start makes the key file if there is none, and seals all that
    is stored.

    Raises FailedPrecondition naming the key's source: KEY_MISSING if the file is gone, KEY_WRONG if it is another one;
    and as `read_keys` and `made_key`.
    """
    # A command may take its time, and an idle transaction is ended. Of two that start at once with one file the second
    # reads the key that the first has made within its turn.
    printed = () if isinstance(source, Path) else await asyncio.to_thread(read_keys, source)
    async with engine.begin() as connection:
        await _take_turn(connection)
        row = (await connection.execute(sa.select(_table(SealingRow)))).one_or_none()
        if row is not None:
            return _sealer_of(row.proof, row.handed_on, source, printed)
        key = made_key(source) if isinstance(source, Path) else printed[0]
        sealer = _with_proof(Sealer(key, source))
        sealed = await reseal(connection, sealer.seal)
        hidden = await _hide_messages(connection)
        await write_proof(connection, sealer)
    if sealed or hidden:
        log.info("secrets_sealed", rows=sealed, messages=hidden, key_file=str(source))
        await wipe(engine)
    return sealer


async def rekey_file(url: str, file: Path) -> int:
    """Seals a database that no state service uses with a new key, which replaces the old one in its file; returns the
    number of rows.

    May be cut off anywhere: the next start finds out which of the keys is the right one. Raises as `open_database` and
    `open_sealer`, and FailedPrecondition while a state service uses PostgreSQL.
    """
    async with open_database(url) as database, _used_by_nobody(database.engine):
        return await _rekey(database.engine, file)


@contextlib.asynccontextmanager
async def _used_by_nobody(engine: AsyncEngine) -> AsyncIterator[None]:
    """Keeps state services off a PostgreSQL; an SQLite file has a lock of its own."""
    if engine.dialect.name != "postgresql":
        yield
        return
    async with engine.connect() as connection:
        if not await connection.scalar(sa.text(f"SELECT pg_try_advisory_lock({USED_LOCK})")):
            raise FailedPrecondition(
                "a state service uses this database: stop all of them, then change the key", reason="IN_USE"
            )
        yield


async def _rekey(engine: AsyncEngine, file: Path) -> int:
    old = await open_sealer(engine, file)
    beside = new_key_file(file)
    beside.unlink(missing_ok=True)
    new = _with_proof(Sealer(made_key(beside), file))
    async with engine.begin() as connection:
        await _take_turn(connection)
        rows = await reseal(connection, lambda spec, *place: new.seal(old.open(spec, *place), *place))
        await write_proof(connection, new)
    beside.replace(file)
    await wipe(engine)
    return rows


def _sealer_of(proof: str, handed_on: str, source: KeySource, printed: Sequence[bytes]) -> Sealer:
    """Returns the sealer for a database's proof, with the keys of the file, or with those that the command has
    printed."""
    if not isinstance(source, Path):
        return Sealer(printed[0], source, printed[1:]).after(proof, handed_on)
    for place in (source, new_key_file(source)):
        try:
            first, *others = read_keys(place)
            sealer = Sealer(first, source, others).after(proof, handed_on)
        except (FileNotFoundError, FailedPrecondition):
            continue
        if place != source:
            place.replace(source)  # a change of the key was cut off after its commit
        return sealer
    if source.exists():
        raise wrong_key(source, "the stored values were sealed with another key")
    raise FailedPrecondition(
        f"{setting_of(source)}: {str(source)!r} does not exist, and this database's secrets are sealed with the key in "
        "it: put it back from its backup, or from the host where the state service ran before",
        reason="KEY_MISSING",
        metadata={"key_file": str(source)},
    )


def _with_proof(sealer: Sealer) -> Sealer:
    return dataclasses.replace(sealer, proof=sealer.made_proof())


async def write_proof(connection: AsyncConnection, sealer: Sealer, handed_on: str = "", at: int = 0) -> None:
    """Stores the proof of the key that seals all, and hands that key on for a while, since `at`, to holders of the
    former key."""
    table = _table(SealingRow)
    await connection.execute(sa.delete(table))
    await connection.execute(
        sa.insert(table), [{"id": 1, "proof": sealer.proof, "handed_on": handed_on, "change_time": at}]
    )


async def _take_turn(connection: AsyncConnection) -> None:
    if connection.dialect.name == "postgresql":
        await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))


async def reseal(connection: AsyncConnection, change: Callable[..., Any]) -> int:
    """Writes every row of which `change` changes the spec; returns their number."""
    table, changed = _table(ResourceRow), []
    rows = (await connection.execute(sa.select(table.c.noun, table.c.name, table.c.payload))).all()
    for number, (noun, name, payload) in enumerate(rows, 1):
        if (new := with_secrets(payload, noun, name, change)) != payload:
            changed.append({"of_noun": noun, "of_name": name, "payload": new})
        await _go_on(connection, number)
    if changed:
        place = (table.c.noun == sa.bindparam("of_noun"), table.c.name == sa.bindparam("of_name"))
        await connection.execute(sa.update(table).where(*place), changed)
    return len(changed) + await _reseal_authority(connection, change)


async def _go_on(connection: AsyncConnection, number: int) -> None:
    """Sends the database a statement now and then: PostgreSQL ends an idle transaction, and the rest of the process
    gets its turn meanwhile."""
    if number % ROWS_AT_ONCE == 0:
        await connection.execute(sa.select(1))


async def _reseal_authority(connection: AsyncConnection, change: Callable[..., Any]) -> int:
    """Does the same with the private keys of the installation's CAs."""
    table = _table(AuthorityRow)
    rows = (await connection.execute(sa.select(table.c.id, table.c.secret))).all()
    for number, secret in rows:
        sealed = change({"secret": secret}, AUTHORITY)["secret"]
        await connection.execute(sa.update(table).where(table.c.id == number).values(secret=sealed))
    return len(rows)


async def _hide_messages(connection: AsyncConnection) -> int:
    """Hides the secrets in events that are not published yet or kept for watches, and in answers kept for repeats."""
    count = 0
    for row, key, column, kind in _MESSAGES:
        table = _table(row)
        columns = [table.c[key], table.c[column], *([table.c[kind]] if kind else [])]
        changes = []
        rows = (await connection.execute(sa.select(*columns))).all()
        for number, (name, data, *method) in enumerate(rows, 1):
            message = _answer_of(method[0]) if method else event_pb2.Event()
            if message is not None and data:
                message.ParseFromString(data)
                hide(message)
                if (new := message.SerializeToString(deterministic=True)) != data:
                    changes.append({"key": name, "new": new})
            await _go_on(connection, number)
        if changes:
            statement = sa.update(table).where(table.c[key] == sa.bindparam("key"))
            await connection.execute(statement.values({column: sa.bindparam("new")}), changes)
        count += len(changes)
    return count


def _answer_of(method: str) -> Message | None:
    for area in _AREAS:
        try:
            message_type = descriptor_pool.Default().FindMessageTypeByName(f"keelman.api.{area}.v1.{method}Response")
        except KeyError:
            continue
        return message_factory.GetMessageClass(message_type)()
    return None


def hide(message: Any) -> None:
    """Hides the secrets in a message of the wire and in those within it."""
    for field, value in message.ListFields():
        if field.name in PROPERTIES:
            value.update(shown(value))
        elif field.message_type is None:
            continue
        elif field.message_type.full_name == "google.protobuf.Struct":
            value.update(shown_json(MessageToDict(value)))
        elif not field.message_type.GetOptions().map_entry:
            for inner in [value] if isinstance(value, Message) else value:
                hide(inner)


async def wipe(engine: AsyncEngine) -> None:
    """Removes overwritten values of an SQLite database from the free pages of its file and from its log."""
    if engine.dialect.name != "sqlite":
        return
    async with engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection  # neither may run in a transaction
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            await driver.execute(statement)


def _table(row: Any) -> sa.Table:
    table: sa.Table = row.__table__
    return table
