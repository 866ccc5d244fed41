"""Commands in a context: `keelman` itself calls a gateway with TLS on both of its ports that requires a token."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.errors import Unauthenticated, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.credentials import Pems
from keelman.rpc.generated import stub_of
from keelman.runtime.processes.ports import free_ports
from support.certificates import Authority
from support.gateway.system import System, running_system

pytestmark = pytest.mark.component


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder and environment in which a user types commands."""

    folder: Path
    system: System

    async def run(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, output and errors."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KEELMAN_")}
        environment |= {"KEELMAN_HOME": str(self.folder), "KEELMAN_CONTEXTS": str(self.folder / "contexts.json")}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "keelman.cli", *words, stdin=-1, stdout=-1, stderr=-1, env=environment
        )
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 120)
        return process.returncode or 0, out.decode(), err.decode()


@pytest_asyncio.fixture(scope="module")
async def shell(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shell]:
    folder = tmp_path_factory.mktemp("contexts")
    authority = Authority()
    issued = authority.issue("gateway", "127.0.0.1")
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "tls.pem").write_text(issued.chain_pem)
    (folder / "tls.key").write_text(issued.key_pem)
    (folder / "access.toml").write_text("[[user]]\nname = 'alice'\nrole = 'viewer'\n")
    users = Authority("users")
    (folder / "users.pem").write_text(users.pem)
    for name, issuer in (("alice", users), ("bob", users), ("mallory", Authority("others"))):
        shown = "alice" if name == "mallory" else name
        own = issuer.issue(name, f"keelman://user/{shown}")
        (folder / f"{name}.pem").write_text(own.chain_pem)
        (folder / f"{name}.key").write_text(own.key_pem)
    [client_port] = free_ports(1)
    settings = {
        "access-file": str(folder / "access.toml"),
        "tls-certificate": str(folder / "tls.pem"),
        "tls-key": str(folder / "tls.key"),
        "http-tls": "true",
        "client-port": str(client_port),
        "client-ca": str(folder / "users.pem"),
        "health-socket": str(folder / "gateway.sock"),
    }
    async with running_system(folder, {"node-1": "127.0.0.1"}, settings) as system:
        yield Shell(folder, system)


async def test_commands_ask_the_gateway_of_their_context(shell: Shell) -> None:
    flags, ca = shell.system.gateway.flags, str(shell.folder / "ca.pem")
    http = f"https://127.0.0.1:{flags['http-port']}"
    results = ("token", "create", "--name", "me", "--role", "operator", "--file", flags["access-file"])
    _, token, _ = await shell.run(*results)
    words = ("context", "create", "own", "--gateway", f"127.0.0.1:{flags['port']}", "--http", http, "--ca", ca)
    assert (await shell.run(*words, "--token-file", "-", stdin=token))[0] == 0
    assert (await shell.run("context", "create", "nobody", *words[3:]))[0] == 0
    code, out, err = await shell.run("get", "nodes", "-o", "name", "--context", "own")
    assert (code, out) == (0, "node/node-1\n"), err
    code, _, err = await shell.run("get", "nodes", "--context", "nobody")
    assert code == 1
    assert "Authorization: Bearer TOKEN" in err
    assert (await shell.run("context", "use", "own"))[0] == 0
    code, _, err = await shell.run("delete", "node", "node-1", "--yes")
    assert code == 1
    assert "me is operator and may not manage-nodes" in err
    code, _, err = await shell.run("validate", "nothing/c", "--set", "a=b")  # Connect's REST API, over https
    assert code == 3
    assert "nothing" in err
    code, _, err = await shell.run("validate", "nothing/c", "--set", "a=b", "--context", "nobody")
    assert code == 1
    assert "needs a context with a token" in err


async def test_a_certificate_says_who_asks(shell: Shell) -> None:
    address, ca = f"127.0.0.1:{shell.system.gateway.flags['client-port']}", shell.folder / "ca.pem"

    def files(name: str) -> tuple[Path, Path]:
        return shell.folder / f"{name}.pem", shell.folder / f"{name}.key"

    async def nodes(name: str) -> None:
        chain, key = (file.read_bytes() for file in files(name))
        shown = Pems(chain, key)
        async with channel(address, root_certificates=ca.read_bytes(), client=shown) as link:
            await stub_of(link, "node", "node").ListNodes(ListNodesRequest(), timeout=300)

    certificate, key = map(str, files("alice"))
    words = ("--gateway", address, "--ca", str(ca), "--certificate", certificate, "--key", key)
    assert (await shell.run("context", "create", "alice", *words))[0] == 0
    code, out, err = await shell.run("get", "nodes", "-o", "name", "--context", "alice")
    assert (code, out) == (0, "node/node-1\n"), err
    with pytest.raises(Unauthenticated, match="user 'bob' is no caller that the access file names"):
        await nodes("bob")
    with pytest.raises(Unavailable):  # another authority calls this one alice
        await nodes("mallory")


async def test_http_speaks_tls(shell: Shell) -> None:
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=300) as http:
        answer = await http.get(f"https://127.0.0.1:{shell.system.gateway.flags['http-port']}/")
        assert answer.status_code == 401
