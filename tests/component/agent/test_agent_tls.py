"""An agent that trusts its state service by a certificate, and is trusted by its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keelman.agent.service import run
from keelman.agent.settings import Settings
from keelman.api.node.v1.agent_service_pb2 import ListLocalWorkloadsRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.session_service_pb2_grpc import add_SessionServiceServicer_to_server
from keelman.gateway.trust import Agents
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc.server import RpcService, Tls, serve
from keelman.runtime.processes.ports import free_ports
from support.agent.agents import State
from support.certificates import Authority
from support.eventually import eventually

pytestmark = pytest.mark.component


def certificate(authority: Authority, folder: Path, name: str) -> Tls:
    issued = authority.issue(name, "127.0.0.1")
    files = folder / f"{name}.pem", folder / f"{name}.key"
    for file, text in zip(files, (issued.chain_pem, issued.key_pem), strict=True):
        file.write_text(text)
    return Tls(*files)


async def test_both_sides_speak_tls_where_certificates_say_so(tmp_path: Path) -> None:
    authority, state, stop = Authority(), State(), asyncio.Event()
    (tmp_path / "ca.pem").write_text(authority.pem)
    of_state, of_agent = certificate(authority, tmp_path, "state"), certificate(authority, tmp_path, "agent")
    port, state_port = free_ports(2)
    service = RpcService("keelman.api.node.v1.SessionService", add_SessionServiceServicer_to_server, state)
    fields: dict[str, Any] = {"node": "n1", "home": tmp_path / "home", "port": port}
    fields |= {"state_address": f"127.0.0.1:{state_port}", "state_ca": tmp_path / "ca.pem"}
    settings = Settings(**fields, tls_certificate=of_agent.certificate, tls_key=of_agent.key)
    async with serve(service, port=state_port, tls=of_state, grace_seconds=0.1):
        agent = asyncio.ensure_future(run(settings, stop))
        await eventually(lambda: state.sessions == 1, what="the agent has registered")
        assert state.registrations[0].node_address == "127.0.0.1"
        for agents, answers in ((Agents(authority.pem.encode()), True), (Agents(), False)):
            async with agents.channel(f"127.0.0.1:{port}") as channel:
                asking = AgentServiceStub(channel).ListLocalWorkloads(ListLocalWorkloadsRequest(), timeout=300)
                if answers:
                    assert not (await asking).workloads
                else:
                    with pytest.raises(Unavailable):
                        await asking
        stop.set()
        state.drop()
        await agent


async def test_what_leaves_the_host_in_plain_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgument, match=r"agent.state_address: '10.0.0.1:7410' .* state_ca, or with trust = mesh"
    ):
        await run(Settings(home=tmp_path, state_address="10.0.0.1:7410"), asyncio.Event())
    with pytest.raises(FailedPrecondition, match=r"the agent at 10.0.0.2:7420 .* gateway.agent_ca, or gateway.trust"):
        Agents().channel("10.0.0.2:7420")
