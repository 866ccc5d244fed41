"""The service of the installation's CA: decode, call, encode."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.access.v1 import authority_pb2, authority_service_pb2, authority_service_pb2_grpc
from keelman.model.errors import FailedPrecondition
from keelman.rpc.server import Context
from keelman.rpc.times import to_timestamp
from keelman.state.database.times import micros, moment
from keelman.state.resources.once import once
from keelman.state.rotation.steps import Follower, followers_of, rotate
from keelman.state.trust.authorities import Authorities, AuthorityPhase
from keelman.state.trust.members import Members, refused_members

PHASES = {
    AuthorityPhase.STABLE: authority_pb2.AUTHORITY_PHASE_STABLE,
    AuthorityPhase.INTRODUCED: authority_pb2.AUTHORITY_PHASE_INTRODUCED,
    AuthorityPhase.REPLACED: authority_pb2.AUTHORITY_PHASE_REPLACED,
}


def authority_message(authorities: Authorities, followers: list[Follower]) -> authority_pb2.Authority:
    """Returns the message of the CA."""
    return authority_pb2.Authority(
        phase=PHASES[authorities.phase],
        digest=authorities.signing.digest,
        certificates=authorities.pem,
        end_time=to_timestamp(authorities.signing.certificate.not_valid_after_utc),
        followers=[
            authority_pb2.AuthorityFollower(
                name=follower.name,
                ready=follower.is_ready,
                issue_time=to_timestamp(moment(follower.issue_time)) if follower.issue_time else None,
            )
            for follower in followers
        ],
    )


@dataclass(frozen=True, slots=True)
class AuthorityApi(authority_service_pb2_grpc.AuthorityServiceServicer):
    """AuthorityService. `found` is None if there is no CA."""

    found: Members | None

    @property
    def members(self) -> Members:
        """Raises FailedPrecondition if there is no CA."""
        if self.found is None:
            raise refused_members()
        return self.found

    async def GetAuthority(
        self, request: authority_service_pb2.GetAuthorityRequest, context: Context
    ) -> authority_service_pb2.GetAuthorityResponse:
        """See the proto."""
        members = self.members
        await members.follow()
        store, authorities = members.store, members.present.value
        await store.catch_up()
        async with store.database.read() as session:
            followers = await followers_of(session, store.snapshot, authorities, micros(store.database.clock()))
        return authority_service_pb2.GetAuthorityResponse(authority=authority_message(authorities, followers))

    async def RotateAuthority(
        self, request: authority_service_pb2.RotateAuthorityRequest, context: Context
    ) -> authority_service_pb2.RotateAuthorityResponse:
        """See the proto."""
        members, answer = self.members, authority_service_pb2.RotateAuthorityResponse
        await members.follow()

        async def make() -> authority_service_pb2.RotateAuthorityResponse:
            present = PHASES[members.present.value.phase]
            if request.phase not in (authority_pb2.AUTHORITY_PHASE_UNSPECIFIED, present):
                raise FailedPrecondition(
                    "phase: the CA is in another phase by now: look at it again with `keelman authority show`",
                    reason="PHASE_CHANGED",
                )
            after = await rotate(tx, force=request.force)
            followers = await followers_of(tx.session, tx.snapshot, after, micros(tx.now))
            return answer(authority=authority_message(after, followers))

        async with members.store.write() as tx:
            result = await once(tx, request.request_id, "RotateAuthority", answer(), make)
        await members.follow()
        return result
