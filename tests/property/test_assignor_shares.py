"""Weights, labels and spread: followed, even as they are defined, reached in a few rounds, and stable then."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.work import Work
from keelman.worker.group.assignor import AssignmentRound, MemberView, Memory, assign

ROUNDS = 4
ZONES = st.sampled_from(["", "a", "b"])
WORK = st.builds(Work, st.sampled_from("abcdefgh"), st.integers(-1, 6))
WORKS = st.frozensets(WORK, max_size=30)
WEIGHTS = st.dictionaries(WORK, st.sampled_from([1, 1, 2, 4, 16]), max_size=20)
WANTS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["a", "b", "c"]), max_size=4)


@dataclass
class Group:
    """Members that follow their assignments, a leader with its memory, and the real weight of each task."""

    zones: Mapping[str, str]
    configured: frozenset[Work]
    wants: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[Work, int] = field(default_factory=dict)
    owned: dict[str, frozenset[Work]] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def round(self, *, leaving: str = "") -> AssignmentRound:
        views = {
            name: MemberView(
                f"http://{name}/",
                self.owned.get(name, frozenset()),
                name == leaving,
                {"zone": zone} if zone else {},
                {work: self.weights.get(work, 1) for work in self.owned.get(name, ())},
            )
            for name, zone in self.zones.items()
        }
        wants = {connector: {"zone": zone} for connector, zone in self.wants.items()}
        outcome = assign(views, self.configured, self.memory, now_ms=0, max_delay_ms=0, wants=wants)
        before = frozenset().union(*self.owned.values())
        for name in self.zones:
            assert not outcome.assigned[name] & before, "given out while another member runs it"
            assert outcome.revoked[name] <= self.owned.get(name, frozenset())
            self.owned[name] = (self.owned.get(name, frozenset()) - outcome.revoked[name]) | outcome.assigned[name]
        self.memory = outcome.memory
        return outcome

    def settle(self) -> AssignmentRound:
        """Plays rounds until none revokes work, after which a group is at rest."""
        for _ in range(ROUNDS):
            outcome = self.round()
            if not any(outcome.revoked.values()):
                return outcome
        raise AssertionError(f"the group did not settle in {ROUNDS} rounds")

    def may(self, work: Work, name: str) -> bool:
        return self.wants.get(work.connector, self.zones[name]) == self.zones[name]

    def load(self, name: str, *, tasks: bool) -> int:
        return sum(self.weight(work) for work in self.owned[name] if work.is_task == tasks)

    def weight(self, work: Work) -> int:
        return self.weights.get(work, 1) if work.is_task else 1

    def paying_moves(self) -> list[tuple[Work, str, str]]:
        """By the definition of an even share, without the assignor's own functions."""
        return [
            (work, giver, taker)
            for giver in self.zones
            for taker in self.zones
            for work in self.owned[giver]
            if self.may(work, taker)
            and 1.5 * self.weight(work) <= self.load(giver, tasks=work.is_task) - self.load(taker, tasks=work.is_task)
        ]


@given(st.dictionaries(st.sampled_from("lmnop"), ZONES, min_size=1), WORKS, WANTS, WEIGHTS, st.data())
@settings(max_examples=250, deadline=None)
def test_labels_are_obeyed_and_no_move_pays(
    zones: dict[str, str],
    configured: frozenset[Work],
    wants: dict[str, str],
    weights: dict[Work, int],
    data: st.DataObject,
) -> None:
    group = Group(zones, configured, wants, weights)
    for name in zones:
        group.owned[name] = data.draw(WORKS)
    outcome = group.settle()
    placed = [work for works in group.owned.values() for work in works]
    assert len(placed) == len(set(placed))
    assert frozenset(placed) | outcome.unplaced == configured
    for work in configured:
        homes = [name for name in zones if group.may(work, name)]
        assert (work in outcome.unplaced) == (not homes)
        assert all(name in homes for name in zones if work in group.owned[name])
    # Weights that are measured while tasks run may make one more move pay; then it is made, and no other.
    group.settle()
    group.settle()
    assert not group.paying_moves()
    before = dict(group.owned)
    outcome = group.round()
    assert group.owned == before
    assert not any(outcome.revoked.values())


@given(st.integers(1, 12), st.integers(1, 5), WORKS)
@settings(max_examples=100, deadline=None)
def test_a_new_connectors_tasks_are_spread(tasks: int, count: int, configured: frozenset[Work]) -> None:
    group = Group({f"m{n}": "" for n in range(count)}, configured)
    group.settle()
    new = frozenset(Work("new", task) for task in range(tasks))
    group.configured |= new
    before = dict(group.owned)
    group.settle()
    counts = [len(works & new) for works in group.owned.values()]
    assert max(counts) - min(counts) <= 2
    if tasks <= count and not {w.is_task for w in configured} - {False}:
        assert max(counts) == 1
    assert all(before[name] <= group.owned[name] for name in before), "running work stays where it ran"


def test_what_is_taken_for_a_new_member_is_not_one_connectors_alone() -> None:
    works = frozenset(Work(connector, task) for connector in "abc" for task in range(4))
    group = Group({"m": ""}, works)
    group.settle()
    group.zones = {"m": "", "new": ""}
    group.settle()
    assert sorted(work.connector for work in group.owned["new"]) == ["a", "a", "b", "b", "c", "c"]


def test_busy_tasks_are_kept_apart_and_unknown_ones_weigh_what_their_siblings_weigh() -> None:
    works = frozenset(Work("busy", n) for n in range(3)) | frozenset(Work("idle", n) for n in range(30))
    weights = {Work("busy", n): 16 for n in range(3)}
    group = Group({"l": "", "m": "", "n": ""}, works, weights=weights)
    for _ in range(3):
        group.settle()
    assert sorted(sum(w.connector == "busy" for w in works) for works in group.owned.values()) == [1, 1, 1]
    group.configured |= {Work("busy", 3), Work("busy", 4), Work("busy", 5)}
    group.round()
    assert sorted(sum(w.connector == "busy" for w in works) for works in group.owned.values()) == [2, 2, 2]


def test_of_two_that_run_the_same_the_one_that_was_given_it_goes_on() -> None:
    work = Work("a", 0)
    group = Group({"m": "", "n": ""}, frozenset({work}))
    group.settle()
    (owner,) = [name for name, works in group.owned.items() if works]
    (other,) = set(group.zones) - {owner}
    group.owned[other] = frozenset({work})
    group.settle()
    assert (group.owned[owner], group.owned[other]) == (frozenset({work}), frozenset())


def test_ten_thousand_connectors_are_shared_out_in_little_time() -> None:
    works = frozenset(Work(f"c{n}", task) for n in range(10_000) for task in (-1, 0))
    group = Group({"m": ""}, works, weights={Work(f"c{n}", 0): 2 for n in range(0, 10_000, 7)})
    group.settle()
    group.zones = dict.fromkeys("mnop", "")
    begun = time.process_time()
    group.settle()
    assert time.process_time() - begun < 10
    assert not any(abs(group.load(a, tasks=True) - group.load("m", tasks=True)) > 2 for a in "nop")
