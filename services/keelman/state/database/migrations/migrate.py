"""Brings the database to the newest tables, at start."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from keelman.model.errors import FailedPrecondition

MIGRATIONS = Path(__file__).parent
NEWEST = max(path.name[1:5] for path in (MIGRATIONS / "versions").glob("v[0-9]*.py"))
FIRST = min(path.name[1:5] for path in (MIGRATIONS / "versions").glob("v[0-9]*.py"))
FORMER = "0024"
"""The version with a table for each noun, which the first migration brings over."""
VERSION_TABLE = "alembic_version"
# Two states that start at once on one PostgreSQL take turns; the number only has to be the same in both.
MIGRATION_LOCK = 7410_0001
USED_LOCK = 7410_0002
"""Held by all state services of one PostgreSQL together, or alone by a process that changes the key of its secrets."""


async def migrate(engine: AsyncEngine, to: str = NEWEST) -> None:
    """Runs the migrations that are missing up to a version, all in one transaction; any state service may run them.

    Raises FailedPrecondition for a database that a newer keelman has written, for a version that is too old to be
    brought over, and while another state service of an earlier version uses the tables.
    """
    async with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # Between two statements of a migration there may be much to compute.
            await connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        present = await connection.run_sync(_present)
        if present == to:
            return
        if present is not None and present > NEWEST:
            raise FailedPrecondition(
                f"state.database: its tables have version {present}, this keelman knows versions up to {NEWEST}: "
                "run the newer keelman"
            )
        if present is not None and present < FIRST:
            await _leave_former(connection, present)
        await connection.run_sync(_upgrade, to)


async def _leave_former(connection: AsyncConnection, present: str) -> None:
    """Has the migrations begin with the first. Raises FailedPrecondition for another version than that before it, and
    while a state service uses that one's tables."""
    if present != FORMER:
        raise FailedPrecondition(
            f"state.database: its tables have version {present}, this keelman brings over version {FORMER}: run a "
            "keelman in between first"
        )
    if connection.dialect.name == "postgresql":
        is_free = sa.text(f"SELECT pg_try_advisory_xact_lock({USED_LOCK})")
        if not await connection.scalar(is_free):
            raise FailedPrecondition(
                "state.database: state services of an earlier keelman use this database, and its tables become others "
                "now: stop all of them, then start this one",
                reason="IN_USE",
            )
    await connection.execute(sa.text(f"DELETE FROM {VERSION_TABLE}"))


def _present(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return version


def _upgrade(connection: sa.Connection, to: str) -> None:
    # Imported here because most starts need no migration and Alembic is slow to import.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
