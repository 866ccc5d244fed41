"""The certificate of a node's brokers: of this installation, good, of their addresses, and in all their folders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keelman.agent.trust import broker_certificate as module
from keelman.agent.trust.broker_certificate import KEYSTORE, Certificate
from keelman.agent.trust.trust import StateLink
from keelman.api.access.v1.certificate_service_pb2 import IssueBrokerCertificateResponse
from keelman.api.access.v1.certificate_service_pb2_grpc import CertificateServiceServicer
from keelman.model.errors import FailedPrecondition, PermissionDenied, Unavailable
from keelman.rpc.credentials import Pems
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.membership import MemberFolder
from keelman.rpc.server import RpcService, serve
from keelman.runtime.home import write_file
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, made_key
from keelman.state.trust.authority import Authority
from support.eventually import eventually

HOLDER = Identity(IdentityKind.BROKER, "n1")
CA, OTHER_CA = (Authority.made(datetime.now(UTC) - timedelta(days=1)) for _ in range(2))
HOSTS = ("Host.Example.org.", "FD00:0::1")


def signed(*hosts: str, authority: Authority = CA, life: timedelta = timedelta(days=1)) -> Pems:
    """Key and certificate of the brokers."""
    key = made_key()
    chain = authority.sign(certificate_request(key), HOLDER, hosts, datetime.now(UTC), life)
    return Pems(chain.encode(), key, authority.pem.encode())


@dataclass
class Signing(CertificateServiceServicer):
    """Signs for these hosts, or answers with the problem."""

    hosts: tuple[str, ...] = ("host.example.org", "fd00::1")
    problem: str = ""
    asked: int = 0
    signed: list[str] = field(default_factory=list)

    async def IssueBrokerCertificate(self, request: Any, context: Any) -> IssueBrokerCertificateResponse:
        self.asked += 1
        if self.problem:
            raise PermissionDenied(self.problem)
        life = timedelta(days=1)
        chain = CA.sign(request.certificate_request, HOLDER, self.hosts, datetime.now(UTC), life)
        self.signed.append(chain)
        return IssueBrokerCertificateResponse(certificate=chain, authority=CA.pem)


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    link = StateLink(lambda: Pems(roots=CA.pem.encode()))
    folder = MemberFolder(tmp_path / "member")
    return Certificate(folder, tmp_path / "workloads", link, f"unix:{tmp_path}/socket", "n1", HOSTS)


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[Signing]:
    signing = Signing()  # type: ignore[abstract]
    async with serve(RpcService.of(signing), socket=tmp_path / "socket"):
        yield signing


@contextlib.asynccontextmanager
async def running(certificate: Certificate) -> AsyncIterator[None]:
    task = asyncio.ensure_future(certificate.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.contextmanager
def missing(match: str) -> Iterator[None]:
    with pytest.raises(Unavailable, match=match) as error:
        yield
    assert error.value.reason == "CERTIFICATE_MISSING"


def why(certificate: Certificate) -> str:
    """The reason why a broker gets no files."""
    try:
        certificate.files("fd00::1")
    except (Unavailable, FailedPrecondition) as error:
        return error.message
    return ""


def files(certificate: Certificate) -> str:
    """The keystore of a broker; empty while it gets none."""
    return "" if why(certificate) else certificate.files("fd00::1")[KEYSTORE]


def test_one_of_another_installation_is_not_taken_up(certificate: Certificate) -> None:
    certificate.folder.write(signed("host.example.org", "fd00::1", authority=OTHER_CA))
    certificate.begin()
    with missing("has not come from the state service at"):
        certificate.files("fd00::1")
    certificate.folder.write(stored := signed("host.example.org", "fd00::1"))
    certificate.begin()
    for host in ("HOST.example.org", "fd00:0:0::1"):
        assert certificate.files(host)[KEYSTORE].encode() == stored.key + stored.chain


async def test_one_that_ended_is_given_to_no_broker_and_renewed(certificate: Certificate, state: Signing) -> None:
    state.problem = "not today"
    certificate.folder.write(signed("host.example.org", "fd00::1", life=timedelta(seconds=3)))
    certificate.begin()
    certificate.files("fd00::1")

    ends = certificate_facts(certificate.folder.certificate.read_bytes()).end
    await eventually(lambda: datetime.now(UTC) > ends, seconds=10)
    with missing("ended at .* UTC, and a later one has not come .* yet"):
        certificate.files("fd00::1")
    async with running(certificate):
        await eventually(lambda: state.asked, seconds=10)
        await eventually(lambda: "not today" in why(certificate), seconds=10)
        state.problem = ""
        await eventually(lambda: state.signed, seconds=10)
        await eventually(lambda: state.signed[-1] in files(certificate), seconds=10)


async def test_what_is_missing_says_why(certificate: Certificate, state: Signing) -> None:
    state.problem = "node 'n1' joined again on another host"
    async with running(certificate):
        assert "joined again" not in why(certificate)
        await eventually(lambda: "yet: node 'n1' joined again on another host" in why(certificate), seconds=10)


async def test_an_address_that_was_refused_is_asked_for_again(certificate: Certificate, state: Signing) -> None:
    state.hosts = ("host.example.org",)
    async with running(certificate):
        assert not files(certificate)
        await eventually(lambda: state.signed, seconds=10)
        await eventually(lambda: "a gateway or another node has this name" in why(certificate), seconds=10)
        first = certificate.files("host.example.org")
        await eventually(lambda: len(state.signed) == 2, seconds=10)
        assert certificate.files("host.example.org") == first, "brokers read no other file of the same content"
        state.hosts += ("fd00::1",)
        await eventually(lambda: files(certificate), seconds=20)
    key = certificate_facts(first[KEYSTORE].partition("-----END PRIVATE KEY-----\n")[2].encode()).key_digest
    assert certificate_facts(certificate.folder.certificate.read_bytes()).key_digest == key


async def test_files_that_were_not_written_are_written_soon(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPREAD_SECONDS", 0.1)
    certificate.folder.write(stored := signed("host.example.org", "fd00::1"))
    keystore = certificate.workloads / "broker-x-0" / KEYSTORE
    write_file(keystore, b"of before")
    certificate.begin()
    assert keystore.read_bytes() == stored.key + stored.chain
    async with running(certificate):
        write_file(keystore, b"an older one, written last")
        await eventually(lambda: keystore.read_bytes() == stored.key + stored.chain, seconds=10)
