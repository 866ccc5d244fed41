"""When the timers of a process fire."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.runtime.ticks import SOON, until_tick

TIMES = st.floats(min_value=0, max_value=1e8)


@given(TIMES, st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0]))
def test_the_next_tick_is_a_multiple_and_never_at_once(now: float, seconds: float) -> None:
    left = until_tick(seconds, now)
    assert SOON * seconds < left <= (1 + SOON) * seconds + 1e-6
    assert (now + left) / seconds == pytest.approx(round((now + left) / seconds), abs=1e-4)


@given(TIMES)
def test_a_slower_timer_fires_with_a_quicker_one(now: float) -> None:
    slow = now + until_tick(1.0, now)
    assert (slow / 0.5) == pytest.approx(round(slow / 0.5), abs=1e-4)


def test_a_timer_that_fires_a_little_early_waits_for_the_next_tick() -> None:
    assert until_tick(1.0, 41.9999) == pytest.approx(1.0001)


def test_processes_of_one_host_do_not_wake_together() -> None:
    words = "from keelman.runtime import ticks; print(ticks._phase())"
    processes = [subprocess.run([sys.executable, "-c", words], capture_output=True, check=True) for _ in range(3)]
    assert len({process.stdout for process in processes}) == 3, os.getpid()
