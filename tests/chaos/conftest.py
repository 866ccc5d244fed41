from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from chaos_system import System


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """One system for all accidents of this folder."""
    async with System(tmp_path_factory.mktemp("chaos")) as made:
        yield made
