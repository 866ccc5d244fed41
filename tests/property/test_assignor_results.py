"""The assignor decides exactly as the plain reference does, which compares every member with every other."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.model.work import Work
from keelman.worker.group.assignor import MemberView, Memory, assign
from support.worlds import plain_assignor

WORK = st.builds(Work, st.sampled_from("abcdefgh"), st.integers(-1, 8))
WORKS = st.frozensets(WORK, max_size=50)
LABELS = st.fixed_dictionaries({}, optional={"zone": st.sampled_from("ab"), "disk": st.just("fast")})
WEIGHTS = st.dictionaries(WORK, st.sampled_from([0, 1, 1, 2, 4, 16]), max_size=30)
URLS = st.sampled_from([f"http://{name}/" for name in "lmnopq"])
MEMBERS = st.dictionaries(
    st.sampled_from("lmnopqrs"),
    st.builds(
        MemberView,
        URLS,
        WORKS | st.just(frozenset[Work]()),
        st.sampled_from([False, False, False, True]),
        LABELS,
        WEIGHTS,
        st.sampled_from(["", "", "", "no Spark service"]),
    ),
    min_size=1,
)
MEMORY = st.builds(
    Memory,
    st.dictionaries(WORK, URLS, max_size=20),
    st.none() | st.integers(0, 100),
    WEIGHTS.map(lambda weights: {work: weight for work, weight in weights.items() if weight and work.is_task}),
    st.dictionaries(WORK, URLS, max_size=5),
)
WANTS = st.dictionaries(st.sampled_from("abcdefgh"), LABELS.filter(bool), max_size=5)


@given(MEMBERS, WORKS, MEMORY, WANTS, st.sampled_from([0, 50]))
@settings(max_examples=300, deadline=None)
def test_any_round_is_the_references(
    members: dict[str, MemberView],
    configured: frozenset[Work],
    memory: Memory,
    wants: dict[str, dict[str, str]],
    delay: int,
) -> None:
    outcome = assign(members, configured, memory, now_ms=10, max_delay_ms=delay, wants=wants)
    assert outcome == plain_assignor.assign(members, configured, memory, now_ms=10, max_delay_ms=delay, wants=wants)


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "", "", "a", "b"])), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
@settings(max_examples=80, deadline=None)
def test_rounds_of_a_growing_and_shrinking_group_are_the_references(
    before: int, after: int, connectors: list[tuple[int, str]], chance: Random
) -> None:
    configured = {Work(f"c{n:02d}", task) for n, (tasks, _) in enumerate(connectors) for task in range(-1, tasks)}
    wants = {f"c{n:02d}": {"zone": zone} for n, (_, zone) in enumerate(connectors) if zone}
    weights = {work: chance.choice([1, 1, 1, 2, 8, 16]) for work in sorted(configured)}
    owned: dict[str, frozenset[Work]] = {}
    memory = Memory()
    for count in (before, before, after, after, before, before):
        members = {
            f"m{n}": MemberView(
                f"http://m{n}/",
                owned.get(f"m{n}", frozenset()),
                labels={"zone": "ab"[n % 2]},
                weights={work: weights[work] for work in owned.get(f"m{n}", ())},
            )
            for n in range(count)
        }
        outcome = assign(members, configured, memory, now_ms=0, max_delay_ms=0, wants=wants)
        assert outcome == plain_assignor.assign(members, configured, memory, now_ms=0, max_delay_ms=0, wants=wants)
        owned = {name: (view.owned - outcome.revoked[name]) | outcome.assigned[name] for name, view in members.items()}
        memory = outcome.memory


def test_a_task_that_returns_to_its_owner_counts_for_its_siblings() -> None:
    """Between two tasks of connector c that are placed by load, one goes back to where it ran. Work of a lost member is
    waited for, so that no move evens the shares out afterwards."""
    members = {name: MemberView(f"http://{name}/", labels={"zone": zone}) for name, zone in ("ma", "na", "ob")}
    heavy, back, light, other, lost = Work("c", 0), Work("c", 1), Work("c", 2), Work("d", 0), Work("e", 0)
    weights = {heavy: 4, back: 1, light: 1, other: 4, lost: 1}
    memory = Memory(owners={back: "http://n/", lost: "http://gone/"}, weights=weights)
    wants = {"c": {"zone": "a"}, "d": {"zone": "b"}}
    outcome = assign(members, tuple(weights), memory, now_ms=0, max_delay_ms=100, wants=wants)
    assert outcome.assigned == {"m": {heavy}, "n": {back, light}, "o": {other}}
    assert outcome == plain_assignor.assign(members, tuple(weights), memory, now_ms=0, max_delay_ms=100, wants=wants)
