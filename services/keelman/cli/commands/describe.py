"""`keelman describe` and `logs`: all about one thing."""

from __future__ import annotations

from typing import Annotated

import typer

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.describe import print_description
from keelman.cli.kinds import kind_of
from keelman.cli.logs import print_logs
from keelman.cli.options import Cluster, GatewayAddress, HomeFolder, Name, command_group, kind_word

app = command_group()


@app.command()
def describe(
    kind: Annotated[str, kind_word("describe")],
    name: Name,
    *,
    cluster: Cluster = "",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show everything about one thing, and what belongs to it."""
    found = kind_of(kind, "describe", cluster=cluster)

    async def body(client: Gateway) -> None:
        await print_description(client, found, await client.get(found, name, cluster=cluster))

    return Target(gateway, home).run(body)


@app.command()
def logs(
    kind: Annotated[str, kind_word("logs")],
    name: Name,
    *,
    cluster: Cluster = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with new lines as they come.")] = False,
    tail: Annotated[
        int, typer.Option("--tail", metavar="LINES", help="Begin so many lines from the end.", min=1)
    ] = 100,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show the logs of the processes behind one thing."""
    found = kind_of(kind, "logs", cluster=cluster)

    async def body(client: Gateway) -> None:
        await print_logs(client, found, await client.get(found, name, cluster=cluster), follow=follow, tail=tail)

    return Target(gateway, home).run(body)
