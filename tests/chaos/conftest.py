from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chaos.chaos_system import Shape, System


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """One system for all faults of this folder."""
    async with System(tmp_path_factory.mktemp("chaos")) as new_system:
        yield new_system


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def on_three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """One system with three brokers for all faults of a file."""
    async with System(tmp_path_factory.mktemp("three"), Shape(brokers=3)) as new_system:
        yield new_system


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the tests on three brokers first, which end with their file: the other system must not run beside them."""
    items.sort(key=lambda item: "on_three" not in getattr(item, "fixturenames", ()))
