"""One round of the group as its leader computes it: from the members' metadata to each member's assignment. Pure, and
run in a thread: with tens of thousands of tasks it takes a good part of a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from keelman.kafka.groups.connect_protocol import Metadata
from keelman.model.work import MemberAssignment, Work
from keelman.worker.group.assignor import NO_LABELS, MemberView, Memory, assign, views_of
from keelman.worker.group.placement import Labels, wants_of, why_none_fit, why_unplaced
from keelman.worker.group.scales import in_order


@dataclass(frozen=True, slots=True)
class ConfiguredWork:
    """The configured work by the config topic at an offset, and the labels' texts of connectors that require any."""

    offset: int
    works: frozenset[Work]
    placements: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SharedWork:
    """The outcome of a round.

    Each member's assignment, by member id; the leader's new memory; the connectors of which something has another owner
    than before; why no member may have some work; the members' addresses; and work whose owner is none of them, with
    the owner's address.
    """

    assignments: Mapping[str, MemberAssignment]
    memory: Memory
    moved: frozenset[str]
    unplaced: Mapping[Work, str]
    urls: tuple[str, ...]
    lost: Mapping[Work, str]
    delay_ms: int


def shared_work(
    leader: tuple[str, str],
    members: Mapping[str, Metadata],
    configured: ConfiguredWork,
    memory: Memory,
    *,
    now_ms: int,
    max_delay_ms: int,
) -> SharedWork:
    """Computes one round. `leader` is the leader's member id and address."""
    views, wants = views_of(members), wants_of(configured.placements)
    outcome = assign(views, configured.works, memory, now_ms=now_ms, max_delay_ms=max_delay_ms, wants=wants)
    before, owners = memory.owners, outcome.memory.owners
    moved = {work.connector for work, url in owners.items() if before.get(work) != url}
    moved |= {work.connector for work in before if work not in owners}
    urls = tuple(sorted(member.url for member in members.values()))
    present = frozenset(urls)
    return SharedWork(
        assignments={
            name: MemberAssignment(
                *leader,
                configured.offset,
                tuple(in_order(outcome.assigned[name])),
                tuple(in_order(outcome.revoked[name])),
                outcome.delay_ms,
            )
            for name in members
        },
        memory=outcome.memory,
        moved=frozenset(moved),
        unplaced=_explained(outcome.unplaced, views.values(), wants, configured.placements),
        urls=urls,
        lost={work: url for work, url in owners.items() if url not in present},
        delay_ms=outcome.delay_ms,
    )


def _explained(
    unplaced: Iterable[Work], views: Iterable[MemberView], wants: Mapping[str, Labels], placements: Mapping[str, str]
) -> dict[Work, str]:
    """Returns why no member may have this work: no member has the labels that its connector requires, or those that
    have them take no tasks."""
    takers = [view for view in views if not view.leaving]
    reasons: dict[str, str] = {}
    for connector in {work.connector for work in unplaced}:
        needed = wants.get(connector, NO_LABELS).items()
        if unfit := {urlsplit(taker.url).netloc: taker.unfit for taker in takers if needed <= taker.labels.items()}:
            reasons[connector] = why_none_fit(unfit)
        elif connector in wants:
            reasons[connector] = why_unplaced(placements[connector], [taker.labels for taker in takers])
    return {work: reasons[work.connector] for work in unplaced if work.connector in reasons}
