"""Computes each member's load, and the moves that even it out. Pure: no clock, no randomness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from keelman.model.work import Work
from keelman.worker.group.placement import Labels

Move: TypeAlias = tuple[Work, str, str]
# Whether it runs there already, its weight, and the labels that its connector requires.
Kind: TypeAlias = tuple[bool, int, tuple[tuple[str, str], ...]]


class Scales:
    """The load of each member that takes work: of connectors and of tasks apart."""

    def __init__(
        self,
        takers: Sequence[str],
        keeping: Mapping[str, set[Work]],
        weights: Mapping[Work, int],
        allows: Callable[[Work, str], bool],
    ) -> None:
        """`keeping` is the members' initial work; `allows` tells whether a member may have some work at all."""
        self._takers = takers
        self._weights = weights
        self.allows = allows
        self._loads: Counter[tuple[str, bool]] = Counter()
        self._siblings: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[str] = Counter()
        for name in takers:
            for work in keeping[name]:
                self.put(name, work)

    def weight(self, work: Work) -> int:
        """Returns a task's weight, at least 1; a connector's instance weighs 1."""
        return self._weights.get(work, 1)

    def load(self, name: str, *, tasks: bool) -> int:
        """Returns a member's load of connectors or of tasks."""
        return self._loads[name, tasks]

    def put(self, name: str, work: Work, *, sign: int = 1) -> None:
        """Gives some work to a member, or takes it off with a `sign` of -1."""
        self._loads[name, work.is_task] += sign * self.weight(work)
        self._counts[name] += sign
        if work.is_task:
            self._siblings[name, work.connector] += sign

    def lightest(self, work: Work) -> str | None:
        """Returns the member with the least load, among equals the member with the fewest siblings of the work.

        None when no member may have it.
        """

        def key(name: str) -> tuple[int, int, int, str]:
            siblings = self._siblings[name, work.connector]
            return self._loads[name, work.is_task], siblings, self._counts[name], name

        return min((name for name in self._takers if self.allows(work, name)), key=key, default=None)


@dataclass(slots=True)
class _Pile:
    """The work that a member could give away, by kind; the last of each first."""

    kinds: dict[Kind, list[Work]] = field(default_factory=dict)


def even_out(
    takers: Sequence[str],
    keeping: Mapping[str, set[Work]],
    shares: Mapping[str, set[Work]],
    scales: Scales,
    wants: Mapping[str, Labels],
) -> Iterator[Move]:
    """Yields moves, each as work, giver and taker, until none pays; the scales follow.

    Work in `shares` that is new in this round does not run yet and moves first: that costs nothing. The caller brings
    both sets up to date.
    """
    for tasks in (False, True):
        piles = {
            name: _pile(
                [(runs, work) for runs, of in ((False, shares), (True, keeping)) for work in of[name]],
                scales,
                wants,
                tasks=tasks,
            )
            for name in takers
        }
        while (move := _best_move(piles, scales, tasks=tasks)) is not None:
            work, giver, taker = move
            scales.put(giver, work, sign=-1)
            scales.put(taker, work)
            yield move


def _pile(works: list[tuple[bool, Work]], scales: Scales, wants: Mapping[str, Labels], *, tasks: bool) -> _Pile:
    """Sorts the work of a member. The last of each kind belongs to the connector with most tasks there: taking it
    spreads them."""
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, Work, bool]] = []
    for work, runs in sorted((work, runs) for runs, work in works if work.is_task == tasks):
        ranked.append((seen[work.connector], work, runs))
        seen[work.connector] += 1
    pile = _Pile()
    for _, work, runs in sorted(ranked):
        asks = tuple(sorted(wants[work.connector].items())) if work.connector in wants else ()
        pile.kinds.setdefault((runs, scales.weight(work), asks), []).append(work)
    return pile


def _best_move(piles: Mapping[str, _Pile], scales: Scales, *, tasks: bool) -> Move | None:
    """Returns the move from the most to the least loaded member, among the pairs between which a move pays."""
    order = sorted(piles, key=lambda name: (-scales.load(name, tasks=tasks), name))
    for giver in order:
        for taker in reversed(order):
            apart = scales.load(giver, tasks=tasks) - scales.load(taker, tasks=tasks)
            if apart <= 1:
                break
            kind = _best_kind(piles[giver], taker, scales, apart)
            if kind is not None:
                return piles[giver].kinds[kind].pop(), giver, taker
    return None


def _best_kind(pile: _Pile, taker: str, scales: Scales, apart: int) -> Kind | None:
    """Returns the kind that brings the two closest, with the fewest moves; None when nothing pays."""
    paying = [
        kind
        for kind, works in pile.kinds.items()
        if works and 3 * kind[1] <= 2 * apart and scales.allows(works[-1], taker)
    ]
    return min(paying, key=lambda kind: (kind[0], abs(apart - 2 * kind[1]), kind), default=None)
