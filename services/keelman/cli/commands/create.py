"""`keelman create`: clusters by their specs, connectors by their configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec, WorkerNodes
from keelman.cli import kinds
from keelman.cli.client.effects import wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import Target
from keelman.cli.configuration import class_of, given_config, pairs
from keelman.cli.kinds import Kind, check_option, cluster_and_name, kind_of
from keelman.cli.options import (
    Cluster,
    ConfigFile,
    ConfigValues,
    Form,
    GatewayAddress,
    HomeFolder,
    Wait,
    WaitSeconds,
    command_group,
    kind_word,
    seconds_of,
)
from keelman.cli.output import columns
from keelman.cli.output.printing import checked_format, print_one
from keelman.model.errors import InvalidArgument

app = command_group()
_CLUSTERS = (kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS)
_MEANT_FOR: Mapping[str, tuple[Kind, ...]] = {
    "--nodes": _CLUSTERS,
    "--managed": (kinds.BROKER_CLUSTERS,),
    "--bootstrap-servers": (kinds.BROKER_CLUSTERS,),
    "--count": (kinds.WORKER_CLUSTERS,),
    "--property": _CLUSTERS,
    "--cluster": (kinds.CONNECTORS,),
    "--config-file": (kinds.CONNECTORS,),
    "--set": (kinds.CONNECTORS,),
}


@app.command()
def create(
    kind: Annotated[str, kind_word("create")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    *,
    nodes: Annotated[str, typer.Option("--nodes", metavar="A,B", help="Nodes for its brokers or workers.")] = "",
    managed: Annotated[bool, typer.Option("--managed", help="Run the brokers on nodes of keelman.")] = False,
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Brokers that exist already.")] = "",
    broker_cluster: Annotated[
        str, typer.Option("--broker-cluster", help="Broker cluster of a worker cluster.")
    ] = "default",
    count: Annotated[int | None, typer.Option("--count", help="Number of workers, on any nodes [1].", min=1)] = None,
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
    seconds, found, form = seconds_of(wait, timeout), kind_of(kind, "create"), checked_format(output)
    given = (nodes, managed, bootstrap_servers, count, properties, cluster, config_file, values)
    check_options(found, dict(zip(_MEANT_FOR, given, strict=True)), start=start)
    owner, plain = cluster_and_name(found, name, cluster)
    if found is kinds.CONNECTORS and not owner:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    if seconds is not None and found is kinds.WORKER_CLUSTERS and not start:
        raise InvalidArgument("--wait: a new worker cluster is stopped; give --start too, or wait on `keelman start`")
    made_of: Any
    if found is kinds.BROKER_CLUSTERS:
        made_of = broker_spec(nodes, properties or (), managed=managed, bootstrap_servers=bootstrap_servers)
    elif found is kinds.WORKER_CLUSTERS:
        made_of = worker_spec(nodes, properties or (), count=count, broker_cluster=broker_cluster)
    else:
        made_of = connector_config(config_file, values)

    async def body(client: Gateway) -> None:
        if found is kinds.CONNECTORS:
            made = await client.create_connector(owner, plain, made_of)
        else:
            made = await client.create_cluster(found, name, made_of)
        if start:
            made = await client.act("start", found, name)
        if seconds is not None:
            made = await wait_for(client, "start", found, columns.key_of(found, made), seconds=seconds)
        print_one(found, made, form)

    return Target(gateway, home).run(body)


def check_options(kind: Kind, given: Mapping[str, object], *, start: bool) -> None:
    """Raises InvalidArgument for an option that says nothing about this kind."""
    for option, value in given.items():
        if value:
            check_option(option, kind, _MEANT_FOR[option])
    if start and kind is not kinds.WORKER_CLUSTERS:
        raise InvalidArgument(f"--start: only for worker-clusters; a {kind.singular} starts by itself")


def broker_spec(
    nodes: str, properties: Sequence[str], *, managed: bool = False, bootstrap_servers: str = ""
) -> BrokerClusterSpec:
    """Spec of a broker cluster. Raises InvalidArgument unless it is either managed or external."""
    found = pairs("--property", properties)
    if bootstrap_servers and (managed or nodes):
        raise InvalidArgument("--bootstrap-servers: not together with --managed or --nodes: the brokers run elsewhere")
    if bootstrap_servers:
        return BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers=bootstrap_servers, client_properties=found))
    names = split_names(nodes)
    if not names:
        raise InvalidArgument(
            "--nodes: a managed broker cluster needs its nodes (see `keelman get nodes`); "
            "brokers that exist already are named with --bootstrap-servers host:port"
        )
    return BrokerClusterSpec(managed=ManagedBrokers(nodes=names, properties=found))


def worker_spec(
    nodes: str, properties: Sequence[str], *, count: int | None, broker_cluster: str = "default"
) -> WorkerClusterSpec:
    """Spec of a worker cluster: on the given nodes, or so many workers anywhere (1 when nothing is said)."""
    if nodes and count is not None:
        raise InvalidArgument("--count: not together with --nodes: one worker runs on each of these")
    spec = WorkerClusterSpec(broker_cluster=broker_cluster, properties=pairs("--property", properties))
    if nodes:
        spec.nodes.CopyFrom(WorkerNodes(names=split_names(nodes)))
    else:
        spec.count = count or 1
    return spec


def connector_config(file: Path | None, values: Sequence[str] | None) -> dict[str, str]:
    """A connector's configuration: the file's, with --set over it. Raises InvalidArgument."""
    whole, given = given_config(file, values)
    config = {**(whole or {}), **given}
    class_of(config)
    return config


def split_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
