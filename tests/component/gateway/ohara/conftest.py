"""One system for all Ohara tests that need no real brokers: each test works in a group of its own."""

import itertools
from collections.abc import AsyncIterator

import pytest

from support.gateway.ohara.clients import JsClient, OharaWorld, ohara_world

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OharaWorld]:
    """State, a gateway, and obedient agents on node00, node01 and node02."""
    async with ohara_world(tmp_path_factory.mktemp("ohara")) as started_world:
        yield started_world


@pytest.fixture(scope="session")
async def wire(world: OharaWorld) -> JsClient:
    """A client of the shared system."""
    return world.js


@pytest.fixture
def group() -> str:
    """A group that no other test has."""
    return f"g{next(NUMBERS)}"
