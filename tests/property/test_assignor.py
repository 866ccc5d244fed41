"""The assignor, played as a group plays it: every piece of work exactly once, even shares, fewest moves."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.work import Work
from keelman.worker.group.assignor import AssignmentRound, MemberView, Memory, assign

NAMES = st.sampled_from([f"m{n}" for n in range(6)])
WORK = st.builds(Work, st.sampled_from("abcdefgh"), st.integers(-1, 6))
WORKS = st.frozensets(WORK, max_size=30)


def play(
    owned: Mapping[str, frozenset[Work]],
    configured: frozenset[Work],
    memory: Memory,
    *,
    leaving: frozenset[str] = frozenset(),
    now: int = 0,
    delay: int = 0,
) -> tuple[dict[str, frozenset[Work]], AssignmentRound]:
    """Plays one round; returns the members' work after they have followed it."""
    members = {m: MemberView(f"http://{m}/", works, m in leaving) for m, works in owned.items()}
    outcome = assign(members, configured, memory, now_ms=now, max_delay_ms=delay)
    after = {m: (works - outcome.revoked[m]) | outcome.assigned[m] for m, works in owned.items()}
    return after, outcome


def settle(
    owned: Mapping[str, frozenset[Work]], configured: frozenset[Work], memory: Memory
) -> tuple[dict[str, frozenset[Work]], Memory]:
    """Plays rounds until none revokes work; no work may be assigned while another member owns it."""
    current = dict(owned)
    for _ in range(4):
        before = current
        current, outcome = play(current, configured, memory)
        memory = outcome.memory
        for given_work in outcome.assigned.values():
            assert not given_work & frozenset().union(*before.values()), "given out while another runs it"
        if not any(outcome.revoked.values()):
            return current, memory
    raise AssertionError("the group did not settle")


def counts(owned: Mapping[str, frozenset[Work]], *, tasks: bool) -> list[int]:
    return [sum(w.is_task == tasks for w in works) for works in owned.values()]


@given(st.dictionaries(NAMES, WORKS, min_size=1), WORKS)
@settings(max_examples=300, deadline=None)
def test_every_piece_of_work_has_one_owner_and_shares_are_even(
    owned: dict[str, frozenset[Work]], configured: frozenset[Work]
) -> None:
    after, _ = settle(owned, configured, Memory())
    given_out = [work for works in after.values() for work in works]
    assert sorted(given_out) == sorted(configured)
    for tasks in (False, True):
        shares = counts(after, tasks=tasks)
        assert max(shares) - min(shares) <= 1


@given(st.frozensets(NAMES, min_size=1), WORKS)
@settings(max_examples=200, deadline=None)
def test_nothing_moves_in_a_settled_group(names: frozenset[str], configured: frozenset[Work]) -> None:
    after, memory = settle(dict.fromkeys(names, frozenset()), configured, Memory())
    _, outcome = play(after, configured, memory)
    assert not any(outcome.assigned.values())
    assert not any(outcome.revoked.values())


