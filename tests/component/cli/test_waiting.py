"""`--wait` ends as soon as it is known that what it waits for does not come up: a real agent, real workers."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keelman.cli.exits import FAILED
from support.refused_properties import EXTENSION
from support.system_kit import Keelman

pytestmark = pytest.mark.component
MAX_SECONDS = 60.0
"""On a machine that does much else; without anything to end the wait it is 180 s."""


@pytest_asyncio.fixture(scope="module")
async def keelman(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keelman]:
    found = Keelman(tmp_path_factory.mktemp("home"))
    try:
        await found.ok("up", "--detach", "--no-broker", "--free-ports")
        await found.ok("create", "bc", "ext", "--bootstrap-servers", "127.0.0.1:1")
        yield found
    finally:
        await found.cleaned()


async def fails(keelman: Keelman, *words: str) -> str:
    begun = time.monotonic()
    ran = await keelman.run(*words, "--wait", seconds=170)
    assert ran.code == FAILED, ran
    assert time.monotonic() - begun < MAX_SECONDS
    return ran.err


async def test_a_worker_that_refuses_its_properties_ends_the_wait(keelman: Keelman) -> None:
    given = ("--set", f"rest.extension.classes={EXTENSION}", "--set", "keelman.jaas.file=/not/here")
    why = "keelman.jaas.file: '/not/here' cannot be read"
    new = ("create", "wc", "guarded", "--broker-cluster", "ext", "--count", "1", *given, "--start")
    said = await fails(keelman, *new)
    assert "worker-cluster/guarded does not come up" in said
    assert why in said
    assert why in await fails(keelman, "start", "wc", "guarded")
    assert why in await fails(keelman, "restart", "worker", "guarded/0")
    assert why in (await keelman.item("wc", "guarded"))["status"]["message"]
    ran = await keelman.run("create", "connector", "guarded/x", "--set", "connector.class=x", "--wait")
    assert ran.code
    assert why in ran.err


async def test_a_port_that_another_has_ends_the_wait(keelman: Keelman) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        new = ("create", "wc", "fixed", "--broker-cluster", "ext", "--count", "1", "--port", str(port), "--start")
        said = await fails(keelman, *new)
    assert f"port {port} on 127.0.0.1 is taken" in said
