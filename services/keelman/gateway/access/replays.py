"""Accepts each writing request only once: the state service remembers the signatures, for all gateways."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.access.v1.signature_service_pb2 import UseSignatureRequest
from keelman.gateway.access.signatures import Sent, SignedCaller
from keelman.gateway.calls import Calls

TRY_HEADERS = ("amz-sdk-invocation-id", "amz-sdk-request")
"""Headers by which SDKs distinguish their calls, and the tries of one call; not all SDKs sign them."""
MAX_CHARACTERS = 500
"""The limit of each of these headers."""


@dataclass(frozen=True, slots=True)
class ReplayGuard:
    """Refuses requests that were sent before, to any gateway."""

    state: Calls

    async def check(self, caller: SignedCaller, sent: Sent) -> None:
        """Raises PermissionDenied for a write with a used signature; Unavailable while the state service does not
        answer, which could not do the write either. A request that only reads may be repeated."""
        if sent.method == "GET":
            return
        attempt = "/".join(sent.headers.get(name, "")[:MAX_CHARACTERS] for name in TRY_HEADERS)
        await self.state.ask(UseSignatureRequest(signature=caller.signature, attempt=attempt))
