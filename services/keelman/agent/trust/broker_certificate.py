"""Keeps the certificate of a node's brokers: requests it from the state service, renews it, and gives it to each broker
with TLS, and to drivers of Spark clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from keelman.agent.trust.trust import StateLink
from keelman.api.access.v1.certificate_service_pb2 import IssueBrokerCertificateRequest
from keelman.api.access.v1.certificate_service_pb2_grpc import CertificateServiceStub
from keelman.model.errors import FailedPrecondition, KeelmanError, Unavailable
from keelman.rpc.credentials import Pems
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.membership import CALL_SECONDS, Member, MemberFolder, TrustedAuthority, checked_member, look_up
from keelman.runtime.backoff import Backoff
from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import supervise
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, made_key, normal_host, shown_time

log = get_logger()
KEYSTORE, AUTHORITY = "keystore.pem", "ca.pem"
"""Files beside a broker: its private key with its certificates, and the CA's."""
SPREAD_SECONDS = 60.0
"""The time after which a broker's files are written again if they are wrong, because they could not be written or an
older certificate was written last."""


@dataclass(slots=True)
class Certificate:
    """One key and certificate for all brokers of a node, requested when the first one needs it. The agent's own key, by
    which it is known as the node, stays with the agent."""

    folder: MemberFolder
    """The agent's folder for it."""
    workloads: Path
    """Parent of the brokers' folders."""
    link: StateLink
    state_address: str
    node: str
    hosts: tuple[str, ...]
    """The addresses by which the brokers are reached."""
    owner: tuple[int, int] | None = None
    """User and group that own the brokers' files; None: the agent's own do."""
    _pems: Pems | None = None
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _refused: asyncio.Event = field(default_factory=asyncio.Event)
    _problem: str = ""
    """Why the last request got no certificate."""

    @property
    def holder(self) -> Identity:
        """The identity in the certificate."""
        return Identity(IdentityKind.BROKER, self.node)

    def begin(self) -> None:
        """Takes the certificate of an earlier agent. If it is for other addresses or another installation, or has
        ended, it is requested again where a broker has it."""
        with suppress(FailedPrecondition):
            pems = self.folder.read(self.holder)
            is_ours = pems.roots == self.link.newest().roots
            if is_ours and {normal_host(host) for host in self.hosts} <= _hosts(pems):
                self._pems = pems
                self._spread(pems)
        if self._keystores():
            self._wanted.set()

    def files(self, host: str) -> Mapping[str, str]:
        """Returns the files of a broker at an address, by name. Raises Unavailable while there is no good certificate,
        and FailedPrecondition where it does not name the address: then a new one is requested."""
        self._wanted.set()
        if self._pems is None:
            raise self._missing("has not come")
        end = certificate_facts(self._pems.chain).end
        if end <= datetime.now(UTC):
            raise self._missing(f"ended at {shown_time(end)}, and a later one has not come")
        if normal_host(host) not in _hosts(self._pems):
            self._refused.set()
            raise FailedPrecondition(
                f"the state service signed no certificate for brokers at {host}: a gateway or another node has this "
                "name, and this agent connects from another address; give one of them an address of its own "
                "(agent.node_address)",
                reason="ADDRESS_REFUSED",
            )
        return _files(self._pems)

    def _missing(self, what: str) -> Unavailable:
        reason = f": {self._problem}" if self._problem else ""
        text = f"the certificate of {self.holder} {what} from the state service at {self.state_address} yet{reason}"
        return Unavailable(text, reason="CERTIFICATE_MISSING")

    async def run(self) -> None:
        """Has it signed, once it is wanted, and again before it ends; keeps the brokers' files up to date. Runs until
        cancelled."""
        await self._wanted.wait()
        backoff = Backoff(first=0.5, most=60.0)
        while self._pems is None:
            try:
                await self._first()
            except (KeelmanError, OSError, ValueError) as error:
                self._problem = str(error)
                log.warning("certificate_not_signed", holder=self.holder.path, error=self._problem)
                await asyncio.sleep(backoff.next())
        member = Member(self.holder, self._pems, self._ask, self._keep, self._look)
        await supervise(member.run, self._ask_for_hosts, self._keep_spread)

    async def _first(self) -> None:
        await asyncio.to_thread(self._keep, await self._signed(made_key()))
        log.info("certificate_signed", holder=self.holder.path)

    async def _ask_for_hosts(self) -> None:
        """Requests it again while a broker's address is not in the certificate: the other user of that address may be
        gone. Runs until cancelled."""
        backoff = Backoff(first=1.0, most=60.0)
        while True:
            await self._refused.wait()
            self._refused.clear()
            await asyncio.sleep(backoff.next())
            assert self._pems is not None  # else nothing was refused
            try:
                signed = await self._signed(self._pems.key)
                if _hosts(signed) == _hosts(self._pems):  # no reason to have brokers read another
                    continue
                await asyncio.to_thread(self._keep, signed)
            except (KeelmanError, OSError, ValueError) as error:
                log.warning("certificate_not_signed", holder=self.holder.path, error=str(error))
                continue
            backoff.reset()
            log.info("certificate_signed", holder=self.holder.path)

    async def _keep_spread(self) -> None:
        while True:
            await asyncio.sleep(SPREAD_SECONDS)
            if self._pems is not None:
                await asyncio.to_thread(self._spread, self._pems)

    async def _signed(self, key: bytes) -> Pems:
        signed = await self._ask(certificate_request(key))
        return checked_member(self.holder, Pems(signed.chain, key, signed.roots), "of the state service")

    async def _look(self) -> TrustedAuthority:
        async with self.link.channel(self.state_address) as link:
            return await look_up(link)

    async def _ask(self, request: str) -> Pems:
        sent = IssueBrokerCertificateRequest(certificate_request=request, hosts=self.hosts)
        try:
            async with self.link.channel(self.state_address) as link:
                answer = await CertificateServiceStub(link).IssueBrokerCertificate(sent, timeout=CALL_SECONDS)
        except KeelmanError as error:
            self._problem = str(error)
            raise
        self._problem = ""
        return Pems(answer.certificate.encode(), b"", answer.authority.encode())

    def _keep(self, pems: Pems) -> None:
        """Stores it. Raises OSError where the agent's own copy cannot be written."""
        self.folder.write(pems)
        self._pems = pems
        self._spread(pems)

    def _spread(self, pems: Pems) -> None:
        """Writes it to every broker of the node."""
        for keystore in self._keystores():
            try:
                for name, text in _files(pems).items():
                    file = keystore.parent / name
                    if not file.exists() or file.read_bytes() != text.encode():
                        write_file(file, text.encode(), owner=self._owner_of(keystore))
            except OSError as error:
                log.error("certificate_not_written", file=str(keystore), error=str(error))

    def _owner_of(self, keystore: Path) -> tuple[int, int] | None:
        """Returns the owner of a workload's files: a driver's user is not that of brokers."""
        if self.owner is None:
            return None
        status = keystore.stat()
        return status.st_uid, status.st_gid

    def _keystores(self) -> list[Path]:
        return sorted(self.workloads.glob(f"*/{KEYSTORE}"))


def _hosts(pems: Pems) -> set[str]:
    return {normal_host(host) for host in certificate_facts(pems.chain).hosts}


def _files(pems: Pems) -> dict[str, str]:
    return {KEYSTORE: (pems.key + pems.chain).decode(), AUTHORITY: pems.roots.decode()}
