"""Has requests that write taken once: the state service remembers their signatures, for all gateways."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.access.v1.signature_service_pb2 import UseSignatureRequest
from keelman.gateway.access.signatures import Sent, SignedCaller
from keelman.gateway.calls import Calls

TRY_HEADERS = ("amz-sdk-invocation-id", "amz-sdk-request")
"""By these SDKs tell their calls, and the tries of one call, apart; not all sign them."""
MAX_CHARACTERS = 500
"""Of each of them."""


@dataclass(frozen=True, slots=True)
class Replays:
    """Refuses what was sent before, to whichever gateway."""

    state: Calls

    async def check(self, caller: SignedCaller, sent: Sent) -> None:
        """Raises PermissionDenied for a write whose signature was used; Unavailable while the state service does not
        answer, which could not do the write either. What only reads may come again."""
        if sent.method == "GET":
            return
        attempt = "/".join(sent.headers.get(name, "")[:MAX_CHARACTERS] for name in TRY_HEADERS)
        await self.state.ask(UseSignatureRequest(signature=caller.signature, attempt=attempt))
