"""An address that guesses tokens is slowed down at a real gateway; known callers at the same address are not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.access.roles import token_digest
from keelman.model.errors import Unauthenticated
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from support.gateway.system import running_system

pytestmark = pytest.mark.component
FREE, GUESSES = 5, 9


async def test_guesses_are_slow_and_known_callers_are_not(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(f"[[token]]\nsha256 = '{token_digest('of-ada')}'\nname = 'ada'\nrole = 'admin'\n")
    settings = {"access-file": str(file), "free-failures": str(FREE)}
    async with (
        running_system(tmp_path, {}, settings) as system,
        channel(system.gateway.address, token="guess") as stranger,
        channel(system.gateway.address, token="of-ada") as ada,
        httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as http,
    ):

        async def guess() -> None:
            with pytest.raises(Unauthenticated):
                await stub_of(stranger, "node", "node").ListNodes(ListNodesRequest())

        async def guess_by_http() -> None:
            assert (await http.get("/v0/nodes", auth=("any", "guess"))).status_code == 401

        async def known() -> None:
            await stub_of(ada, "node", "node").ListNodes(ListNodesRequest())
            assert (await http.get("/v0/nodes", auth=("any", "of-ada"))).status_code == 200

        await known()
        for _ in range(GUESSES):
            await guess()
        assert await seconds_of(guess) > 1.0
        assert await seconds_of(guess_by_http) > 1.0
        slow = asyncio.ensure_future(guess())
        took = [await seconds_of(known) for _ in range(5)]
        assert not slow.done(), "the guess still waits"
        assert min(took) < 1.0
        await slow


async def seconds_of(call: Callable[[], Coroutine[Any, Any, None]]) -> float:
    """How long a call takes."""
    began = time.monotonic()
    await call()
    return time.monotonic() - began
