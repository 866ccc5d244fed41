"""Shares connectors and tasks out over the group's members: incremental, fewest moves. Pure: no clock, no chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from keelman.kafka.groups.connect_protocol import Metadata
from keelman.model.work import Work
from keelman.worker.group.balance import even_out
from keelman.worker.group.placement import Labels
from keelman.worker.group.scales import Rights, Scales, in_order

NO_LABELS: Labels = {}


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the leader sees it in this round: its address, its work, and whether it is about to leave.

    `unfit` tells why it takes no tasks, empty while it takes them: connectors need no Spark service, tasks do.
    `weights` are the measured weights of its tasks: 1 (or absent) for a task that hardly works, 0 for one without a
    measure yet: that weighs as much as its siblings.
    """

    url: str
    owned: frozenset[Work] = frozenset()
    leaving: bool = False
    labels: Labels = field(default_factory=dict)
    weights: Mapping[Work, int] = field(default_factory=dict)
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A leader's memory from round to round.

    The owner of each work, by address; the time until which lost work waits; the weights of tasks; and for work that
    was taken from a member to even shares out, the address of its next owner.
    """

    owners: Mapping[Work, str] = field(default_factory=dict)
    deadline_ms: int | None = None
    weights: Mapping[Work, int] = field(default_factory=dict)
    plan: Mapping[Work, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssignmentRound:
    """The outcome: for each member its new work and the work to stop; the delay before the next round; the new memory.

    `unplaced` is the work that no member may have.
    """

    assigned: Mapping[str, frozenset[Work]]
    revoked: Mapping[str, frozenset[Work]]
    delay_ms: int
    memory: Memory
    unplaced: frozenset[Work] = frozenset()


def views_of(members: Mapping[str, Metadata]) -> dict[str, MemberView]:
    """Returns the members' own statements as views."""
    return {
        name: MemberView(
            m.url,
            frozenset(m.allocation.assigned) if m.allocation else frozenset(),
            m.own is not None and m.own.leaving,
            m.own.labels if m.own else {},
            m.own.weights if m.own else {},
            m.own.unfit if m.own else "",
        )
        for name, m in members.items()
    }


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
    rights = Rights(members, need)
    stopping = _to_stop(members, configured_work, memory)
    for name, view in members.items():
        requested = view.owned if view.unfit else (work for work in view.owned if work.connector in need)
        stopping[name] |= {work for work in requested if not rights.allows(work, name)}
    keeping = {name: set(view.owned - stopping[name]) for name, view in members.items()}
    free = configured_work.difference(*(view.owned for view in members.values()))
    held, deadline = _held(members, free, memory, now_ms, max_delay_ms)
    takers = sorted(name for name, view in members.items() if not view.leaving)
    weights = _weights(members, configured_work, memory)
    scales = Scales(takers, keeping, weights, rights)
    shares: dict[str, set[Work]] = {name: set() for name in members}
    by_url = {members[name].url: name for name in takers}
    unplaced = set()
    for work in _heaviest_first(free - held, weights):
        home = by_url.get(memory.owners.get(work) or memory.plan.get(work) or "")
        taker = home if home is not None and rights.allows(work, home) else scales.lightest(work)
        if taker is None:
            unplaced.add(work)
        else:
            shares[taker].add(work)
            scales.put(taker, work)
    plan: dict[Work, str] = {}
    if not held:
        for work, giver, taker in even_out(takers, keeping, shares, scales, rights):
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


def _heaviest_first(works: Iterable[Work], weights: Mapping[Work, int]) -> Iterator[Work]:
    """Yields work by falling weight, equal work by connector and task."""
    by_weight: dict[int, list[Work]] = {}
    for work in works:
        by_weight.setdefault(weights.get(work, 1), []).append(work)
    for weight in sorted(by_weight, reverse=True):
        yield from in_order(by_weight[weight])


def _to_stop(members: Mapping[str, MemberView], works: frozenset[Work], memory: Memory) -> dict[str, set[Work]]:
    """Returns the work that each member must stop at once: deleted work, work that another also runs, all work when it
    leaves.

    Of two members that run the same work, its assigned member keeps it, where that is known.
    """
    seen: set[Work] = set()
    twice: set[Work] = set()
    for view in members.values():
        twice |= seen & view.owned
        seen |= view.owned
    addresses = Counter(view.url for view in members.values())

    def must_stop(work: Work, view: MemberView) -> bool:
        shared = work in twice and (addresses[view.url] > 1 or memory.owners.get(work) != view.url)
        return view.leaving or shared or work not in works

    return {name: {work for work in view.owned if must_stop(work, view)} for name, view in members.items()}


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
