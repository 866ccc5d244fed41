"""A lease of one of the state services of a database: who has it does what only one may do.

Whoever has the lease's row with its present epoch has it, and every write is checked against that epoch in its own
transaction. A process takes the row over when its beat stood still for the lease time by its own monotonic clock, so
no two wall clocks are compared.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlmodel import col, select

from keelman.model.errors import Conflict
from keelman.state.database import Database
from keelman.state.tables import LeaseRow

if TYPE_CHECKING:
    from keelman.state.store import Transaction


class LeaseLost(Conflict):
    """Another process has the lease now."""

    reason = "LEASE_LOST"


def identity() -> str:
    """A name of this process that no other has."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@dataclass(slots=True)
class Lease:
    """The lease of a name. `sole` says that no other process can have this database (an SQLite file is locked): no
    lease is waited for."""

    database: Database
    name: str
    sole: bool
    seconds: float = 6.0
    clock: Callable[[], float] = time.monotonic
    holder: str = field(default_factory=identity)
    epoch: int = 0
    _confirmed: float = 0.0
    """When the row was last seen to be this one's."""

    async def take(self) -> None:
        """Waits until the row may be taken, and takes it."""
        seen, since = -1, self.clock()
        while True:
            async with self.database.write() as turn:
                row = await turn.session.get_one(LeaseRow, self.name, with_for_update=True)
                if row.beat != seen:
                    seen, since = row.beat, self.clock()
                if self.sole or not row.holder or self.clock() - since >= self.seconds:
                    row.holder, row.epoch, row.beat = self.holder, row.epoch + 1, row.beat + 1
                    self.epoch, self._confirmed = row.epoch, self.clock()
                    return
            await asyncio.sleep(self.seconds / 6)

    async def keep(self) -> None:
        """Runs until cancelled; raises LeaseLost when another process has it."""
        while True:
            await asyncio.sleep(self.seconds / 3)
            await self.confirm()

    async def confirm(self) -> None:
        """Returns when it surely has been this one's a moment ago. Raises LeaseLost."""
        if self.sole or self.clock() - self._confirmed < self.seconds / 4:
            return
        begun = self.clock()
        async with self.database.aside() as connection:
            mine = sa.update(LeaseRow).where(col(LeaseRow.name) == self.name, col(LeaseRow.epoch) == self.epoch)
            if (await connection.execute(mine.values(beat=LeaseRow.beat + 1))).rowcount != 1:
                raise self._lost()
        self._confirmed = begun

    async def check(self, tx: Transaction) -> None:
        """Raises LeaseLost when another process has it at the time of this transaction."""
        statement = select(LeaseRow.epoch).where(col(LeaseRow.name) == self.name)
        if (await tx.session.exec(statement)).one() != self.epoch:
            raise self._lost()

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"another state service has the lease of {self.name} now")
