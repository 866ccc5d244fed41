"""`keelman create`: clusters and nodes by their specs, connectors by their configurations."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.plugin_service_pb2 import UpdatePluginRequest
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import kinds
from keelman.cli.client.effects import wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.plugins import upload
from keelman.cli.client.target import Target
from keelman.cli.configuration import class_of, given_config
from keelman.cli.fields import Given, apply, check_given, split_names
from keelman.cli.kinds import Kind, check_option, cluster_and_name, kind_of
from keelman.cli.options import (
    Cluster,
    ConfigFile,
    Form,
    GatewayAddress,
    HomeFolder,
    Wait,
    WaitSeconds,
    command_group,
    kind_word,
    seconds_of,
    takes,
)
from keelman.cli.output import columns
from keelman.cli.output.printing import checked_format, print_one
from keelman.cli.waiting import progress_line
from keelman.model.errors import InvalidArgument

app = command_group()
_MEANT_FOR: Mapping[str, tuple[Kind, ...]] = {
    "--managed": (kinds.BROKER_CLUSTERS,),
    "--controllers": (kinds.BROKER_CLUSTERS,),
    "--broker-cluster": (kinds.WORKER_CLUSTERS,),
    "--cluster": (kinds.CONNECTORS,),
    "--config-file": (kinds.CONNECTORS,),
    "--name": (kinds.PLUGINS,),
    "--version": (kinds.PLUGINS,),
    "--any-file": (kinds.PLUGINS,),
}

AnyFile = Annotated[bool, typer.Option("--any-file", help="Keep a plugin's file even if workers cannot load it.")]


@app.command()
@takes(Given, "given")
def create(
    kind: Annotated[str, kind_word("create")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name; of a plugin its file.")],
    *,
    given: Given,
    managed: Annotated[bool, typer.Option("--managed", help="Run the brokers on nodes of keelman.")] = False,
    controllers: Annotated[
        int | None, typer.Option("--controllers", metavar="N", help="Brokers that are controllers too: 1 or 3.")
    ] = None,
    broker_cluster: Annotated[
        str, typer.Option("--broker-cluster", metavar="BC", help="Broker cluster of a worker cluster [default].")
    ] = "",
    cluster: Cluster = "",
    config_file: ConfigFile = None,
    plugin_name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Of a plugin [from its file's name].")
    ] = "",
    plugin_version: Annotated[
        str, typer.Option("--version", metavar="VERSION", help="Of a plugin [from its file].")
    ] = "",
    any_file: AnyFile = False,
    start: Annotated[bool, typer.Option("--start", help="Also start the new worker cluster.")] = False,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    output: Form = "name",
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Create a broker cluster, a worker cluster (stopped, unless --start), a connector, a plugin from its file, or a
    node before its agent."""
    seconds, found, form = seconds_of(wait, timeout), kind_of(kind, "create"), checked_format(output)
    check_given(found, given)
    more = (managed, controllers, broker_cluster, cluster, config_file, plugin_name, plugin_version, any_file)
    check_options(found, dict(zip(_MEANT_FOR, more, strict=True)), start=start)
    if found is kinds.PLUGINS:
        if seconds is not None:
            raise InvalidArgument("--wait: not for plugins: one that is answered is there")
        header = {"name": plugin_name, "version": plugin_version, "any_file": any_file}
        return upload_plugin(Target(gateway, home), Path(name), given, form, header)
    owner, plain = cluster_and_name(found, name, cluster)
    if found is kinds.CONNECTORS and not owner:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    if seconds is not None and found is kinds.WORKER_CLUSTERS and not start:
        raise InvalidArgument("--wait: a new worker cluster is stopped; give --start too, or wait on `keelman start`")
    if seconds is not None and found is kinds.NODES:
        raise InvalidArgument(
            "--wait: not for nodes: a node is ONLINE when its agent has come, see `keelman get nodes`"
        )
    made_of: Any
    if found is kinds.BROKER_CLUSTERS:
        made_of = broker_spec(given, managed=managed, controllers=controllers)
    elif found is kinds.WORKER_CLUSTERS:
        made_of = worker_spec(given, broker_cluster=broker_cluster)
    elif found is kinds.NODES:
        apply(given, made_of := NodeSpec())
    else:
        made_of = connector_config(config_file, given.values)

    async def body(client: Gateway) -> None:
        if found is kinds.CONNECTORS:
            made = await client.create_connector(owner, plain, made_of)
        else:
            made = await client.create(found, name, made_of)
        if start:
            made = await client.act("start", found, name)
        if seconds is not None:
            made = await wait_for(client, "start", found, columns.key_of(found, made), seconds=seconds)
        print_one(found, made, form)

    return Target(gateway, home).run(body)


def upload_plugin(target: Target, file: Path, given: Given, form: str, header: Mapping[str, Any]) -> int:
    """Uploads a plugin's file and prints what is in it."""
    told = UpdatePluginRequest()
    apply(given, told)

    async def body(client: Gateway) -> None:
        with progress_line() as line:
            made = await upload(client.link, file, line, description=told.description, labels=told.labels, **header)
        for problem in made.problems:
            print(f"keelman: note: {problem}", file=sys.stderr)
        print_one(kinds.PLUGINS, made, form)

    return target.run(body)


def check_options(kind: Kind, given: Mapping[str, object], *, start: bool) -> None:
    """Raises InvalidArgument for an option that says nothing about this kind."""
    for option, value in given.items():
        if value:
            check_option(option, kind, _MEANT_FOR[option])
    if start and kind is not kinds.WORKER_CLUSTERS:
        why = "is not started" if kind is kinds.PLUGINS else "starts by itself"
        raise InvalidArgument(f"--start: only for worker-clusters; a {kind.singular} {why}")


def broker_spec(given: Given, *, managed: bool = False, controllers: int | None = None) -> BrokerClusterSpec:
    """Spec of a broker cluster. Raises InvalidArgument unless it is either managed or external."""
    if given.bootstrap_servers and (managed or given.nodes or controllers is not None):
        raise InvalidArgument(
            "--bootstrap-servers: not together with --managed, --nodes or --controllers: the brokers run elsewhere"
        )
    if not (given.bootstrap_servers or split_names(given.nodes)):
        raise InvalidArgument(
            "--nodes: a managed broker cluster needs its nodes (see `keelman get nodes`); "
            "brokers that exist already are named with --bootstrap-servers host:port"
        )
    spec = BrokerClusterSpec()
    apply(given, spec)
    if controllers is not None:
        spec.managed.controllers = controllers
    return spec


def worker_spec(given: Given, *, broker_cluster: str = "") -> WorkerClusterSpec:
    """Spec of a worker cluster: on the given nodes, or so many workers anywhere (1 when nothing is said)."""
    spec = WorkerClusterSpec(broker_cluster=broker_cluster or "default")
    apply(given, spec)
    if spec.WhichOneof("placement") is None:
        spec.count = 1
    return spec


def connector_config(file: Path | None, values: Sequence[str] | None) -> dict[str, str]:
    """A connector's configuration: the file's, with --set over it. Raises InvalidArgument."""
    whole, given = given_config(file, values)
    config = {**(whole or {}), **given}
    class_of(config)
    return config
