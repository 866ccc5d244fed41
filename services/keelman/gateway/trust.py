"""Decides which certificates the gateway presents to users, state services and agents, and which of these it trusts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from keelman.api.access.v1.certificate_service_pb2 import IssueGatewayCertificateRequest
from keelman.api.access.v1.certificate_service_pb2_grpc import CertificateServiceStub
from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.gateway.settings import Settings
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc.channels import Channel, channel, checked_peer, root_certificates
from keelman.rpc.credentials import Newest, PemFiles, Pems, Tls
from keelman.rpc.errors import translated_stream
from keelman.rpc.identity import STATE_NAME, Identity, IdentityKind, server_name
from keelman.rpc.membership import Member, MemberFolder, TrustedAuthority, look_up, renewing
from keelman.rpc.routing.renewing import RenewingChannel
from keelman.rpc.server import INSTALLATION
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.runtime.tls.certificates import certificate_request, made_key

log = get_logger()
STATE_SECONDS, CALL_SECONDS = 60.0, 10.0
UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Agents:
    """Calls agents: with TLS if there are certificates to trust them by, or with certificates of the installation's CA,
    which contain the node's name."""

    certificates: bytes | None = None
    trust: str = "loopback"
    newest: Newest | None = None
    by_name: bool = False

    def channel(self, address: str, node: str = "") -> Channel:
        """Opens a channel to a node's agent at this address. Raises FailedPrecondition for an unsecured address that is
        not loopback."""
        if self.newest is not None:
            pems = self.newest()
            name = server_name(Identity(IdentityKind.NODE, node)) if self.by_name else ""
            return channel(address, root_certificates=pems.roots, client=pems, server_name=name)
        try:
            checked_peer("", address, ca="", certificates=self.certificates, trust=self.trust)
        except InvalidArgument:
            raise FailedPrecondition(
                f"the agent at {address} is not called in plain text: set gateway.agent_ca, or gateway.trust = mesh",
                reason="NOT_TRUSTED",
                metadata={"agent": address},
            ) from None
        return channel(address, root_certificates=self.certificates)

    async def logs(
        self, node: str, address: str, request: agent.StreamLogsRequest, *, seconds: float | None = None
    ) -> AsyncIterator[agent.StreamLogsResponse]:
        """Yields a workload's log from the agent of a node at this address, for at most `seconds`."""
        async with self.channel(address, node) as to_agent:
            call: Any = AgentServiceStub(to_agent).StreamLogs(request, timeout=seconds)
            async for piece in translated_stream(call, peer=f"the agent at {address}"):
                yield piece


@dataclass(frozen=True, slots=True)
class GatewayTrust:
    """The gateway's certificates: `tls` is for its server, `agents` for calls of agents; `member` renews its own."""

    settings: Settings
    tls: Tls | Newest | None
    agents: Agents
    newest: Newest
    state_name: str = ""
    member: Member | None = None

    @classmethod
    async def of(cls, settings: Settings) -> GatewayTrust:
        """Reads the files that the settings name, or the member files that joining left in the home; or waits for a
        certificate from the state service of this host. Raises InvalidArgument, FailedPrecondition and Unavailable."""
        tls = Tls.of("gateway", settings.tls_certificate, settings.tls_key)
        roots = root_certificates("gateway.state_ca", settings.state_ca)
        if settings.trust != INSTALLATION:
            checked_peer(
                "gateway.state_address", settings.state_address, ca="state_ca", certificates=roots, trust=settings.trust
            )
            agents = Agents(root_certificates("gateway.agent_ca", settings.agent_ca), settings.trust)
            pems = Pems(roots=roots or b"")
            return cls(settings, tls, agents, lambda: pems)
        if tls is not None or roots is not None:
            return cls._of_files(settings, tls)
        holder = Identity(IdentityKind.GATEWAY, settings.own_name)
        if settings.state_address.startswith(UNIX):
            member = await _given(holder, settings)
        else:
            folder = MemberFolder(settings.folder.member(IdentityKind.GATEWAY))
            member = renewing(holder, folder, settings.state_address, settings.hosts)
        agents = Agents(newest=member.newest, by_name=True)
        return cls(settings, _for_anybody(member.newest), agents, member.newest, STATE_NAME, member)

    @classmethod
    def _of_files(cls, settings: Settings, tls: Tls | None) -> GatewayTrust:
        if tls is None or settings.state_ca is None:
            missing = "tls_certificate" if tls is None else "state_ca"
            legal = "a PEM file: with trust = installation tls_certificate, tls_key and state_ca go together"
            raise InvalidArgument.of(f"gateway.{missing}", "", legal)
        files = PemFiles("gateway", tls.certificate, tls.key, settings.state_ca)
        of_agents = PemFiles(
            "gateway", tls.certificate, tls.key, settings.agent_ca or settings.state_ca, roots_setting="agent_ca"
        )
        return cls(settings, tls, Agents(newest=of_agents.newest), files.newest)

    def to_state(self, *, peer: str = "", translate: bool = True, apart: bool = False) -> Channel:
        """Opens a channel to the state services, with the newest certificate on each connection; `apart` as in
        `channel`."""

        def make(pems: Pems) -> Channel:
            return channel(
                self.settings.state_address, root_certificates=pems.roots or None, client=pems,
                server_name=self.state_name, peer=peer, translate=translate, apart=apart, probed=True,
            )  # fmt: skip

        return RenewingChannel(make, self.newest) if self.newest().chain else make(self.newest())


async def _given(holder: Identity, settings: Settings) -> Member:
    """Returns a member whose certificate a state service of this host signs, for a key that is only in memory."""

    async def ask(request: str) -> Pems:
        sent = IssueGatewayCertificateRequest(name=holder.name, certificate_request=request, hosts=list(settings.hosts))
        async with channel(settings.state_address, peer="the state service") as link:
            answer = await CertificateServiceStub(link).IssueGatewayCertificate(sent, timeout=CALL_SECONDS)
        return Pems(answer.certificate.encode(), b"", answer.authority.encode())

    async def look() -> TrustedAuthority:
        async with channel(settings.state_address, peer="the state service") as link:
            return await look_up(link)

    key, backoff = made_key(), Backoff(most=2.0)
    late = Unavailable(f"the state service at {settings.state_address} gave no certificate in {STATE_SECONDS:g} s")
    async with deadline(STATE_SECONDS, late):
        while True:
            try:
                signed = await ask(certificate_request(key))
                return Member(holder, Pems(signed.chain, key, signed.roots), ask, lambda _: None, look)
            except Unavailable as error:
                if backoff.is_new(error.message):
                    log.warning("certificate_waits", state=settings.state_address, error=error.message)
            await asyncio.sleep(backoff.next())


def _for_anybody(newest: Newest) -> Newest:
    """Removes the roots, for a server that requires no client certificates: users have tokens."""
    return partial(_without_roots, newest)


def _without_roots(newest: Newest) -> Pems:
    return replace(newest(), roots=b"")
