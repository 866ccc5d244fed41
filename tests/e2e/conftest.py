from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.rpc.channels import channel
from support.cli.dedicated_system import System
from support.cli.system import Keelman
from support.state.dedicated import Dedicated

# A shell makes its background processes ignore Ctrl-C, and children inherit that; a handler is not inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keelman(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keelman]:
    """A system for all tests of this folder that only read from it or copy through it."""
    new_keelman = Keelman(tmp_path_factory.mktemp("home"))
    try:
        await new_keelman.ok("up", "--detach", "--free-ports")
        yield new_keelman
    finally:
        await new_keelman.cleaned()


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path: Path) -> AsyncIterator[Keelman]:
    """A home of its own, not started; a process that a test leaves running there is ended."""
    new_keelman = Keelman(tmp_path / "home")
    try:
        yield new_keelman
    finally:
        await new_keelman.cleaned()


@pytest.fixture
async def system(keelman: Keelman) -> AsyncIterator[System]:
    """The system of this folder; connectors that a test leaves there are deleted."""
    servers = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"]
    async with channel(keelman.system["gateway"]) as link:
        new_system = System(keelman, Dedicated(link), servers)
        try:
            yield new_system
        finally:
            await new_system.deleted(*await new_system.dedicated.names())
