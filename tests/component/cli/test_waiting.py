"""`--wait` ends as soon as its resource is known not to come up: a real agent, real workers."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.cli.exits import FAILED
from support.certificates import Authority
from support.cli.system import PATIENCE_SECONDS, Keelman
from support.java.kit import needs_java
from support.worker.refused_properties import EXTENSION

pytestmark = pytest.mark.component
MAX_SECONDS = PATIENCE_SECONDS / 2
"""On a machine that does much else: without anything to end the wait it is twice as long."""


@pytest_asyncio.fixture(scope="module")
async def keelman(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keelman]:
    actual_keelman = Keelman(tmp_path_factory.mktemp("home"))
    try:
        await actual_keelman.ok("up", "--detach", "--no-broker", "--free-ports")
        await actual_keelman.ok("create", "bc", "ext", "--bootstrap-servers", "127.0.0.1:1")
        yield actual_keelman
    finally:
        await actual_keelman.cleaned()


async def fails(keelman: Keelman, *words: str, most: float = MAX_SECONDS) -> str:
    begun = time.monotonic()
    ran = await keelman.run(*words, "--wait")
    assert ran.code == FAILED, ran
    assert time.monotonic() - begun < most
    return ran.err


async def test_a_worker_that_refuses_its_properties_ends_the_wait(keelman: Keelman) -> None:
    values = ("--set", f"rest.extension.classes={EXTENSION}", "--set", "keelman.jaas.file=/not/here")
    reason = "keelman.jaas.file: '/not/here' cannot be read"
    new = ("create", "wc", "guarded", "--broker-cluster", "ext", "--count", "1", *values, "--start")
    printed = await fails(keelman, *new)
    assert "worker-cluster/guarded does not come up" in printed
    assert reason in printed
    assert reason in await fails(keelman, "start", "wc", "guarded")
    assert reason in await fails(keelman, "restart", "worker", "guarded/0")
    assert reason in (await keelman.item("wc", "guarded"))["status"]["message"]
    ran = await keelman.run("create", "connector", "guarded/x", "--set", "connector.class=x", "--wait")
    assert ran.code
    assert reason in ran.err


async def test_a_port_that_another_has_ends_the_wait(keelman: Keelman) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        new = ("create", "wc", "fixed", "--broker-cluster", "ext", "--count", "1", "--port", str(port), "--start")
        printed = await fails(keelman, *new)
    assert f"port {port} on 127.0.0.1 is taken" in printed


@needs_java()
async def test_a_java_worker_with_a_wrong_keystore_ends_the_wait(
    keelman: Keelman, bootstrap: str, tmp_path: Path
) -> None:
    keys = Authority().issue("worker", "127.0.0.1").write_pkcs12(tmp_path / "keys.p12")
    await keelman.ok("create", "bc", "kafka", "--bootstrap-servers", bootstrap)
    store = "listeners.https.ssl.keystore."
    fields = {"location": str(keys), "type": "PKCS12", "password": "wrong"}
    words = [word for key, value in fields.items() for word in ("--set", f"{store}{key}={value}")]
    new = ("create", "wc", "java", "--broker-cluster", "kafka", "--count", "1", "--engine", "kafka-connect", "--https")
    await keelman.ok(*new, *words)
    printed = await fails(keelman, "start", "wc", "java", most=2 * MAX_SECONDS)  # Java reports the error
    assert "worker-cluster/java does not come up" in printed
    assert f"{store}password: the password does not open" in printed
