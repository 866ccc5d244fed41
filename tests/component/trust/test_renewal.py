"""Certificates that are renewed while agents, gateways and state services run."""

from pathlib import Path

import pytest

from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceStub
from keelman.rpc.channels import channel
from keelman.rpc.identity import STATE_NAME, Identity, IdentityKind
from keelman.rpc.membership import MemberFolder
from keelman.runtime.tls.certificates import certificate_facts
from support.eventually import eventually
from support.state.trust import installation

pytestmark = pytest.mark.component
LIFE_HOURS = 9 / 3600


async def test_all_certificates_are_renewed_and_nobody_is_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with installation(tmp_path, certificate_hours=LIFE_HOURS) as installed:
        https = await installed.https()
        assert "gateway.keelman.internal" in https.hosts
        await installed.join("n1")
        folder = MemberFolder(installed.homes["n1"].member("node"))
        first = certificate_facts(folder.certificate.read_bytes())
        key = folder.key.read_bytes()
        async with installed.agent("n1") as agent:
            await installed.online("n1")

            async def twice() -> bool:
                assert not agent.done()
                await installed.nodes()  # the gateway continues to answer
                return certificate_facts(folder.certificate.read_bytes()).end > first.end + (first.end - first.begin)

            await eventually(twice, every=0.2, what="the certificate was renewed")
            await installed.online("n1", seconds=300)
            assert (await installed.https()).end > https.end, "https has a certificate that came since, too"
            printed = capsys.readouterr().out
            assert printed.count("session_opened") >= 2, "a session is one of a certificate that holds"
            assert printed.count("session_opened") <= 5
            assert folder.key.read_bytes() == key
            pems = folder.read(Identity(IdentityKind.NODE, "n1"))
            async with channel(
                installed.state, root_certificates=pems.roots, client=pems, server_name=STATE_NAME
            ) as link:
                await link.channel_ready()  # by a newer certificate of the state service
                assert SessionServiceStub(link)
