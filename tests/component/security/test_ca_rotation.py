"""The CA of an installation is replaced by command while its services and a broker with TLS run, as on two hosts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.errors import Unauthenticated
from keelman.rpc.channels import channel
from keelman.rpc.credentials import Pems
from keelman.rpc.generated import stub_of
from keelman.rpc.handshake import ask_chain, handshake_problem
from keelman.rpc.identity import STATE_NAME, Identity, IdentityKind
from keelman.rpc.membership import MemberFolder, look_up
from keelman.runtime.tls.certificates import digest_of_der, last_digest
from support.eventually import eventually
from support.hosts.networks import STATE, cabled
from support.hosts.operator import Commands, first_host, operated

pytestmark = [pytest.mark.component, pytest.mark.fault]
N1 = Identity(IdentityKind.NODE, "n1")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with cabled(tmp_path, ("n1",)) as system, operated(system) as opened:
        yield opened


async def run(commands: Commands, *words: str, code: int = 0) -> str:
    return await asyncio.to_thread(commands.run, *words, code=code, seconds=620)


@contextlib.asynccontextmanager
async def calling(commands: Commands, token: str) -> AsyncIterator[list[BaseException]]:
    """Calls through the gateway on a new connection each time, and yields the list of failures."""
    failures: list[BaseException] = []
    count = 0

    async def call() -> None:
        nonlocal count
        while True:
            trusted = await asyncio.to_thread(commands.authority.read_bytes)
            try:
                async with channel(commands.gateway, root_certificates=trusted, token=token) as link:
                    await stub_of(link, "node", "node").ListNodes(ListNodesRequest(), timeout=10.0)
                count += 1
            except Exception as error:
                failures.append(error)

    task = asyncio.ensure_future(call())
    try:
        yield failures
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert count > 10


async def pid_of_broker(commands: Commands) -> int:
    tree = json.loads(await run(commands, "get", "workloads", "-o", "json"))
    (found,) = [w for w in (tree["items"] if isinstance(tree, dict) else tree) if w["name"] == "broker/default/0"]
    return int(found["status"]["pid"])


async def followed(commands: Commands) -> str:
    """The CA's table, once nobody is behind."""

    async def all_are() -> str:
        shown = await run(commands, "authority", "show")
        assert "node/n1" in shown
        assert "broker/n1" in shown
        return "" if " no " in shown else shown

    return await eventually(all_are, every=1.0, what="all members have followed")


async def test_the_ca_is_replaced_while_everything_runs(commands: Commands) -> None:
    token = await first_host(commands)
    commands.join("n1", "--workload-trust", "https")
    await eventually(lambda: commands.in_state("n1", "ONLINE"), what="n1 is online")
    create = ("create", "broker-cluster", "default", "--nodes", "n1", "--tls", "mutual")
    await run(commands, *create, "--wait", "--timeout", "600")
    folder = MemberFolder(commands.home("n1").member("node"))
    state = f"{commands.system.address}:{STATE}"
    old, old_ca = folder.read(N1), commands.authority.read_bytes()
    pid = await pid_of_broker(commands)
    broker = json.loads(await run(commands, "get", "broker-cluster", "default", "-o", "json"))

    async with calling(commands, token) as failures:
        assert "the next CA is trusted, too" in await run(commands, "authority", "rotate")
        refused = await run(commands, "authority", "rotate", code=4)
        assert "do not trust the new CA yet" in refused
        await followed(commands)
        assert old_ca in commands.authority.read_bytes()
        assert "the next CA signs" in await run(commands, "authority", "rotate")
        await followed(commands)
        both = Pems(old.chain, old.key, commands.authority.read_bytes())
        assert await handshake_problem(state, both, STATE_NAME) == "", "the former CA is trusted still"
        async with channel(state, root_certificates=both.roots, client=both, server_name=STATE_NAME) as opened:
            assert (await look_up(opened)).issuer != last_digest(old_ca)
            assert "one CA signs and is trusted" in await run(commands, "authority", "rotate")

            with pytest.raises(Unauthenticated, match="is of a CA that was replaced"):
                await look_up(opened)  # on the connection that was opened before
        new = (await run(commands, "authority", "export")).encode()

        def only_new() -> bool:
            return commands.authority.read_bytes() == new == folder.authority.read_bytes()

        await eventually(only_new, every=0.5, what="only the new CA is trusted")
        commands.in_state("n1", "ONLINE")
    assert failures == []
    assert last_digest(new) != last_digest(old_ca)
    problem = await handshake_problem(state, Pems(old.chain, old.key, new), STATE_NAME)
    assert problem, "a certificate of the former CA is refused"

    host, _, port = broker["status"]["bootstrap_servers"].rpartition(":")

    async def broker_shows_it() -> bool:
        chain = await ask_chain(host, int(port))
        return digest_of_der(chain[-1]) == digest_of_der(ssl.PEM_cert_to_DER_cert(new.decode()))

    await eventually(broker_shows_it, every=0.5, what="the broker's certificate is of the new CA")
    assert await pid_of_broker(commands) == pid, "the broker was not started again"
    assert all(process.poll() is None for _, process in commands.running), "no service was started again"
