"""Back-off: it grows, is bounded, and is reset."""

from __future__ import annotations

import random

from keelman.runtime.backoff import Backoff


def test_delays_double_up_to_the_most_and_are_scattered() -> None:
    backoff = Backoff(first=1.0, most=8.0, source=random.Random(7))
    delays = [backoff.next() for _ in range(40)]
    for delay, whole in zip(delays, [1, 2, 4, *[8] * 37], strict=True):
        assert whole / 2 <= delay <= whole
    assert len(set(delays[3:])) > 30


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first=1.0, most=100.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_a_failure_is_new_once_until_a_success() -> None:
    backoff = Backoff()
    assert [backoff.is_new(text) for text in ("a", "a", "b", "a")] == [True, False, True, False]
    backoff.reset()
    assert backoff.is_new("a")
