"""`keelman authority show|export|rotate`: the CA of the installation."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer

from keelman.api.access.v1.authority_pb2 import (
    AUTHORITY_PHASE_INTRODUCED,
    AUTHORITY_PHASE_REPLACED,
    AUTHORITY_PHASE_STABLE,
    Authority,
)
from keelman.api.access.v1.authority_service_pb2 import GetAuthorityRequest, RotateAuthorityRequest
from keelman.cli.client.gateway import CALL_SECONDS, Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.options import command_group
from keelman.cli.output.widths import aligned
from keelman.rpc.generated import stub_of
from keelman.rpc.times import from_timestamp
from keelman.runtime.tls.certificates import shown_time

app, authority = command_group(), command_group()
app.add_typer(authority, name="authority", help="Show and replace the CA of the installation.")
NEXT = {
    AUTHORITY_PHASE_STABLE: "one CA signs and is trusted; `keelman authority rotate` makes another and has it trusted",
    AUTHORITY_PHASE_INTRODUCED: "the next CA is trusted, too, by those that are ready; give clients the output of "
    "`keelman authority export`, then `keelman authority rotate` has the next CA sign",
    AUTHORITY_PHASE_REPLACED: "the next CA signs for those that are ready; the former one is trusted until "
    "`keelman authority rotate`",
}
"""What a phase means, and what comes next."""


@authority.command()
def show(*, target: GatewayTarget) -> int:
    """Show the CA, and who has followed its replacement."""

    async def body(client: Gateway) -> None:
        print(text_of((await _stub(client).GetAuthority(GetAuthorityRequest(), timeout=CALL_SECONDS)).authority))

    return target.run(body)


@authority.command()
def export(*, target: GatewayTarget) -> int:
    """Print the certificates that clients trust the gateway by."""

    async def body(client: Gateway) -> None:
        answer = await _stub(client).GetAuthority(GetAuthorityRequest(), timeout=CALL_SECONDS)
        print(answer.authority.certificates, end="")

    return target.run(body)


@authority.command()
def rotate(
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Although members have not followed: they may have to join again.")
    ] = False,
    target: GatewayTarget,
) -> int:
    """Take the next of three steps that replace the CA: trust another one, have it sign, drop the former one."""

    async def body(client: Gateway) -> None:
        present = (await _stub(client).GetAuthority(GetAuthorityRequest(), timeout=CALL_SECONDS)).authority
        request = RotateAuthorityRequest(force=force, phase=present.phase, request_id=uuid.uuid4().hex)
        print(text_of((await _stub(client).RotateAuthority(request, timeout=CALL_SECONDS)).authority))

    return target.run(body)


def text_of(shown: Authority) -> str:
    """Returns the CA and its followers for people."""
    lines = [f"CA {shown.digest[:16]}, good until {shown_time(from_timestamp(shown.end_time))}: {NEXT[shown.phase]}"]
    if shown.followers:
        rows = [("NAME", "READY", "CERTIFIED AT")]
        for follower in shown.followers:
            at = shown_time(from_timestamp(follower.issue_time)) if follower.HasField("issue_time") else "-"
            rows.append((follower.name, "yes" if follower.ready else "no", at))
        lines.append(aligned(rows))
    return "\n".join(lines)


def _stub(client: Gateway) -> Any:
    return stub_of(client.link, "access", "authority")
