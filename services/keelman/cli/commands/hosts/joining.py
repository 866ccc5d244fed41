"""`keelman node token create|list|delete` and `keelman node join`: how a host becomes a node, or a gateway's host."""

from __future__ import annotations

import asyncio
import socket
from typing import Annotated

import typer

from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY, JOIN_ROLE_NODE
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget, home_of
from keelman.cli.client.tokens import create_token, delete_token, read_tokens
from keelman.cli.machine.joined import Joining, join_host
from keelman.cli.options import HomeFolder, command_group, seconds_of
from keelman.model.access.join_token import JoinRole
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name, legal_name
from keelman.rpc.times import to_duration

app, node, token = command_group(), command_group(), command_group()
app.add_typer(node, name="node", help="Let hosts join as nodes, and join as one.")
node.add_typer(token, name="token", help="Tokens by which hosts join, each once.")
Member = Annotated[str, typer.Option("--node", metavar="NAME", help="The only node that it lets join.")]
OfGateway = Annotated[bool, typer.Option("--as-gateway", help="It lets the host of a gateway join, and no node.")]


@token.command()
def create(
    *,
    ttl: Annotated[
        float | None,
        typer.Option("--ttl", metavar="TIME", help="How long it can be used [1h]: 90s, 30m, 1h.", parser=seconds_of),
    ] = None,
    member: Member = "",
    as_gateway: OfGateway = False,
    target: GatewayTarget,
) -> int:
    """Make a token by which one host joins, and print it: it is shown only now."""

    async def body(client: Gateway) -> None:
        role = JOIN_ROLE_GATEWAY if as_gateway else JOIN_ROLE_NODE
        seconds = None if ttl is None else to_duration(ttl)
        print(await create_token(client, ttl=seconds, role=role, member=_plain(member)))

    return target.run(body)


@token.command(name="list")
def list_tokens(*, target: GatewayTarget) -> int:
    """Show the tokens that can be used, and those that were."""

    async def body(client: Gateway) -> None:
        print(await read_tokens(client))

    return target.run(body)


@token.command()
def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, the part behind the first dot.")],
    *,
    target: GatewayTarget,
) -> int:
    """Delete a token: no host can join with it any more."""

    async def body(client: Gateway) -> None:
        await delete_token(client, name)
        print(f"join token {name} deleted")

    return target.run(body)


@node.command()
def join(
    given: Annotated[
        str, typer.Argument(metavar="TOKEN@HOST:PORT", help="The token, and a gateway; - reads it from standard input.")
    ],
    *,
    name: Annotated[
        str, typer.Option("--node", metavar="NAME", help="Name of the node, or gateway [the host's].")
    ] = "",
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="This host's, for others [the one towards the gateway].")
    ] = "",
    workload_trust: Annotated[
        str,
        typer.Option(
            "--workload-trust",
            metavar="mesh|https",
            help="With mesh, brokers and workers are reached from other hosts, in plain text: a closed network, a "
            "tunnel or a sidecar secures that. With https only workers that authenticate callers. Without it they "
            "stay on loopback.",
        ),
    ] = "",
    as_gateway: OfGateway = False,
    home: HomeFolder = None,
) -> int:
    """Join this host to an installation: makes a key and has its certificate signed."""
    if workload_trust not in ("", "mesh", "https"):
        raise InvalidArgument.of("--workload-trust", workload_trust, "mesh or https, or left out")
    text = typer.get_text_stream("stdin").read() if given == "-" else given
    own = checked_name("--node", _plain(name)) if name else legal_name(socket.gethostname())
    role = JoinRole.GATEWAY if as_gateway else JoinRole.NODE
    joining = Joining(role, own, address, workload_trust, home_of(home), has_home=home is not None)
    for line in asyncio.run(join_host(text, joining)):
        print(line)
    return 0


def _plain(name: str) -> str:
    """The name, also where it was typed as it is printed: node/n1."""
    return name.removeprefix(f"{kinds.NODES.singular}/")
