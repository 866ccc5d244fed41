"""Computes the moves that even out the members' loads. Pure: no clock, no randomness."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from keelman.model.work import Work
from keelman.worker.group.scales import Need, Rights, Scales, in_order

Move: TypeAlias = tuple[Work, str, str]
# Whether it runs there already, its weight, and the labels that its connector requires.
Kind: TypeAlias = tuple[bool, int, Need]


@dataclass(slots=True)
class _Pile:
    """The work that a member could give away, by kind; the last of each first. No kind is empty."""

    kinds: dict[Kind, list[Work]] = field(default_factory=dict)

    def take(self, kind: Kind) -> Work:
        work = self.kinds[kind].pop()
        if not self.kinds[kind]:
            del self.kinds[kind]
        return work


def even_out(
    takers: Sequence[str],
    keeping: Mapping[str, set[Work]],
    shares: Mapping[str, set[Work]],
    scales: Scales,
    rights: Rights,
) -> Iterator[Move]:
    """Yields moves, each as work, giver and taker, until none pays; the scales follow.

    Work in `shares` that is new in this round does not run yet and moves first: that costs nothing. The caller brings
    both sets up to date.
    """
    for tasks in (False, True):
        yield from _Evening(takers, keeping, shares, scales, rights, tasks=tasks).moves()


class _Evening:
    """The moves of connectors, or of tasks.

    Each goes from the most to the least loaded member, among the pairs between which a move pays: so no load that is
    the least ever falls, and a giver from which nothing paid stays without a move until the load of a member with
    labels falls far enough. Such givers stay in front of all others, so none of them is a taker.
    """

    def __init__(
        self,
        takers: Sequence[str],
        keeping: Mapping[str, set[Work]],
        shares: Mapping[str, set[Work]],
        scales: Scales,
        rights: Rights,
        *,
        tasks: bool,
    ) -> None:
        self._keeping, self._shares, self._scales, self._rights, self._tasks = keeping, shares, scales, rights, tasks
        # Most loaded first; of equals the first name.
        self._order = sorted((-scales.load(name, tasks=tasks), name) for name in takers)
        self._piles: dict[str, _Pile] = {}
        self._moved: set[Work] = set()
        self._stuck: set[str] = set()
        self._stuck_above: float = -math.inf  # no member may fall to this load without a new look at the stuck givers

    def moves(self) -> Iterator[Move]:
        """Yields the moves until none pays."""
        while (move := self._best()) is not None:
            work, giver, taker = move
            for name in (giver, taker):
                del self._order[bisect_left(self._order, self._entry(name))]
            self._scales.move(work, giver, taker)
            for name in (giver, taker):
                insort(self._order, self._entry(name))
            self._moved.add(work)
            if self._scales.load(giver, tasks=self._tasks) <= self._stuck_above:
                self._stuck.clear()
                self._stuck_above = -math.inf
            yield move

    def _entry(self, name: str) -> tuple[int, str]:
        return -self._scales.load(name, tasks=self._tasks), name

    def _best(self) -> Move | None:
        """Returns the next move; None when none pays."""
        least = -self._order[-1][0] if self._order else 0
        firsts: dict[Need, tuple[int, str] | None] = {}
        for minus_load, giver in self._order:
            if -minus_load - least <= 1:
                return None
            if giver in self._stuck:
                continue
            pile = self._pile(giver)
            lightest = _lightest_kinds(pile)
            entries = [self._first(need, firsts) for need in lightest]
            paying = [
                entry
                for entry, weight in zip(entries, lightest.values(), strict=True)
                if entry is not None and 3 * weight <= 2 * (entry[0] - minus_load)
            ]
            if paying:
                load, taker = max(paying)
                kind = self._best_kind(pile, taker, load - minus_load)
                return pile.take(kind), giver, taker
            self._stuck.add(giver)
            limits = [-minus_load - 1.5 * weight for weight in lightest.values()]
            self._stuck_above = max(self._stuck_above, *limits, -math.inf)
        return None

    def _first(self, need: Need, firsts: dict[Need, tuple[int, str] | None]) -> tuple[int, str] | None:
        """Returns the least loaded member that may have work of this need, as the order has it; None for none."""
        if need not in firsts:
            allowed = self._rights.allowed(need, tasks=self._tasks)
            firsts[need] = next((entry for entry in reversed(self._order) if entry[1] in allowed), None)
        return firsts[need]

    def _pile(self, name: str) -> _Pile:
        """Returns the work of a member, made when it is first needed, without work that it has got by a move.

        The last of each kind belongs to the connector with most tasks there: taking it spreads them.
        """
        if (pile := self._piles.get(name)) is not None:
            return pile
        new = self._shares[name]
        works = [
            work
            for of in (new, self._keeping[name])
            for work in of
            if work.is_task == self._tasks and work not in self._moved
        ]
        seen: Counter[str] = Counter()
        by_rank: list[list[Work]] = []
        for work in in_order(works):
            rank = seen[work.connector]
            if rank == len(by_rank):
                by_rank.append([])
            by_rank[rank].append(work)
            seen[work.connector] += 1
        pile = self._piles[name] = _Pile()
        for work in (work for rank in by_rank for work in rank):
            kind = (work not in new, self._scales.weight(work), self._rights.need(work.connector))
            pile.kinds.setdefault(kind, []).append(work)
        return pile

    def _best_kind(self, pile: _Pile, taker: str, apart: int) -> Kind:
        """Returns the kind that brings the two closest, with the fewest moves, of those that pay and may go there."""
        paying = [
            kind
            for kind in pile.kinds
            if 3 * kind[1] <= 2 * apart and taker in self._rights.allowed(kind[2], tasks=self._tasks)
        ]
        return min(paying, key=lambda kind: (kind[0], abs(apart - 2 * kind[1]), kind))


def _lightest_kinds(pile: _Pile) -> dict[Need, int]:
    """Returns the least weight of the member's work, by need."""
    lightest: dict[Need, int] = {}
    for _, weight, need in pile.kinds:
        lightest[need] = min(weight, lightest.get(need, weight))
    return lightest
