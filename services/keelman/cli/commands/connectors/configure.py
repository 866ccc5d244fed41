"""`keelman configure`: another configuration for a connector."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keelman.cli.client.effects import before, wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.configuration import given_config
from keelman.cli.kinds import kind_of
from keelman.cli.options import Cluster, ConfigValues, Form, Name, WaitOptions, command_group, kind_word
from keelman.cli.output import columns
from keelman.cli.output.printing import checked_format, print_one
from keelman.model.errors import InvalidArgument

app = command_group()
LIMITS = "keelman.limit."
"""Keys that change while the copy runs of a connector live on."""


@app.command()
def configure(
    kind: Annotated[str, kind_word("configure")],
    name: Name,
    *,
    config_file: Annotated[
        Path | None,
        typer.Option("--config-file", metavar="FILE", help="Its whole new configuration, .json or .properties."),
    ] = None,
    values: ConfigValues = None,
    gone: Annotated[
        list[str] | None, typer.Option("--unset", metavar="K", help="A key to remove; may be repeated.")
    ] = None,
    cluster: Cluster = "",
    waiting: WaitOptions,
    output: Form = "name",
    target: GatewayTarget,
) -> int:
    """Change a connector's configuration. Its limits (keelman.limit.*) change while it runs; all else restarts it."""
    seconds, noun, form = waiting.seconds, kind_of(kind, "configure"), checked_format(output)
    (whole, values_given), removed = given_config(config_file, values), gone or ()
    if whole is None and not values_given and not removed:
        raise InvalidArgument("nothing to change: give --config-file FILE, --set KEY=VALUE or --unset KEY")
    if both := sorted(set(values_given) & set(removed)):
        raise InvalidArgument(f"--unset: {both[0]} is also given with --set")

    async def body(client: Gateway) -> None:
        connector = await client.get(noun, name, cluster=cluster)
        config = {**(connector.config if whole is None else whole), **values_given}
        for key in removed:
            if key not in config:
                where = f"connector {connector.name}" if config_file is None else config_file
                raise InvalidArgument(f"--unset: {where} has no {key}")
            del config[key]
        full = columns.key_of(noun, connector)
        changed = {key for key in {**connector.config, **config} if connector.config.get(key) != config.get(key)}
        lives_on = all(key.startswith(LIMITS) for key in changed)
        was = None if seconds is None or lives_on else await before(client, "configure", noun, full)
        configured = await client.configure_connector(connector.worker_cluster, connector.name, config)
        if seconds is not None:
            configured = await wait_for(client, "configure", noun, full, seconds=seconds, was=was)
        print_one(noun, configured, form)

    return target.run(body)
