"""For any measures workers remain within their bounds, leave one by one, rest in between, and do not flap."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from keelman.model.autoscale import Autoscale
from keelman.state.autoscaling.decision import NO_TREND, Measure, Move, followed, leaning, needed, next_workers

WANTED = st.builds(
    lambda least, more, samples, every, pause, lag, low, between: Autoscale(
        least, least + more, scale_in_cpu_percent=low, scale_out_cpu_percent=low + between, scale_out_lag_records=lag,
        samples=samples, sample_seconds=every, cool_down_seconds=pause,
    ),
    st.integers(1, 5), st.integers(0, 25), st.integers(1, 5), st.floats(1, 20), st.floats(0, 100),
    st.sampled_from([0, 1, 1000]), st.floats(1, 60), st.floats(1, 60),
)  # fmt: skip
MEASURES = st.builds(
    Measure, st.one_of(st.none(), st.floats(0, 400)), st.integers(0, 10**7), st.sampled_from([True, True, False]),
    st.floats(0, 1e6), st.sampled_from([0, 0, 1, 70]), st.integers(0, 300), st.just(0), st.integers(0, 5),
)  # fmt: skip
LOOKS = st.lists(st.tuples(st.floats(0.1, 30), MEASURES, st.integers(1, 8)), max_size=40)


@given(WANTED, LOOKS)
def test_steps_are_within_bounds_agreed_on_and_rare(wanted: Autoscale, looks: list[tuple[float, Measure, int]]) -> None:
    trend, workers, now = NO_TREND, wanted.min_workers, 0.0
    stepped: float | None = None
    begun: list[Move] = []
    for pause, seen in [(pause, seen) for pause, seen, times in looks for _ in range(times)]:
        now += pause
        trend = followed(trend, wanted, seen, workers, now)
        begun.append(leaning(wanted, seen, workers))
        since = None if stepped is None else now - stepped
        after = next_workers(trend, wanted, seen, workers, now=now, since_step=since)
        assert wanted.min_workers <= after <= wanted.max_workers
        assert after >= workers - 1
        if after == workers:
            continue
        assert stepped is None or now - stepped >= wanted.cool_down_seconds
        last = begun[-wanted.samples :]
        assert len(last) == wanted.samples, "no step before so many looks"
        assert set(last) == {Move.OUT if after > workers else Move.IN}
        workers, stepped, trend, begun = after, now, NO_TREND, []


@given(WANTED, MEASURES, st.integers(1, 30), st.integers(0, 10**7), st.floats(0, 1e6))
def test_more_lag_never_needs_fewer_workers(
    wanted: Autoscale, seen: Measure, workers: int, more: int, growth: float
) -> None:
    lagging = replace(seen, lag_records=seen.lag_records + more)
    assert needed(wanted, lagging, workers, growth) >= needed(wanted, seen, workers, growth)
    assert needed(wanted, seen, workers, growth + more) >= needed(wanted, seen, workers, growth)


@given(WANTED, MEASURES, st.integers(1, 30))
def test_a_removed_worker_is_not_called_back_by_the_same_load(wanted: Autoscale, seen: Measure, workers: int) -> None:
    if leaning(wanted, seen, workers) is not Move.IN or seen.cpu_percent is None:
        return
    fewer = replace(seen, cpu_percent=seen.cpu_percent * workers / (workers - 1))
    assert leaning(wanted, replace(fewer, cpu_percent=round(fewer.cpu_percent or 0, 6)), workers - 1) is not Move.OUT


@given(WANTED, MEASURES, st.integers(1, 30))
def test_one_step_out_is_no_reason_for_a_step_in(wanted: Autoscale, seen: Measure, workers: int) -> None:
    """The same processor work among the workers of one step: without lag and waiting tasks nothing leaves at once."""
    if seen.cpu_percent is None or seen.cpu_percent <= wanted.scale_out_cpu_percent or seen.lag_records or seen.waiting:
        return
    after = needed(wanted, seen, workers)
    if after <= workers:
        return
    shared = replace(seen, cpu_percent=seen.cpu_percent * workers / after)
    assert needed(wanted, shared, after) == after
    assert leaning(wanted, shared, after) is not Move.IN
