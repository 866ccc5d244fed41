"""The database: an engine for SQLite or PostgreSQL, and its transactions. Knows no noun."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlmodel import col
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.runtime.processes.lock_file import take_lock
from keelman.state.database.failpoints import hit
from keelman.state.database.migrations.migrate import migrate
from keelman.state.database.sealing import SEALER, Sealer
from keelman.state.database.tables import CounterRow, SealingRow

POSTGRESQL = "postgresql://"
BUSY_SECONDS = 10
IDLE_SECONDS = 10
"""PostgreSQL ends a transaction after this idle time: its process is frozen, or its host is lost, and all other writers
wait for it."""
STOOD_STILL = "25P03"
"""PostgreSQL's code for such an end."""
SILENT_SECONDS = 10
"""How long a connection is kept whose other end is silent."""
REACH: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": SILENT_SECONDS * 1000,
}
"""Options that give up connections to PostgreSQL when the network is cut; the system's defaults take a quarter of an
hour and more."""
OF_SERVER = {
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
    "tcp_user_timeout": f"{SILENT_SECONDS}s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}
"""The same at PostgreSQL's end."""
_WRITES = "keelman_writes"
_REVISION = col(CounterRow.name) == "revision"
_TURN = sa.select(col(CounterRow.value)).where(_REVISION).with_for_update()
COMMITTED = "keelman_committed"
"""The channel of PostgreSQL on which each commit sends its revision to its listeners."""
_KEY = sa.select(col(SealingRow.proof), col(SealingRow.handed_on))
_NOTIFY = sa.select(sa.func.pg_notify(COMMITTED, sa.bindparam("revision")))
_COUNT = sa.update(CounterRow).where(_REVISION).values(value=sa.bindparam("revision"))


@dataclass(slots=True)
class Turn:
    """A writer's turn. `revision` is the last number used: a writer increments it for each change that it numbers."""

    session: AsyncSession
    revision: int


@dataclass(slots=True)
class Database:
    """Opens transactions. All writers of a database take turns on the revision counter's row, so that revisions are
    committed in their order; readers do not wait."""

    engine: AsyncEngine
    sealer: Sealer | None = None
    """Seals and opens the secrets in rows; each session has it."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_sole(self) -> bool:
        """True if no other process can have this database: an SQLite file is locked."""
        return self.engine.dialect.name == "sqlite"

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Opens a session that sees one state of the database and writes nothing."""
        with _translate():
            # READ COMMITTED, which writers need after their turn, would show each query another moment.
            engine = self.engine
            if engine.dialect.name == "postgresql":
                engine = engine.execution_options(isolation_level="REPEATABLE READ")
            async with AsyncSession(engine, expire_on_commit=False, info={SEALER: self.sealer}) as session:
                await self._follow_key(session)
                yield session

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[Turn]:
        """Opens one transaction: all of the block is stored, or nothing."""
        with _translate():
            async with (
                self._turn,
                self.engine.connect() as plain,
                AsyncSession(
                    bind=await plain.execution_options(**{_WRITES: True}),
                    expire_on_commit=False,
                    info={SEALER: self.sealer},
                ) as session,
                session.begin(),
            ):
                connection = await session.connection()
                revision = (await connection.execute(_TURN)).scalar_one()
                await self._follow_key(session)
                turn = Turn(session, revision)
                yield turn
                await session.flush()
                if turn.revision != revision:
                    await connection.execute(_COUNT, {"revision": turn.revision})
                    if not self.is_sole:
                        await connection.execute(_NOTIFY, {"revision": str(turn.revision)})
                hit("revision-counted")

    async def _follow_key(self, session: AsyncSession) -> None:
        """Takes over the key with which another state service has sealed everything."""
        if self.is_sole or self.sealer is None:
            return
        row = (await (await session.connection()).execute(_KEY)).one_or_none()
        if row is not None and row.proof != self.sealer.proof:
            self.sealer = self.sealer.after(row.proof, row.handed_on)
            session.info[SEALER] = self.sealer

    @contextlib.asynccontextmanager
    async def between_writes(self) -> AsyncIterator[AsyncEngine]:
        """Yields the engine, while no writer of this process is in a transaction."""
        with _translate():
            async with self._turn:
                yield self.engine

    @contextlib.asynccontextmanager
    async def aside(self) -> AsyncIterator[AsyncConnection]:
        """Opens one transaction for writes without a revision: on PostgreSQL no writer waits for it."""
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(_translate())
            if self.is_sole:
                await stack.enter_async_context(self._turn)
            plain = await stack.enter_async_context(self.engine.connect())
            connection = await plain.execution_options(**{_WRITES: True})
            await stack.enter_async_context(connection.begin())
            yield connection


@contextlib.asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Opens the database of a path or a postgresql:// URL, migrated. Holds a lock beside an SQLite file while it is
    open.

    Raises FailedPrecondition when another process has the file, InvalidArgument for a path or URL that cannot be used,
    Unavailable when PostgreSQL does not answer.
    """
    with contextlib.ExitStack() as stack:
        if url.startswith(POSTGRESQL):
            engine = _postgresql(url)
        elif "://" in url:
            raise InvalidArgument.of("state.database", _without_password(url), "a path, or a postgresql:// URL")
        else:
            stack.enter_context(_lock(Path(url)))
            engine = sqlite_engine(Path(url))
        try:
            with _translate():
                await migrate(engine)
            yield Database(engine)
        finally:
            await engine.dispose()


def reach(url: str) -> dict[str, Any]:
    """Returns `REACH` without the options that the URL sets itself."""
    said = sa.make_url(url).query
    return {name: value for name, value in REACH.items() if name not in said}


def driver_url(url: str) -> str:
    """Returns a postgresql:// URL as SQLAlchemy has it for our driver."""
    return "postgresql+psycopg" + url.removeprefix("postgresql")


def _postgresql(url: str) -> AsyncEngine:
    options: dict[str, Any] = {"pool_pre_ping": True, "pool_size": 5, "isolation_level": "READ COMMITTED"}
    engine = create_async_engine(driver_url(url), connect_args=reach(url), **options)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for name, value in OF_SERVER.items():
            cursor.execute(f"SET {name} = '{value}'")
        cursor.close()
        connection.commit()

    return engine


class _RolledBack(sqlite3.Connection):
    """Ends its transaction when it is closed, as happens when a task is canceled within one. SQLite itself leaves it
    open, with all writers waiting, until no cursor of it is left: garbage collection may take its time."""

    def close(self) -> None:
        """Closes it."""
        with contextlib.suppress(sqlite3.Error):  # closed already
            self.rollback()
        super().close()


def sqlite_engine(path: Path, **options: Any) -> AsyncEngine:
    """Returns the engine of an SQLite file. `options` are those of SQLAlchemy: the simulation connects in its own
    way."""
    arguments = {"timeout": BUSY_SECONDS, "factory": _RolledBack}
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args=arguments, **options)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # The driver's own BEGIN comes late and is always deferred: two writers would then collide at their first write.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_SECONDS * 1000}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Holds a lock through the file's descriptor, so the kernel releases it however this process ends."""
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for database_file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", ".lock"))):
            if database_file.exists() or database_file in (path, lock):  # SQLite gives its log the mode of the file
                os.close(os.open(database_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                database_file.chmod(0o600)
        file = lock.open("a+", encoding="ascii")
    except OSError as error:
        raise InvalidArgument.of(
            "state.database", str(path), f"a path that can be written ({error.strerror})"
        ) from None
    with file:
        if holder := take_lock(file):
            raise FailedPrecondition(
                f"state.database: {str(path)!r} is in use by another state service (pid {holder}): stop that one, or "
                "set another database",
                reason="DATABASE_IN_USE",
                metadata={"database": str(path), "pid": holder},
            )
        yield


@contextlib.contextmanager
def _translate() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, InternalError) as error:
        if isinstance(error, InternalError) and getattr(error.orig, "sqlstate", "") != STOOD_STILL:
            raise
        raise Unavailable(f"the database does not answer: {error.orig}", reason="DATABASE_UNAVAILABLE") from error


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return head.rpartition(":")[0] + ":[hidden]@" + tail if at and head.count(":") > 1 else url
