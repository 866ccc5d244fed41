"""The holder of a lease, by the epoch of its row, where several processes share a database."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from keelman.state.database.database import Database, open_database
from keelman.state.replicas.lease import Lease, LeaseLost

SECONDS = 0.06
LEADER = "leader"


class Shared(Database):
    """A database that other processes may share."""

    @property
    def is_sole(self) -> bool:
        return False


async def test_who_was_overtaken_stores_nothing_though_it_has_not_heard_of_it(tmp_path: Path) -> None:
    ticks = itertools.count()  # a second per call

    async def check(lease: Lease) -> None:
        async with shared.write() as turn:
            tx: Any = turn
            await lease.check(tx)

    async with open_database(str(tmp_path / "state.db")) as database:
        shared = Shared(database.engine)
        first, second = (Lease(shared, LEADER, SECONDS, lambda: float(next(ticks)), name) for name in ("one", "two"))
        await first.take()
        await check(first)
        await second.take()  # the first holder's beat has not changed for longer than its lease
        assert (first.epoch, second.epoch) == (1, 2)
        with pytest.raises(LeaseLost, match=f"lease of {LEADER}"):
            await check(first)
        await check(second)
        with pytest.raises(LeaseLost):
            await first.renew()
        await first.release()
        await check(second)
