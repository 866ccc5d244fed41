"""A world with one worker, as most tests of the Spark service begin."""

from __future__ import annotations

import pytest

from support.worlds.dispatch import ME, World


@pytest.fixture
def w() -> World:
    world = World()
    world.d.greet(ME, world)
    return world
