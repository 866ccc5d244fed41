"""A node of its own for each test of an agent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.agent.agents import Node, running_node


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with running_node(tmp_path) as node:
        yield node
