"""Finds whether an order of the operations on one connector explains all answers. Pure.

Operations that overlapped may have happened in any order, others in the order of time. An operation without a sure
answer may have happened at any time since its begin, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chaos.operations.answers import KINDS, sure
from chaos.operations.history import Operation
from chaos.operations.kept import END, NONE, Kept, after, tells

MAX_ORDERS = 300_000
SHOWN = 8
NEAR_SECONDS = 10.0


class Undecided(Exception):
    """There are too many orders to examine."""


class Progress(NamedTuple):
    """One possible history up to a moment: the stored state, and the open operations that are done."""

    kept: Kept
    done: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Contradiction:
    """An answer that no order explains, the possible stored states before it, and the writes around it."""

    operation: Operation
    before: Sequence[Kept]
    writes: Sequence[Operation]

    def __str__(self) -> str:
        told = [f"no order explains {self.operation}", f"  told {str(self.operation.answer)[:600]}"]
        told += [f"  kept, perhaps: {stored}; topics {sorted(stored.topics)}" for stored in self.before[:SHOWN]]
        return "\n".join(told + [f"  written: {write}" for write in self.writes[-SHOWN:]])


def contradiction(history: Iterable[Operation], name: str, *, most: int = MAX_ORDERS) -> Contradiction | None:
    """The first answer about the connector that no order explains; None if all are explained. Raises Undecided.

    The connector does not exist at the begin.
    """
    operations = sorted((o for o in history if tells(o, name)), key=lambda o: o.begun)
    moments = [(o.begun, False, i) for i, o in enumerate(operations)]
    moments += [(o.ended, True, i) for i, o in enumerate(operations) if sure(o)]
    open_: dict[int, Operation] = {}
    ways = {Progress(NONE)}
    for _, ends, number in sorted(moments):
        if not ends:
            open_[number] = operations[number]
            continue
        seen, reached, left = set(ways), set[Progress](), list(ways)
        while left and len(seen) <= most:
            way = left.pop()
            if number in way.done:
                reached.add(Progress(way.kept, way.done - {number}))
            else:
                further = _further(way, open_, name) - seen
                seen |= further
                left += further
        if left:
            raise Undecided(f"more than {most} orders of what was under way with {operations[number]}")
        if not reached:
            return _told(operations[number], ways, operations)
        ways = reached
        del open_[number]
    return None


def _further(way: Progress, open_: Mapping[int, Operation], name: str) -> set[Progress]:
    """The possible histories with one more of the open operations done."""
    further = set()
    for number, operation in open_.items():
        stored = None if number in way.done else after(operation, way.kept, name)
        if stored is not None and (stored != way.kept or sure(operation)):
            further.add(Progress(stored, way.done | {number}))
    return further


def _told(operation: Operation, ways: Iterable[Progress], operations: Iterable[Operation]) -> Contradiction:
    writes = [o for o in operations if o.kind != END and KINDS[o.kind].writes]
    last = [o for o in writes if o.begun <= operation.ended and (not sure(o) or o.ended >= operation.begun)]
    near = [o for o in writes if o not in last and operation.begun - NEAR_SECONDS <= o.ended <= operation.begun]
    return Contradiction(operation, list({way.kept for way in ways}), near + last)
