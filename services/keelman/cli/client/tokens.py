"""Creates, lists and deletes join tokens at the gateway."""

from __future__ import annotations

import uuid
from typing import Any

from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY, JoinToken
from keelman.api.access.v1.join_token_service_pb2 import (
    CreateJoinTokenRequest,
    DeleteJoinTokenRequest,
    ListJoinTokensRequest,
)
from keelman.cli.client.gateway import CALL_SECONDS, Gateway
from keelman.cli.output.widths import aligned
from keelman.rpc.generated import stub_of
from keelman.rpc.times import from_timestamp
from keelman.runtime.tls.certificates import shown_time

HEAD = ("NAME", "FOR", "ENDS", "USED BY", "USED AT")


async def create_token(client: Gateway, **fields: Any) -> str:
    """Creates and returns a token, which is shown nowhere else."""
    request = CreateJoinTokenRequest(**fields, request_id=uuid.uuid4().hex)
    answer = await _stub(client).CreateJoinToken(request, timeout=CALL_SECONDS)
    return str(answer.token)


async def delete_token(client: Gateway, name: str) -> None:
    """Deletes a token. Raises NotFound."""
    await _stub(client).DeleteJoinToken(DeleteJoinTokenRequest(name=name), timeout=CALL_SECONDS)


async def read_tokens(client: Gateway) -> str:
    """Returns all tokens as a table."""
    rows, request = [HEAD], ListJoinTokensRequest()
    while True:
        answer = await _stub(client).ListJoinTokens(request, timeout=CALL_SECONDS)
        rows += [_row(token) for token in answer.join_tokens]
        if not answer.next_page_token:
            break
        request = ListJoinTokensRequest(page_token=answer.next_page_token)
    return aligned(rows)


def _row(token: JoinToken) -> tuple[str, str, str, str, str]:
    kind = "gateway" if token.role == JOIN_ROLE_GATEWAY else "node"
    used = shown_time(from_timestamp(token.use_time)) if token.HasField("use_time") else "-"
    ends = shown_time(from_timestamp(token.expire_time))
    return token.name, f"{kind} {token.member or '(any)'}", ends, token.used_by or "-", used


def _stub(client: Gateway) -> Any:
    return stub_of(client.link, "access", "join_token")
