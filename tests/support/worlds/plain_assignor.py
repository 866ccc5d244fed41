"""The plain way to share work out, which compares every member with every other: the reference for the quick one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from keelman.model.work import Work
from keelman.worker.group.assignor import NO_LABELS, AssignmentRound, MemberView, Memory
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


def assign(
    members: Mapping[str, MemberView],
    configured: Iterable[Work],
    memory: Memory,
    *,
    now_ms: int,
    max_delay_ms: int,
    wants: Mapping[str, Labels] | None = None,
) -> AssignmentRound:
    """Computes one round for these members (by member id) and all configured work.

    Work is only given out when no member runs it, and only to a member with the labels that `wants` names for its
    connector; tasks only to a fit member, and a member that is no longer fit gives them back. Work of a member that
    vanished without notice waits up to `max_delay_ms` for it. Work of a leaving member does not wait, nor does work of
    a member whose address has a new member that may have it.

    Shares are even when no single move pays: when the loads of two members differ by less than one and a half times the
    weight of anything that could move from the one to the other. Connectors and tasks are evened out separately, and a
    connector's tasks are spread where that costs no move.
    """
    configured_work = frozenset(configured)
    need = wants or {}

    def allows(work: Work, name: str) -> bool:
        return _may_have(members[name], work, need.get(work.connector, NO_LABELS))

    stopping = {name: _to_stop(name, members, configured_work, memory) for name in members}
    for name, view in members.items():
        requested = view.owned if view.unfit else (work for work in view.owned if work.connector in need)
        stopping[name] |= {work for work in requested if not allows(work, name)}
    keeping = {name: set(view.owned - stopping[name]) for name, view in members.items()}
    free = configured_work - {work for view in members.values() for work in view.owned}
    held, deadline = _held(members, free, memory, now_ms, max_delay_ms)
    takers = sorted(name for name, view in members.items() if not view.leaving)
    weights = _weights(members, configured_work, memory)
    scales = Scales(takers, keeping, weights, allows)
    shares: dict[str, set[Work]] = {name: set() for name in members}
    by_url = {members[name].url: name for name in takers}
    unplaced = set()
    for work in sorted(free - held, key=lambda w: (-weights.get(w, 1), w)):
        home = by_url.get(memory.owners.get(work) or memory.plan.get(work) or "")
        taker = home if home is not None and allows(work, home) else scales.lightest(work)
        if taker is None:
            unplaced.add(work)
        else:
            shares[taker].add(work)
            scales.put(taker, work)
    plan: dict[Work, str] = {}
    if not held:
        for work, giver, taker in even_out(takers, keeping, shares, scales, need):
            if work in shares[giver]:
                shares[giver].discard(work)
                shares[taker].add(work)
            else:
                keeping[giver].discard(work)
                stopping[giver].add(work)
                plan[work] = members[taker].url
    owners = {work: members[name].url for name in members for work in (keeping[name] | shares[name]) - stopping[name]}
    owners |= {work: memory.owners[work] for work in held}
    return AssignmentRound(
        assigned={name: frozenset(works) for name, works in shares.items()},
        revoked={name: frozenset(works) for name, works in stopping.items()},
        delay_ms=max(1, deadline - now_ms) if held and deadline is not None else 0,
        memory=Memory(owners, deadline if held else None, weights, plan),
        unplaced=frozenset(unplaced),
    )


def _to_stop(name: str, members: Mapping[str, MemberView], works: frozenset[Work], memory: Memory) -> set[Work]:
    """Returns the work that a member must stop at once: deleted work, work that another also runs, all work when it
    leaves.

    Of two members that run the same work, its assigned member keeps it, where that is known.
    """
    view = members[name]
    if view.leaving:
        return set(view.owned)
    others = {work for other, o in members.items() if other != name for work in o.owned}
    mine = {work for work in view.owned & others if memory.owners.get(work) == view.url}
    same_address = any(o.url == view.url for other, o in members.items() if other != name)
    return {w for w in view.owned if w not in works or (w in others and (same_address or w not in mine))}


def _held(
    members: Mapping[str, MemberView], free: frozenset[Work], memory: Memory, now_ms: int, max_delay_ms: int
) -> tuple[frozenset[Work], int | None]:
    """Returns the lost work whose owner's fate is unknown, and until when it is held back."""
    back = {view.url for view in members.values()}
    fit = {view.url for view in members.values() if not view.unfit}  # a member that will be fit regains its tasks
    lost = frozenset(w for w in free if w in memory.owners and memory.owners[w] not in (fit if w.is_task else back))
    if not lost or max_delay_ms <= 0:
        return frozenset(), None
    deadline = memory.deadline_ms if memory.deadline_ms is not None else now_ms + max_delay_ms
    return (lost, deadline) if now_ms < deadline else (frozenset(), None)


def _weights(members: Mapping[str, MemberView], works: frozenset[Work], memory: Memory) -> dict[Work, int]:
    """Returns each task's weight: its owner's measure, else its last known weight, else the mean of its siblings or of
    all."""
    weights = {work: weight for work, weight in memory.weights.items() if work in works}
    for view in members.values():
        reported = {work: view.weights.get(work, 1) for work in view.owned & works if work.is_task}
        weights |= {work: weight for work, weight in reported.items() if weight > 0}
    if all(weight == 1 for weight in weights.values()):
        return {}
    families: dict[str, list[int]] = {}
    for work, weight in weights.items():
        families.setdefault(work.connector, []).append(weight)
    typical = _mean(list(weights.values()))
    means = {connector: _mean(weights) for connector, weights in families.items()}
    return {
        work: weights[work] if work in weights else means.get(work.connector, typical) for work in works if work.is_task
    }


def _mean(weights: list[int]) -> int:
    return max(1, round(sum(weights) / len(weights)))


def _may_have(view: MemberView, work: Work, labels: Labels) -> bool:
    if work.is_task and view.unfit:
        return False
    return all(view.labels.get(key) == value for key, value in labels.items())
