"""A client that TLS refuses is in the log of the state service, as an event with the reason and the client's host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.rpc.channels import channel
from keelman.rpc.credentials import Pems
from keelman.rpc.health import is_serving
from keelman.runtime.home import Home
from support.certificates import Authority
from support.eventually import eventually
from support.state.service import StateProcess

pytestmark = pytest.mark.component
AGENT = "keelman://node/n1"


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[tuple[StateProcess, Authority]]:
    """A state service that trusts a CA of the test's."""
    authority = Authority()
    own = authority.issue("state", "127.0.0.1")
    files = {"tls_certificate": own.chain_pem, "tls_key": own.key_pem, "client_ca": authority.pem}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    flags = [word for name in files for word in (f"--{name.replace('_', '-')}", str(tmp_path / name))]
    state_process = StateProcess(tmp_path / "s", *flags, "--trust", "installation")
    await state_process.spawn()
    await eventually(lambda: is_serving(f"unix:{Home(state_process.home).socket('state')}"), what="state serves")
    yield state_process, authority
    await state_process.end()


async def test_the_reason_is_logged_and_who_came(state: tuple[StateProcess, Authority]) -> None:
    process, authority = state
    other = Authority("others").issue("n1", AGENT)
    ended, good = authority.issue("n1", AGENT, ended=True), authority.issue("n1", AGENT)

    def shown(issued: object) -> Pems:
        return Pems(issued.chain_pem.encode(), issued.key_pem.encode(), authority.pem.encode())

    for pems, reason in (
        (Pems(roots=authority.pem.encode()), "it showed no certificate"),
        (shown(other), "its certificate is of another CA"),
        (shown(ended), "its certificate has ended, by the clock of this host"),
    ):
        assert not await answers(process, pems)

        def told(reason: str = reason) -> bool:
            events = [line for line in process.output.splitlines() if "handshake_refused" in line and reason in line]
            assert len(events) == 1, process.output
            assert "peer=127.0.0.1" in events[0]
            assert f"port={process.port}" in events[0]
            assert "service=state" in events[0]
            return True

        await eventually(told, seconds=20, what=reason)
    assert await answers(process, shown(good))
    assert "Handshake failed" not in process.output, "each is reported once"
    assert process.output.count("handshake_refused") == 3


async def answers(process: StateProcess, pems: Pems) -> bool:
    """Whether the state service speaks with a client of this certificate."""
    async with channel(f"127.0.0.1:{process.port}", root_certificates=pems.roots, client=pems) as link:
        call = link.unary_unary("/grpc.health.v1.Health/Check")
        try:
            await call(b"", timeout=10)
        except Exception:
            return False
        return True
