"""The commands and their options. Each body imports what it needs: the list of commands must be quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keelman.cli.exits import MEANINGS
from keelman.cli.options import (
    Cluster,
    ConfigFile,
    ConfigValues,
    Form,
    GatewayAddress,
    HomeFolder,
    KindWord,
    MaybeName,
    Name,
    Settings,
    Wait,
    WaitSeconds,
    kind_word,
    seconds_of,
)
from keelman.cli.words import Words

app = typer.Typer(
    name="keelman",
    cls=Words,
    help="Launches and looks after worker clusters that copy data in and out of Kafka, on Spark.",
    epilog="Exit codes: " + "; ".join(f"{code} {text}" for code, text in MEANINGS) + ". "
    "`keelman <service> run|config` runs one service: gateway, state, agent, broker, spark, worker; "
    "`keelman worker` alone needs but a broker.",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Answers --version."""
    if version:
        from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

        try:
            print(f"keelman {distribution('keelman').version}")
        except PackageNotFoundError:
            print("keelman, run from its sources without an installation")
        raise typer.Exit(0)


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
    from keelman.cli import starting  # noqa: PLC0415

    options = starting.options(
        home, settings or [], port=port, http_port=http_port, free_ports=free_ports, broker=broker
    )
    if starter is not None:
        return starting.as_started(options, starter, tied=tied)
    return starting.detached(options) if detach else starting.foreground(options)


@app.command()
def down(home: HomeFolder = None) -> int:
    """Stop the system of this home, or what a killed one left running."""
    import asyncio  # noqa: PLC0415

    from keelman.cli.down import down as stop_system  # noqa: PLC0415
    from keelman.cli.target import home_of  # noqa: PLC0415
    from keelman.cli.waiting import progress_line  # noqa: PLC0415

    with progress_line() as line:
        told = asyncio.run(stop_system(home_of(home), line.say))
    print(told)
    return 0


@app.command()
def status(home: HomeFolder = None, output: Form = "table") -> int:
    """Show what runs on this machine: services, workloads, clusters. Exit code 1 when not all of it is well."""
    import asyncio  # noqa: PLC0415

    from keelman.cli.status import status as show  # noqa: PLC0415
    from keelman.cli.target import home_of  # noqa: PLC0415

    return asyncio.run(show(home_of(home), output))


