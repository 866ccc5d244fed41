"""`keelman download`: the file of a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.plugins import download as fetch
from keelman.cli.client.target import GatewayTarget
from keelman.cli.kinds import kind_of
from keelman.cli.options import command_group, kind_word
from keelman.cli.waiting import progress_line
from keelman.model.errors import InvalidArgument

app = command_group()


@app.command()
def download(
    kind: Annotated[str, kind_word("download")],
    name: Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="Its name; the newest version unless named.")],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write [the file's own name, here].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    target: GatewayTarget,
) -> int:
    """Download a plugin's file, as it was uploaded."""
    kind_of(kind, "download")
    if output is not None and not output.parent.is_dir():
        raise InvalidArgument.of("-o", str(output), "a file in a folder that exists")

    async def body(client: Gateway) -> None:
        with progress_line() as line:
            plugin, target = await fetch(client.link, name, output, line, force=force)
        print(f"plugin/{plugin.name}:{plugin.version} is in {target}")

    return target.run(body)
