"""`keelman up`, `down` and `status`: the system of this machine."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from keelman.cli import starting
from keelman.cli.client.target import home_of
from keelman.cli.down import down as stop_system
from keelman.cli.options import Form, HomeFolder, Settings, command_group
from keelman.cli.status import status as show_status
from keelman.cli.waiting import progress_line

app = command_group()


@app.command()
def up(
    *,
    home: HomeFolder = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="In the background; returns when ready.")] = False,
    port: Annotated[int | None, typer.Option("--port", help="gRPC port of the gateway [7400].")] = None,
    http_port: Annotated[int | None, typer.Option("--http-port", help="HTTP port of the gateway [7480].")] = None,
    settings: Settings = None,
    free_ports: Annotated[bool, typer.Option("--free-ports", help="Take free ports for everything.")] = False,
    broker: Annotated[
        bool, typer.Option("--broker/--no-broker", help="Have a managed broker cluster `default`.")
    ] = True,
    starter: Annotated[int | None, typer.Option("--starter", hidden=True)] = None,
    tied: Annotated[bool, typer.Option("--tied", hidden=True)] = False,
) -> int:
    """Start the whole system on this machine: state, gateway, agent and a Kafka broker. Ctrl-C stops it all."""
    options = starting.options(
        home, settings or [], port=port, http_port=http_port, free_ports=free_ports, broker=broker
    )
    if starter is not None:
        return starting.as_started(options, starter, tied=tied)
    return starting.detached(options) if detach else starting.foreground(options)


@app.command()
def down(home: HomeFolder = None) -> int:
    """Stop the system of this home, or what a killed one left running."""
    with progress_line() as line:
        told = asyncio.run(stop_system(home_of(home), line.say))
    print(told)
    return 0


@app.command()
def status(home: HomeFolder = None, output: Form = "table") -> int:
    """Show what runs on this machine: services, workloads, clusters. Exit code 1 when not all of it is well."""
    return asyncio.run(show_status(home_of(home), output))
