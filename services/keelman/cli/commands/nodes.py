"""`keelman cordon`, `uncordon` and `drain`: what a node takes, and what leaves it."""

from __future__ import annotations

from typing import Annotated

import typer

from keelman.cli import kinds
from keelman.cli.client.changes import leaving, wait_for_drain
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.options import GatewayAddress, HomeFolder, Wait, WaitSeconds, command_group, seconds_of

app = command_group()
Node = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")]


@app.command()
def cordon(node: Node, *, gateway: GatewayAddress = None, home: HomeFolder = None) -> int:
    """Have nothing new placed on a node; what is there stays."""

    async def body(client: Gateway) -> None:
        await client.act("cordon", kinds.NODES, _plain(node))
        print(f"node/{_plain(node)} cordoned: nothing new is placed on it")

    return Target(gateway, home).run(body)


@app.command()
def uncordon(node: Node, *, gateway: GatewayAddress = None, home: HomeFolder = None) -> int:
    """Have new things placed on a node again; ends a drain."""

    async def body(client: Gateway) -> None:
        await client.act("uncordon", kinds.NODES, _plain(node))
        print(f"node/{_plain(node)} uncordoned: new work may be placed on it")

    return Target(gateway, home).run(body)


@app.command()
def drain(
    node: Node,
    *,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Cordon a node and have workers that may be elsewhere leave it; names those that may not."""
    seconds, name = seconds_of(wait, timeout), _plain(node)

    async def body(client: Gateway) -> None:
        await client.act("drain", kinds.NODES, name)
        found = await (leaving(client, name) if seconds is None else wait_for_drain(client, name, seconds=seconds))
        print(f"node/{name} " + ("asked to drain" if found.movable else "drained: nothing movable is on it"))
        for text in found.lines(name):
            print(f"  {text}")

    return Target(gateway, home).run(body)


def _plain(node: str) -> str:
    """The name, also where it was typed as it is printed: node/n1."""
    return node.removeprefix(f"{kinds.NODES.singular}/")
