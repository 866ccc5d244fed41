"""The services for joining hosts, and for requests taken once: decode, call, encode."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.access.v1 import (
    certificate_service_pb2,
    certificate_service_pb2_grpc,
    join_service_pb2,
    join_service_pb2_grpc,
    join_token_pb2,
    join_token_service_pb2,
    join_token_service_pb2_grpc,
    signature_service_pb2,
    signature_service_pb2_grpc,
)
from keelman.model.access.join_token import JoinRole
from keelman.model.errors import InvalidArgument, PermissionDenied
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.pages import page
from keelman.rpc.server import Context, RpcService, is_local, peer_host
from keelman.rpc.times import from_duration, to_timestamp
from keelman.state.database.times import moment
from keelman.state.resources.once import once
from keelman.state.trust.callers import caller_of
from keelman.state.trust.members import DEFAULT_TTL, Members, refused_members
from keelman.state.trust.rows import JoinTokenRow
from keelman.state.trust.signatures import UsedSignatures

ROLES = {
    join_token_pb2.JOIN_ROLE_UNSPECIFIED: JoinRole.NODE,
    join_token_pb2.JOIN_ROLE_NODE: JoinRole.NODE,
    join_token_pb2.JOIN_ROLE_GATEWAY: JoinRole.GATEWAY,
}


def token_message(row: JoinTokenRow) -> join_token_pb2.JoinToken:
    """Returns the message of a token, without its secret."""
    return join_token_pb2.JoinToken(
        name=row.name,
        role=next(wire for wire, role in ROLES.items() if wire and role == row.role),
        member=row.member,
        create_time=to_timestamp(moment(row.create_time)),
        expire_time=to_timestamp(moment(row.expire_time)),
        use_time=to_timestamp(moment(row.use_time)) if row.use_time else None,
        used_by=row.used_by,
    )


@dataclass(frozen=True, slots=True)
class _Api:
    found: Members | None

    @property
    def members(self) -> Members:
        """Raises FailedPrecondition if there is no CA."""
        if self.found is None:
            raise refused_members()
        return self.found


class JoinTokenApi(_Api, join_token_service_pb2_grpc.JoinTokenServiceServicer):
    """JoinTokenService."""

    async def ListJoinTokens(
        self, request: join_token_service_pb2.ListJoinTokensRequest, context: Context
    ) -> join_token_service_pb2.ListJoinTokensResponse:
        """See the proto."""
        rows = await self.members.tokens()
        part, token = page(rows, lambda row: row.name, request.page_size, request.page_token)
        return join_token_service_pb2.ListJoinTokensResponse(
            join_tokens=[token_message(row) for row in part], next_page_token=token
        )

    async def CreateJoinToken(
        self, request: join_token_service_pb2.CreateJoinTokenRequest, context: Context
    ) -> join_token_service_pb2.CreateJoinTokenResponse:
        """See the proto."""
        if request.role not in ROLES:
            raise InvalidArgument.of("role", request.role, "JOIN_ROLE_NODE or JOIN_ROLE_GATEWAY")
        seconds = from_duration(request.ttl) if request.HasField("ttl") else DEFAULT_TTL
        row, token = await self.members.create_token(ROLES[request.role], request.member, seconds, request.request_id)
        return join_token_service_pb2.CreateJoinTokenResponse(join_token=token_message(row), token=token)

    async def DeleteJoinToken(
        self, request: join_token_service_pb2.DeleteJoinTokenRequest, context: Context
    ) -> join_token_service_pb2.DeleteJoinTokenResponse:
        """See the proto."""
        answer = join_token_service_pb2.DeleteJoinTokenResponse

        async def make() -> join_token_service_pb2.DeleteJoinTokenResponse:
            return answer(join_token=token_message(await self.members.delete_token(tx, request.name)))

        async with self.members.store.write() as tx:
            return await once(tx, request.request_id, "DeleteJoinToken", answer(), make)


@dataclass(frozen=True, slots=True)
class JoinApi(_Api, join_service_pb2_grpc.JoinServiceServicer):
    """JoinService. `state_address` is the address of the state services for members that joined."""

    state_address: str

    async def Join(self, request: join_service_pb2.JoinRequest, context: Context) -> join_service_pb2.JoinResponse:
        """See the proto."""
        if request.role not in ROLES:
            raise InvalidArgument.of("role", request.role, "JOIN_ROLE_NODE or JOIN_ROLE_GATEWAY")
        holder = Identity(IdentityKind(ROLES[request.role].value), request.name)
        certificate = await self.members.join(request.token, holder, request.certificate_request, list(request.hosts))
        return join_service_pb2.JoinResponse(
            certificate=certificate, authority=self.members.present.value.pem, state_address=self.state_address
        )


class CertificateApi(_Api, certificate_service_pb2_grpc.CertificateServiceServicer):
    """CertificateService."""

    async def RenewCertificate(
        self, request: certificate_service_pb2.RenewCertificateRequest, context: Context
    ) -> certificate_service_pb2.RenewCertificateResponse:
        """See the proto."""
        caller = caller_of(context)
        if caller is None:
            raise PermissionDenied("a certificate is renewed on the connection that it was shown on", reason="NOT_HERE")
        certificate = await self.members.renew(
            caller.identity, caller.facts.key_digest, request.certificate_request, list(request.hosts),
            asked_from=peer_host(context),
        )  # fmt: skip
        return certificate_service_pb2.RenewCertificateResponse(
            certificate=certificate, authority=self.members.present.value.pem
        )

    async def LookUpAuthority(
        self, request: certificate_service_pb2.LookUpAuthorityRequest, context: Context
    ) -> certificate_service_pb2.LookUpAuthorityResponse:
        """See the proto."""
        present = self.members.present.value
        return certificate_service_pb2.LookUpAuthorityResponse(authority=present.pem, issuer=present.signing.digest)

    async def IssueGatewayCertificate(
        self, request: certificate_service_pb2.IssueGatewayCertificateRequest, context: Context
    ) -> certificate_service_pb2.IssueGatewayCertificateResponse:
        """See the proto."""
        if not is_local(context):
            raise PermissionDenied("a gateway of another host joins with a token", reason="NOT_HERE")
        holder = Identity(IdentityKind.GATEWAY, request.name)
        certificate = await self.members.issue(holder, request.certificate_request, list(request.hosts))
        return certificate_service_pb2.IssueGatewayCertificateResponse(
            certificate=certificate, authority=self.members.present.value.pem
        )

    async def IssueBrokerCertificate(
        self, request: certificate_service_pb2.IssueBrokerCertificateRequest, context: Context
    ) -> certificate_service_pb2.IssueBrokerCertificateResponse:
        """See the proto."""
        caller = caller_of(context)
        if caller is None or caller.identity.kind is not IdentityKind.NODE:
            raise PermissionDenied("only a node's agent gets its brokers' certificate, by its own", reason="NOT_HERE")
        certificate = self.members.of_brokers(
            caller.identity.name, caller.facts.key_digest, request.certificate_request, list(request.hosts),
            asked_from=peer_host(context),
        )  # fmt: skip
        return certificate_service_pb2.IssueBrokerCertificateResponse(
            certificate=await certificate, authority=self.members.present.value.pem
        )


@dataclass(frozen=True, slots=True)
class SignatureApi(signature_service_pb2_grpc.SignatureServiceServicer):
    """SignatureService."""

    used: UsedSignatures

    async def UseSignature(
        self, request: signature_service_pb2.UseSignatureRequest, context: Context
    ) -> signature_service_pb2.UseSignatureResponse:
        """See the proto."""
        await self.used.use(request.signature, request.attempt)
        return signature_service_pb2.UseSignatureResponse()


def services(members: Members | None, state_address: str, used: UsedSignatures) -> list[RpcService]:
    """Returns the gRPC services for joining hosts, whose calls fail if there is no CA, and that of signatures."""
    return [
        RpcService.of(api)
        for api in (JoinTokenApi(members), JoinApi(members, state_address), CertificateApi(members), SignatureApi(used))
    ]
