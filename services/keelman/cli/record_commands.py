"""The commands about single records of a connector, and their options; beside those of `app`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.cli.app import app
from keelman.cli.options import Cluster, GatewayAddress, HomeFolder, Name

__all__ = ["app"]

Worker = Annotated[
    str, typer.Option("--worker", metavar="URL", help="REST address of a worker, in place of the gateway.")
]
TextForm = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="text, json or yaml.")]


@app.command()
def preview(
    name: Name,
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config-file", "--config", metavar="FILE", help="Try this configuration, .json or .properties."),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="Try it with this value; may be repeated.")
    ] = None,
    records: Annotated[int, typer.Option("--records", metavar="N", help="How many.", min=1, max=100)] = 5,
    begin: Annotated[
        str,
        typer.Option("--from", metavar="WHERE", help="Of a source committed or beginning, of a sink end or beginning."),
    ] = "",
    cluster: Cluster = "",
    worker: Worker = "",
    output: TextForm = "text",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show a few real records through each step of a connector, before and after. Nothing is written."""
    from keelman.cli import records as do  # noqa: PLC0415

    where = do.where(gateway, home, name, cluster=cluster, worker=worker)
    return do.preview(where, config, values or [], records=records, begin=begin, form=output)


@app.command("dead-letters")
def dead_letters(
    name: Name,
    *,
    records: Annotated[int, typer.Option("--records", metavar="N", help="How many of the newest.", min=0, max=100)] = 5,
    cluster: Cluster = "",
    worker: Worker = "",
    output: TextForm = "text",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Show how many dead letters a connector has, of which kinds, and the newest."""
    from keelman.cli import records as do  # noqa: PLC0415

    return do.dead_letters(do.where(gateway, home, name, cluster=cluster, worker=worker), records, output)


@app.command()
def replay(
    name: Name,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of them.")] = False,
    to: Annotated[str, typer.Option("--to", metavar="TOPIC", help="Of a sink: to this topic, as they are.")] = "",
    stage: Annotated[
        str, typer.Option("--stage", metavar="STAGE", help="Only those of it, e.g. VALUE_CONVERTER.")
    ] = "",
    exception: Annotated[str, typer.Option("--exception", metavar="CLASS", help="Only those of it.")] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only records since then: a time, or 90m, 12h, 7d ago.")
    ] = "",
    most: Annotated[int | None, typer.Option("--most", metavar="N", help="Send no more than these.", min=1)] = None,
    cluster: Cluster = "",
    worker: Worker = "",
    output: TextForm = "text",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Send a connector's dead letters back, each exactly once; those that still cannot be taken stay."""
    from keelman.cli import records as do  # noqa: PLC0415

    asked: dict[str, Any] = {"dry_run": dry_run}
    asked |= {key: text for key, text in (("to", to), ("stage", stage), ("exception", exception)) if text}
    if since:
        asked["since"] = do.since(since)
    if most is not None:
        asked["most"] = most
    return do.replay(do.where(gateway, home, name, cluster=cluster, worker=worker), asked, output)
