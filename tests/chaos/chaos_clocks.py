"""Clocks that are changed while everything runs."""

from __future__ import annotations

from chaos.chaos_links import Strike
from chaos.chaos_scene import Scene

HALF_AN_HOUR = 1_800
"""Brokers refuse records that are more than an hour ahead of their own clock."""


def set_forth_and_back(whose: str) -> Strike:
    """Sets a clock half an hour ahead, half an hour behind, and right again; the broker's or that of all others."""

    async def do(scene: Scene) -> None:
        clock = scene.system.clocks[whose]
        ahead = scene.chance.choice((HALF_AN_HOUR, -HALF_AN_HOUR))
        for seconds in (ahead, -ahead, 0):
            await scene.moment()
            scene.mark()
            clock.set(seconds)

    return do
