"""Rounds in which ours and the variants of the peer take turns, so that what slows the machine slows all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
OURS = "keelman"


def order(turn: int, variants: Sequence[str]) -> list[str]:
    """Who is measured when in a round: ours beside the first variant, first in even rounds, last in odd ones."""
    names = [OURS, *variants]
    return names if turn % 2 == 0 else names[::-1]


async def interleaved(
    turns: int,
    variants: Sequence[str],
    measure: Callable[[str], Awaitable[T]],
    rank: Callable[[Sequence[T]], float],
    say: Callable[[int, str, T], None],
) -> dict[str, list[T]]:
    """What was measured of each, round by round; ours under OURS.

    From the second round on the variant that is best so far, by the least `rank`, is measured next to ours.
    """
    found: dict[str, list[T]] = {OURS: [], **{variant: [] for variant in variants}}
    for turn in range(turns):
        ranked = sorted(variants, key=lambda one: rank(found[one])) if turn else list(variants)
        for name in order(turn, ranked):
            found[name].append(await measure(name))
            say(turn, name, found[name][-1])
    return found


def picked(found: Mapping[str, Sequence[T]], of: Callable[[T], float]) -> tuple[list[float], dict[str, list[float]]]:
    """One figure of what was measured: ours, and that of each variant."""
    figures = {name: [of(one) for one in values] for name, values in found.items()}
    return figures.pop(OURS), figures
