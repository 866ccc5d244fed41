"""Forgets operations that ended long ago, and the oldest if there are too many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from keelman.model.operation import Operation
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.failpoints import hit
from keelman.state.resources.snapshot import OPERATION
from keelman.state.resources.store import ResourceStore

log = get_logger()
AT_ONCE = 500


def to_forget(operations: Iterable[Operation], now: datetime, seconds: float, most: int) -> list[str]:
    """Returns the names of operations that ended so many seconds ago, and of all but the `most` newest that ended, by
    noun. Pure."""
    by_noun: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.has_ended:
            by_noun[operation.target.noun].append(operation)
    names: list[str] = []
    for ended in by_noun.values():
        ended.sort(key=lambda operation: (operation.end_time or operation.update_time, operation.name), reverse=True)
        oldest = now - timedelta(seconds=seconds)
        names += [o.name for n, o in enumerate(ended) if n >= most or (o.end_time or o.update_time) < oldest]
    return sorted(names)


@dataclass(frozen=True, slots=True)
class Retention:
    """A reconciler calls `reconcile` now and then."""

    store: ResourceStore
    seconds: float
    most: int

    async def reconcile(self) -> None:
        """Forgets these operations, some at a time."""
        now = self.store.database.clock()
        gone = to_forget(self.store.snapshot.operations.values(), now, self.seconds, self.most)
        for begin in range(0, len(gone), AT_ONCE):
            async with self.store.write() as tx:
                for name in gone[begin : begin + AT_ONCE]:
                    if name in tx.snapshot.operations:
                        tx.drop(OPERATION, name)
                hit("operations-forgotten")
        if gone:
            log.info("operations_forgotten", count=len(gone))
