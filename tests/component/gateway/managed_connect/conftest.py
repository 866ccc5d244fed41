"""One system for all tests of the managed Connect API: names are a test's own."""

from collections.abc import AsyncIterator

import pytest

from support.gateway.managed_connect.world import World, managed_connect_world


@pytest.fixture(scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """State, gateway, agent and a broker."""
    async with managed_connect_world(tmp_path_factory.mktemp("managed")) as started_world:
        yield started_world
