"""`keelman cordon`, `uncordon` and `drain`: stop placing workloads on a node, and move them away."""

from __future__ import annotations

from typing import Annotated

import typer

from keelman.cli import kinds
from keelman.cli.client.changes import leaving, wait_for_drain
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.many import Many, each
from keelman.cli.options import WaitOptions, command_group

app = command_group()
Node = Annotated[str, typer.Argument(metavar="[NODE]", help="Name of the node; or -l, --all.")]


@app.command()
def cordon(node: Node = "", *, many: Many, target: GatewayTarget) -> int:
    """Have nothing new placed on a node; its present workloads stay."""
    return _mark(target, "cordon", node, many, "cordoned: nothing new is placed on it")


@app.command()
def uncordon(node: Node = "", *, many: Many, target: GatewayTarget) -> int:
    """Have new things placed on a node again; ends a drain."""
    return _mark(target, "uncordon", node, many, "uncordoned: new work may be placed on it")


@app.command()
def drain(node: Node = "", *, many: Many, waiting: WaitOptions, target: GatewayTarget) -> int:
    """Cordon a node and have workers that may be elsewhere leave it; names those that may not. Of many one after the
    other."""
    seconds = waiting.seconds
    return each(target, "drain", kinds.NODES, _plain(node), many, do=lambda name: _drain(target, name, seconds))


def _drain(target: GatewayTarget, name: str, seconds: float | None) -> int:
    async def body(client: Gateway) -> None:
        await client.act("drain", kinds.NODES, name)
        left_node = await (leaving(client, name) if seconds is None else wait_for_drain(client, name, seconds=seconds))
        print(f"node/{name} " + ("is draining" if left_node.movable else "drained: no movable workload is left on it"))
        for text in left_node.lines(name):
            print(f"  {text}")

    return target.run(body)


def _mark(target: GatewayTarget, verb: str, node: str, many: Many, done: str) -> int:
    def do(name: str) -> int:
        async def body(client: Gateway) -> None:
            await client.act(verb, kinds.NODES, name)
            print(f"node/{name} {done}")

        return target.run(body)

    return each(target, verb, kinds.NODES, _plain(node), many, do=do)


def _plain(node: str) -> str:
    """The name, also where it was typed as it is printed: node/n1."""
    return node.removeprefix(f"{kinds.NODES.singular}/")
