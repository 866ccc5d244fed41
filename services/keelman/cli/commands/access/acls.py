"""`keelman print acls`: the access rules of a worker cluster, as commands of Kafka's own tool."""

from __future__ import annotations

from typing import Annotated

import typer

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.kinds import kind_of
from keelman.cli.options import PlainName, command_group
from keelman.model.errors import InvalidArgument
from keelman.workers.access_rules import rules_of

app, printing = command_group(), command_group()
app.add_typer(printing, name="print", help="Print the access rules of a worker cluster.")
NO_ADDRESS = "HOST:PORT"


@printing.callback()
def group() -> None:
    """Print commands for other tools."""


@printing.command()
def acls(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="worker-cluster.")],
    name: PlainName,
    *,
    principal: Annotated[
        str, typer.Option("--principal", metavar="TYPE:NAME", help="Whom the rules are for [User:NAME].")
    ] = "",
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="That connectors copy from or to, * for any end; may be repeated."
        ),
    ] = None,
    reports: Annotated[
        bool, typer.Option("--reports", help="Its brokers are those of state.events_broker_cluster: reports go there.")
    ] = False,
    target: GatewayTarget,
) -> int:
    """Print the rules that a worker cluster needs on brokers that deny all else, as commands of kafka-acls.sh."""
    if kind_of(kind, "get") is not kinds.WORKER_CLUSTERS:
        raise InvalidArgument.of("KIND", kind, "worker-cluster")
    if principal and ":" not in principal:
        raise InvalidArgument.of("--principal", principal, "TYPE:NAME, e.g. User:demo")

    async def body(client: Gateway) -> None:
        cluster = await client.get(kinds.WORKER_CLUSTERS, name)
        brokers = await client.get(kinds.BROKER_CLUSTERS, cluster.spec.broker_cluster)
        address = brokers.status.bootstrap_servers or NO_ADDRESS
        rules = rules_of(name, cluster.status.group_id, cluster.spec.properties, topics or (), reports=reports)
        for rule in rules:
            print(rule.command(address, principal or f"User:{name}"))

    return target.run(body)
