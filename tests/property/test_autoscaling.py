"""For any measures, workers remain within their bounds, come and go one by one, and rest in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keelman.model.autoscale import Autoscale
from keelman.state.autoscaling.decision import NO_TREND, Measure, followed, next_workers

WANTED = st.builds(
    lambda least, more, samples, every, pause: Autoscale(
        least, least + more, samples=samples, sample_seconds=every, cool_down_seconds=pause
    ),
    st.integers(1, 5), st.integers(0, 5), st.integers(1, 5), st.floats(1, 20), st.floats(0, 100),
)  # fmt: skip
MEASURES = st.builds(
    Measure, st.sampled_from([None, 5.0, 50.0, 95.0]), st.integers(0, 10), st.sampled_from([True, True, False])
)
LOOKS = st.lists(st.tuples(st.floats(0.1, 30), MEASURES, st.integers(1, 8)), max_size=40)


@given(WANTED, LOOKS)
def test_steps_are_small_rare_and_within_bounds(wanted: Autoscale, looks: list[tuple[float, Measure, int]]) -> None:
    trend, workers, now = NO_TREND, wanted.min_workers, 0.0
    stepped: float | None = None
    begun: list[Measure] = []
    for pause, seen in [(pause, seen) for pause, seen, times in looks for _ in range(times)]:
        now += pause
        trend = followed(trend, wanted, seen, now)
        begun.append(seen)
        actual_workers = next_workers(trend, wanted, workers, None if stepped is None else now - stepped)
        assert wanted.min_workers <= actual_workers <= wanted.max_workers
        assert abs(actual_workers - workers) <= 1
        if actual_workers == workers:
            continue
        assert stepped is None or now - stepped >= wanted.cool_down_seconds
        last = begun[-wanted.samples :]
        assert len(last) == wanted.samples, "no step before so many looks"
        if actual_workers > workers:
            assert {item.cpu_percent for item in last} == {95.0}
        else:
            assert {(item.cpu_percent, item.whole) for item in last} == {(5.0, True)}
        workers, stepped, trend, begun = actual_workers, now, NO_TREND, []
