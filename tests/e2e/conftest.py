from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.cli.system import Keelman

# A shell has what it runs in the background ignore Ctrl-C, and that is inherited; what is handled here is not.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keelman(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keelman]:
    """A system that runs for all tests of this folder that only look at it or copy through it."""
    made = Keelman(tmp_path_factory.mktemp("home"))
    try:
        await made.ok("up", "--detach", "--free-ports")
        yield made
    finally:
        await made.cleaned()


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path: Path) -> AsyncIterator[Keelman]:
    """A home of its own, not started; whatever a test leaves running there is ended."""
    made = Keelman(tmp_path / "home")
    try:
        yield made
    finally:
        await made.cleaned()