@app.command()
def get(
    kind: KindWord,
    name: MaybeName = None,
    *,
    output: Form = "table",
    cluster: Cluster = "",
    ended: Annotated[bool, typer.Option("--ended", help="Also copy runs that have ended.")] = False,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show one thing or all of a kind."""
    from keelman.cli import commands  # noqa: PLC0415

    return commands.get(commands.Target(gateway, home), kind, name, output, cluster=cluster, ended=ended)


@app.command()
def describe(
    kind: KindWord, name: Name, *, cluster: Cluster = "", gateway: GatewayAddress = None, home: HomeFolder = None
) -> int:
    """Show everything about one thing, and what belongs to it."""
    from keelman.cli import commands  # noqa: PLC0415

    return commands.describe(commands.Target(gateway, home), kind, name, cluster=cluster)


@app.command()
def create(
    kind: Annotated[str, kind_word("create")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    *,
    nodes: Annotated[str, typer.Option("--nodes", metavar="A,B", help="Nodes for its brokers or workers.")] = "",
    managed: Annotated[bool, typer.Option("--managed", help="Brokers on our nodes.")] = False,
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Brokers that exist already.")] = "",
    broker_cluster: Annotated[
        str, typer.Option("--broker-cluster", help="Broker cluster of a worker cluster.")
    ] = "default",
    count: Annotated[int | None, typer.Option("--count", help="So many workers, anywhere [1].", min=1)] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="K=V", help="Broker, client or worker property.")
    ] = None,
    cluster: Cluster = "",
    config_file: ConfigFile = None,
    values: ConfigValues = None,
    start: Annotated[bool, typer.Option("--start", help="Also start the new worker cluster.")] = False,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    output: Form = "name",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Create a broker cluster, a worker cluster (stopped, unless --start) or a connector."""
    from keelman.cli import commands  # noqa: PLC0415
    from keelman.cli.create import Wanted  # noqa: PLC0415

    wanted = Wanted(
        nodes=nodes,
        managed=managed,
        bootstrap_servers=bootstrap_servers,
        broker_cluster=broker_cluster,
        count=count,
        properties=tuple(properties or ()),
        cluster=cluster,
        config_file=config_file,
        values=tuple(values or ()),
    )
    target = commands.Target(gateway, home)
    return commands.create(target, kind, name, wanted, output, start=start, wait=seconds_of(wait, timeout))


@app.command()
def configure(
    kind: Annotated[str, kind_word("configure")],
    name: Name,
    *,
    config_file: Annotated[
        Path | None,
        typer.Option("--config-file", metavar="FILE", help="In place of its configuration, .json or .properties."),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="A new value; may be repeated.")
    ] = None,
    gone: Annotated[
        list[str] | None, typer.Option("--unset", metavar="K", help="A key to remove; may be repeated.")
    ] = None,
    cluster: Cluster = "",
    wait: Wait = False,
    timeout: WaitSeconds = None,
    output: Form = "name",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Change a connector's configuration. Its limits (keelman.limit.*) change while it runs; all else restarts it."""
    from keelman.cli import commands  # noqa: PLC0415

    target, seconds = commands.Target(gateway, home), seconds_of(wait, timeout)
    changes = commands.Changes(config_file, tuple(values or ()), tuple(gone or ()))
    return commands.configure(target, kind, name, changes, output, cluster=cluster, wait=seconds)


@app.command()
def watch(
    kind: Annotated[str, kind_word("watch")] = "copy-runs",
    *,
    connector: Annotated[str, typer.Option("--connector", metavar="NAME", help="Only this connector's.")] = "",
    cluster: Cluster = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, wide or json.")] = "table",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show the copy runs of now, and each change as it comes, until Ctrl-C; on a pipe one JSON document a change."""
    from keelman.cli import commands  # noqa: PLC0415

    return commands.watch(commands.Target(gateway, home), kind, output, cluster=cluster, connector=connector)


@app.command()
def delete(
    kind: Annotated[str, kind_word("delete")],
    name: Name,
    *,
    cluster: Cluster = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Delete one thing; asks first on a terminal."""
    import sys  # noqa: PLC0415

    from keelman.cli import commands  # noqa: PLC0415
    from keelman.cli.kinds import kind_of  # noqa: PLC0415

    singular = kind_of(kind, "delete").singular
    if not yes and sys.stdin.isatty():
        typer.confirm(f"delete {singular} {name}?", abort=True, err=True)
    target = commands.Target(gateway, home)
    return commands.act(target, "delete", kind, name, cluster=cluster, wait=seconds_of(wait, timeout))


def _verb(verb: str, text: str) -> None:
    def command(
        kind: str,
        name: Name,
        *,
        cluster: Cluster = "",
        wait: Wait = False,
        timeout: WaitSeconds = None,
        gateway: GatewayAddress = None,
        home: HomeFolder = None,
    ) -> int:
        from keelman.cli import commands  # noqa: PLC0415

        target = commands.Target(gateway, home)
        return commands.act(target, verb, kind, name, cluster=cluster, wait=seconds_of(wait, timeout))

    command.__doc__ = text
    command.__annotations__["kind"] = Annotated[str, kind_word(verb)]
    app.command(verb)(command)


_verb("start", "Start a cluster, or a stopped connector.")
_verb("stop", "Stop a cluster or a connector; nothing is lost.")
_verb("pause", "Pause a connector and its tasks.")
_verb("resume", "Resume a paused or stopped connector.")
_verb("restart", "Restart a worker, the workers of a cluster, or a connector with its tasks.")


@app.command()
def logs(
    kind: KindWord,
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
    from keelman.cli import commands  # noqa: PLC0415

    return commands.logs(commands.Target(gateway, home), kind, name, cluster=cluster, follow=follow, tail=tail)
