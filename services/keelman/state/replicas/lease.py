"""Takes and keeps a lease among the state services of a database: its holder does the work that only one may do.

The process whose epoch is in the lease's row has the lease, and every write is checked against that epoch in its own
transaction. A process takes the row over when its beat has not changed for the lease time by its own monotonic clock,
so no two wall clocks are compared.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select

from keelman.model.errors import Conflict, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.database import Database
from keelman.state.database.tables import HeldRow, LeaseRow
from keelman.state.resources.transaction import Transaction

log = get_logger()


class LeaseLost(Conflict):
    """Another process has the lease now, or may have it."""

    reason = "LEASE_LOST"


def identity() -> str:
    """Returns a unique name of this process."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@dataclass(slots=True)
class Lease:
    """The lease of a name. If no other process can have the database, taking it does not wait. Its row is that of the
    name, or of a key in another table."""

    database: Database
    name: str
    seconds: float = 6.0
    clock: Callable[[], float] = time.monotonic
    holder: str = field(default_factory=identity)
    table: type[HeldRow] = LeaseRow
    key: str | int = ""
    epoch: int = 0
    _confirmed: float = 0.0
    """The time when the row was last seen to be this process's."""

    async def take(self) -> None:
        """Waits until the row may be taken, and takes it; also waits while the database is away."""
        seen, since, outage = -1, self.clock(), Backoff()
        while True:
            try:
                async with self.database.write() as turn:
                    row = await turn.session.get_one(self.table, self.key or self.name, with_for_update=True)
                    if row.beat != seen:
                        seen, since = row.beat, self.clock()
                    is_free = self.database.is_sole or row.holder in ("", self.holder)
                    if is_free or self.clock() - since >= self.seconds:
                        row.holder, row.epoch, row.beat = self.holder, row.epoch + 1, row.beat + 1
                        self.epoch, self._confirmed = row.epoch, self.clock()
                        return
            except Unavailable as error:
                if outage.is_new(error.message):
                    log.warning("lease_waits", lease=self.name, error=error.message)
            await asyncio.sleep(self.seconds / 6)

    async def keep(self) -> None:
        """Runs until cancelled; raises LeaseLost when another process has the lease, or when the database did not
        confirm its holder for the lease time."""
        while True:
            await asyncio.sleep(self.seconds / 3)
            try:
                async with asyncio.timeout(self.seconds / 3):
                    await self.confirm()
            except (Unavailable, TimeoutError) as error:
                if self.clock() - self._confirmed >= self.seconds * 2 / 3:
                    raise self._lost() from error

    async def confirm(self) -> None:
        """Returns once this process surely had the lease a moment ago. Raises LeaseLost."""
        if self.database.is_sole or self.clock() - self._confirmed < self.seconds / 4:
            return
        await self.renew()

    async def renew(self, *statements: sa.Executable, **values: Any) -> None:
        """Counts the beat, sets other columns of the row, and executes more statements in the same transaction. Raises
        LeaseLost."""
        begun = self.clock()
        values["beat"] = self.table.beat + 1
        async with self.database.aside() as connection:
            if (await connection.execute(self._mine().values(values))).rowcount != 1:
                raise self._lost()
            for statement in statements:
                await connection.execute(statement)
        self._confirmed = begun

    async def check(self, tx: Transaction) -> None:
        """Raises LeaseLost when another process has the lease at the time of this transaction."""
        if self.database.is_sole:
            return
        statement = select(self.table.epoch).where(self._row())
        if (await tx.session.exec(statement)).one() != self.epoch:
            raise self._lost()

    async def release(self) -> None:
        """Gives the lease back if this process still has it, so that another need not wait."""
        if not self.epoch:
            return
        try:
            async with asyncio.timeout(self.seconds / 3), self.database.aside() as connection:
                await connection.execute(self._mine().values(holder=""))
        except (Unavailable, TimeoutError) as error:
            log.warning("lease_unreleased", lease=self.name, error=str(error))

    def _mine(self) -> sa.Update:
        """Returns an update of the row while it is this process's."""
        return sa.update(self.table).where(self._row(), col(self.table.epoch) == self.epoch)

    def _row(self) -> sa.ColumnElement[bool]:
        is_it: sa.ColumnElement[bool] = sa.inspect(self.table).primary_key[0] == (self.key or self.name)
        return is_it

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"another state service may have the lease of {self.name} now")
