"""Shares connectors and tasks out over the group's members: incremental, fewest moves. Pure: no clock, no chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keelman.kafka.layout import Work


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the leader sees it in this round: its address, what it runs, and whether it is on its way out."""

    url: str
    owned: frozenset[Work] = frozenset()
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """What a leader remembers from round to round: who had what, at which address, and until when lost work waits."""

    owners: Mapping[Work, str] = field(default_factory=dict)
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome: per member what is new and what to stop; how long to wait before the next round; the new memory."""

    assigned: Mapping[str, frozenset[Work]]
    revoked: Mapping[str, frozenset[Work]]
    delay_ms: int
    memory: Memory


def assign(
    members: Mapping[str, MemberView],
    configured: Iterable[Work],
    memory: Memory,
    *,
    now_ms: int,
    max_delay_ms: int,
) -> Round:
    """One round for these members (by member id) and all configured work.

    Work is only given out when nobody runs it. Work of a member that vanished without a word waits up to `max_delay_ms`
    for it; work of a leaving member, or of one whose address has a new member, does not wait.
    """
    wanted = frozenset(configured)
    stopping = {name: _to_stop(name, members, wanted) for name in members}
    keeping = {name: set(view.owned - stopping[name]) for name, view in members.items()}
    owned = {work for view in members.values() for work in view.owned}
    free = wanted - owned
    held, deadline = _held(members, free, memory, now_ms, max_delay_ms)
    takers = sorted(name for name, view in members.items() if not view.leaving)
    given: dict[str, set[Work]] = {name: set() for name in members}
    by_url = {members[name].url: name for name in takers}
    for work in sorted(free - held):
        home = by_url.get(memory.owners.get(work, ""))
        taker = home or _least_loaded(takers, keeping, given, work)
        if taker is not None:
            given[taker].add(work)
    if not held:
        _even_out(takers, keeping, given, stopping)
    owners = {work: members[name].url for name in members for work in (keeping[name] | given[name]) - stopping[name]}
    owners |= {work: memory.owners[work] for work in held}
    return Round(
        assigned={name: frozenset(works) for name, works in given.items()},
        revoked={name: frozenset(works) for name, works in stopping.items()},
        delay_ms=max(1, deadline - now_ms) if held and deadline is not None else 0,
        memory=Memory(owners, deadline if held else None),
    )


def _to_stop(name: str, members: Mapping[str, MemberView], wanted: frozenset[Work]) -> set[Work]:
    """What a member must stop at once: deleted work, work that another also runs, and everything when it leaves."""
    view = members[name]
    if view.leaving:
        return set(view.owned)
    others = {work for other, o in members.items() if other != name for work in o.owned}
    return {work for work in view.owned if work not in wanted or work in others}


def _held(
    members: Mapping[str, MemberView], free: frozenset[Work], memory: Memory, now_ms: int, max_delay_ms: int
) -> tuple[frozenset[Work], int | None]:
    """Lost work whose owner's fate nobody knows, and until when it is held back."""
    explained = {view.url for view in members.values()}
    lost = frozenset(work for work in free if work in memory.owners and memory.owners[work] not in explained)
    if not lost or max_delay_ms <= 0:
        return frozenset(), None
    deadline = memory.deadline_ms if memory.deadline_ms is not None else now_ms + max_delay_ms
    return (lost, deadline) if now_ms < deadline else (frozenset(), None)


def _least_loaded(
    takers: list[str], keeping: Mapping[str, set[Work]], given: Mapping[str, set[Work]], work: Work
) -> str | None:
    def load(name: str) -> tuple[int, int, str]:
        mine = keeping[name] | given[name]
        return sum(w.is_task == work.is_task for w in mine), len(mine), name

    return min(takers, key=load, default=None)


def _even_out(
    takers: list[str],
    keeping: dict[str, set[Work]],
    given: Mapping[str, set[Work]],
    stopping: Mapping[str, set[Work]],
) -> None:
    """Takes from members that have more than their share; what they stop is given out in the next round."""
    for tasks in (False, True):
        mine = {n: {w for w in keeping[n] | given[n] if w.is_task == tasks} for n in takers}
        if not mine:
            return
        share, rest = divmod(sum(map(len, mine.values())), len(mine))
        for place, name in enumerate(sorted(takers, key=lambda n: (-len(mine[n]), n))):
            surplus = len(mine[name]) - share - (1 if place < rest else 0)
            movable = sorted(w for w in keeping[name] if w.is_task == tasks)
            for work in movable[len(movable) - max(0, surplus) :] if surplus > 0 else ():
                keeping[name].discard(work)
                stopping[name].add(work)
