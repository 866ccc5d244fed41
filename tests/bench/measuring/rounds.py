"""Rounds in which ours and the variants of the peer take turns: a slow phase of the machine slows all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bench.measuring.data import Missed

T = TypeVar("T")
OURS = "keelman"
SETTLED = 0.97
"""Two rounds that cost the brokers no less than so much of the cheapest before them are the last to warm up."""


async def seen(measure: Callable[[], Awaitable[T]]) -> T:
    """The result of a measurement; a measurement that missed its effect is repeated, twice at most."""
    for _ in range(2):
        try:
            return await measure()
        except Missed:
            continue
    return await measure()


def order(turn: int, variants: Sequence[str]) -> list[str]:
    """The order of measurements in a round: ours next to the first variant, first in even rounds, last in odd ones."""
    names = [OURS, *variants]
    return names if turn % 2 == 0 else names[::-1]


async def settled(
    variants: Sequence[str], measure: Callable[[str], Awaitable[T]], cost: Callable[[T], float], at_most: int
) -> None:
    """Runs rounds that do not count, until the copy's cost to the brokers has not fallen in two of them.

    The brokers' Java compiler takes as much of the processors at first as the copies do.
    """
    least, dearer = math.inf, 0
    for _ in range(at_most):
        costs = [cost(await seen(lambda name=name: measure(name))) for name in order(0, variants)]
        dearer = dearer + 1 if min(costs) > SETTLED * least else 0
        if dearer == 2:
            return
        least = min(least, *costs)


async def interleaved(
    turns: int,
    variants: Sequence[str],
    measure: Callable[[str], Awaitable[T]],
    rank: Callable[[Sequence[T]], float],
    say: Callable[[int, str, T], None],
    *,
    warm_up: int = 0,
) -> dict[str, list[T]]:
    """The measurements of each system, round by round; ours under OURS.

    From the second round on the variant that is best so far, by the least `rank`, is measured next to ours. The
    `warm_up` rounds before, whose numbers are below 0, do not count: Java's compiler takes as much of the processors in
    the first seconds of a copy as the copy itself, on the brokers' side for both systems.
    """
    answer: dict[str, list[T]] = {OURS: [], **{variant: [] for variant in variants}}
    for turn in range(-warm_up, turns):
        ranked = sorted(variants, key=lambda value: rank(answer[value])) if answer[OURS] else list(variants)
        for name in order(turn, ranked):
            value = await seen(lambda name=name: measure(name))
            say(turn, name, value)
            if turn >= 0:
                answer[name].append(value)
    return answer


def picked(answer: Mapping[str, Sequence[T]], of: Callable[[T], float]) -> tuple[list[float], dict[str, list[float]]]:
    """One figure of the measurements: ours, and the figure of each variant."""
    figures = {name: [of(value) for value in values] for name, values in answer.items()}
    return figures.pop(OURS), figures


def slowness(rounds: Sequence[tuple[float, ...]]) -> float:
    """The rank by rate, the first value of each round: the best variant has the lowest."""
    return -statistics.median(rate for rate, *_ in rounds)


def lateness(rounds: Sequence[list[float]]) -> float:
    """The rank by the latencies of each round."""
    return statistics.median(map(statistics.median, rounds))