@given(st.frozensets(NAMES, min_size=1, max_size=5), WORKS)
@settings(max_examples=200, deadline=None)
def test_a_new_member_costs_no_more_moves_than_its_share(names: frozenset[str], configured: frozenset[Work]) -> None:
    before, memory = settle(dict.fromkeys(names, frozenset()), configured, Memory())
    after, _ = settle({**before, "zz": frozenset()}, configured, memory)
    assert after["zz"] == frozenset().union(*(before[m] - after[m] for m in names))
    for tasks in (False, True):
        moved = sum(w.is_task == tasks for w in after["zz"])
        assert moved <= -(-sum(w.is_task == tasks for w in configured) // (len(names) + 1))


@given(st.frozensets(NAMES, min_size=2), WORKS)
@settings(max_examples=200, deadline=None)
def test_a_leaving_members_work_moves_at_once_and_nothing_else_does(
    names: frozenset[str], configured: frozenset[Work]
) -> None:
    before, memory = settle(dict.fromkeys(names, frozenset()), configured, Memory())
    gone = min(names)
    drained = {**before, gone: frozenset()}
    after, outcome = play(drained, configured, memory, leaving=frozenset({gone}), delay=3000)
    assert outcome.delay_ms == 0
    assert not after[gone]
    assert frozenset().union(*after.values()) == configured
    assert all(before[m] - outcome.revoked[m] <= after[m] for m in names - {gone})


@given(st.frozensets(NAMES, min_size=2), WORKS)
@settings(max_examples=200, deadline=None)
def test_unexplained_loss_waits_for_its_owner_but_not_for_ever(
    names: frozenset[str], configured: frozenset[Work]
) -> None:
    before, memory = settle(dict.fromkeys(names, frozenset()), configured, Memory())
    gone = min(names)
    left = {m: works for m, works in before.items() if m != gone}
    waiting, outcome = play(left, configured, memory, now=1000, delay=3000)
    assert waiting == left
    if not before[gone]:
        return
    assert outcome.delay_ms == 3000
    back, returned = play({**left, gone: frozenset()}, configured, outcome.memory, now=2000, delay=3000)
    assert back[gone] == before[gone]
    assert returned.delay_ms == 0
    late, outcome = play(left, configured, outcome.memory, now=4000, delay=3000)
    assert frozenset().union(*late.values()) >= before[gone]
    assert outcome.delay_ms == 0


def test_a_new_member_with_an_old_ones_address_gets_its_work_at_once() -> None:
    work = frozenset({Work("a"), Work("a", 0)})
    _, outcome = play({"m1": work, "m2": frozenset()}, work, Memory())
    members = {
        "m1-again": MemberView("http://m1/"),
        "m2": MemberView("http://m2/"),
    }
    outcome = assign(members, work, Memory(dict.fromkeys(work, "http://m1/")), now_ms=0, max_delay_ms=3000)
    assert outcome.delay_ms == 0
    assert outcome.assigned["m1-again"] == work


def test_nobody_to_give_to_gives_to_nobody() -> None:
    outcome = assign({"m": MemberView("u", leaving=True)}, [Work("a")], Memory(), now_ms=0, max_delay_ms=0)
    assert outcome.assigned == {"m": frozenset()}


def play_unfit(
    owned: Mapping[str, frozenset[Work]],
    unfit: frozenset[str],
    configured: frozenset[Work],
    memory: Memory,
    **times: int,
) -> tuple[dict[str, frozenset[Work]], AssignmentRound]:
    """As `play`, where some members take no tasks."""
    members = {m: MemberView(f"http://{m}/", works, unfit="away" * (m in unfit)) for m, works in owned.items()}
    fields = {"now_ms": 0, "max_delay_ms": 0, **times}
    outcome = assign(members, configured, memory, **fields)
    return {m: (works - outcome.revoked[m]) | outcome.assigned[m] for m, works in owned.items()}, outcome


@given(st.frozensets(NAMES, min_size=1), st.frozensets(NAMES), WORKS)
@settings(max_examples=300, deadline=None)
def test_tasks_are_with_those_that_take_them_and_connectors_stay(
    names: frozenset[str], unfit: frozenset[str], configured: frozenset[Work]
) -> None:
    before, memory = settle(dict.fromkeys(names, frozenset()), configured, Memory())
    tasks = {work for work in configured if work.is_task}
    current, moved = before, False
    for _ in range(4):
        current, outcome = play_unfit(current, unfit, configured, memory)
        memory = outcome.memory
        assert all(m not in unfit for m, works in outcome.assigned.items() for work in works if work.is_task)
        moved = any(outcome.revoked.values())
        if not moved:
            break
    assert not moved
    fit = names - unfit
    placed = frozenset().union(*current.values())
    assert placed == (configured if fit else configured - tasks)
    assert outcome.unplaced == (frozenset() if fit else tasks)
    for name in names:
        assert {w for w in current[name] if not w.is_task} == {w for w in before[name] if not w.is_task}
    for name in names & unfit:
        assert not current[name] & tasks
    after, memory = settle(current, configured, memory)
    loads = [sum(work.is_task for work in works) for works in after.values()]
    assert max(loads) - min(loads) <= 1, "shares are even once all take tasks"


def test_tasks_wait_for_a_member_that_is_back_and_has_its_spark_service_soon() -> None:
    work = frozenset({Work("a"), Work("a", 0)})
    memory = Memory(dict.fromkeys(work, "http://m1/"))
    empty: dict[str, frozenset[Work]] = {"m1": frozenset(), "m2": frozenset()}
    back, waiting = play_unfit(empty, frozenset({"m1"}), work, memory, max_delay_ms=3000)
    assert (back["m1"], waiting.delay_ms) == ({Work("a")}, 3000)
    ready, _ = play_unfit(back, frozenset(), work, waiting.memory, now_ms=1000, max_delay_ms=3000)
    assert ready["m1"] == work
    late, over = play_unfit(back, frozenset({"m1"}), work, waiting.memory, now_ms=3000, max_delay_ms=3000)
    assert (late["m2"], over.delay_ms) == ({Work("a", 0)}, 0)
