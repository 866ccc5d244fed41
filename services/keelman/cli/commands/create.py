"""`keelman create`: clusters and nodes by their specs, connectors by their configurations."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec
from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import kinds
from keelman.cli.client.effects import wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.operations import begin, follow
from keelman.cli.client.plugins import upload
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.connectors.dedicated import create_dedicated
from keelman.cli.commands.files.contents import check_no_wait, create_from_file
from keelman.cli.commands.files.plugin_imports import create_import, import_source
from keelman.cli.configuration import class_of, given_config
from keelman.cli.kinds import Kind, cluster_and_name, kind_of
from keelman.cli.options import Cluster, ConfigFile, Form, WaitOptions, check_meant, command_group, kind_word, option
from keelman.cli.output import columns
from keelman.cli.output.lines import topic_line
from keelman.cli.output.printing import checked_format, print_one
from keelman.cli.specs.broker_fields import access_of, tls_of
from keelman.cli.specs.edits import split_names
from keelman.cli.specs.fields import apply, check_given, said
from keelman.cli.specs.options import Given
from keelman.cli.waiting import progress_line
from keelman.model.errors import InvalidArgument

app = command_group()


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """The options that only a create has."""

    managed: bool = option(
        "--managed", None, "Run the brokers on nodes of keelman.", (kinds.BROKER_CLUSTERS,), default=False
    )
    controllers: int | None = option(
        "--controllers", "N", "Brokers that are controllers too: 1 or 3.", (kinds.BROKER_CLUSTERS,)
    )
    tls: str = option(
        "--tls",
        "T",
        "Of managed brokers: none, server, or mutual, where clients show certificates [with a CA, off loopback: "
        "mutual].",
        (kinds.BROKER_CLUSTERS,),
        default="",
    )
    access: str = option(
        "--access",
        "A",
        "Of managed brokers: open, or rules, which keelman keeps for each worker cluster [with --tls mutual: rules].",
        (kinds.BROKER_CLUSTERS,),
        default="",
    )
    broker_cluster: str = option(
        "--broker-cluster",
        "BC",
        "Of a worker cluster or a topic [default].",
        (kinds.WORKER_CLUSTERS, kinds.TOPICS, kinds.DEDICATED_CONNECTORS),
        default="",
    )
    topic: str = option("--topic", "TOPIC", "Of a topic: its name in Kafka [NAME].", (kinds.TOPICS,), default="")
    connector: str = option(
        "--connector",
        "C",
        "Of a definition: its connector's name [NAME].",
        (kinds.DEFINITIONS, kinds.DEDICATED_CONNECTORS),
        default="",
    )
    cluster: Cluster = option(of=(kinds.CONNECTORS, kinds.DEFINITIONS), default="")
    config_file: ConfigFile = option(
        of=(kinds.CONNECTORS, kinds.DEFINITIONS, kinds.DEDICATED_CONNECTORS, kinds.WORKER_CONFIGURATIONS, kinds.SECRETS)
    )
    plugin_name: str = option("--name", "NAME", "Of a plugin [from its file's name].", (kinds.PLUGINS,), default="")
    plugin_version: str = option("--version", "VERSION", "Of a plugin [from its file].", (kinds.PLUGINS,), default="")
    source: str = option(
        "--from", "BUCKET/KEY", "Of a plugin import: the object that is its file.", (kinds.PLUGIN_IMPORTS,), default=""
    )
    object_version: str = option(
        "--object-version",
        "V",
        "Of a plugin import: the object's version [newest].",
        (kinds.PLUGIN_IMPORTS,),
        default="",
    )
    content: str = option(
        "--content",
        "jar|zip",
        "Of a plugin import: the kind of its file [by its ending].",
        (kinds.PLUGIN_IMPORTS,),
        default="",
    )
    any_file: bool = option(
        "--any-file", None, "Keep a plugin's file even if workers cannot load it.", (kinds.PLUGINS,), default=False
    )
    start: bool = option(
        "--start", None, "Also start the new worker cluster, or apply the new definition.", default=False
    )
    no_apply: bool = option(
        "--no-apply", None, "Of a topic: store it, and do not create it on the brokers.", (kinds.TOPICS,), default=False
    )


@app.command()
def create(
    kind: Annotated[str, kind_word("create")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name; of a plugin its file.")],
    *,
    options: Given,
    more: Creation,
    waiting: WaitOptions,
    output: Form = "name",
    target: GatewayTarget,
) -> int:
    """Create a broker cluster, a worker cluster (stopped, unless --start), a Spark cluster, a connector, a dedicated
    connector, a topic, a connector's definition, a worker configuration, a plugin from its file, or a node before its
    agent."""
    seconds, noun, form = waiting.seconds, kind_of(kind, "create"), checked_format(output)
    check_given(noun, options)
    check_options(noun, more)
    if noun in (*kinds.SAID, kinds.DEDICATED_CONNECTORS):
        return create_by_itself(target, noun, name, options, more, form=form, wait=seconds)
    owner, plain = cluster_and_name(noun, name, more.cluster)
    if noun in kinds.APPLIED:
        return create_applied(target, noun, (owner, plain), options, more, form=form, wait=seconds)
    if noun is kinds.CONNECTORS and not owner:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    if seconds is not None and noun is kinds.WORKER_CLUSTERS and not more.start:
        raise InvalidArgument("--wait: a new worker cluster is stopped; give --start too, or wait on `keelman start`")
    if seconds is not None and noun is kinds.NODES:
        raise InvalidArgument(
            "--wait: not for nodes: a node is ONLINE when its agent has come, see `keelman get nodes`"
        )
    if seconds is not None and noun is kinds.SPARK_CLUSTERS:
        raise InvalidArgument("--wait: not for spark-clusters: one starts with the first worker cluster that names it")
    made_of: Any
    if noun is kinds.BROKER_CLUSTERS:
        made_of = broker_spec(
            options, managed=more.managed, controllers=more.controllers, tls=more.tls, access=more.access
        )
    elif noun is kinds.WORKER_CLUSTERS:
        made_of = worker_spec(options, broker_cluster=more.broker_cluster)
    elif noun is kinds.NODES:
        apply(options, made_of := NodeSpec())
    elif noun is kinds.SPARK_CLUSTERS:
        made_of = spark_spec(options)
    else:
        made_of = connector_config(more.config_file, options.values)

    async def body(client: Gateway) -> None:
        if noun is kinds.CONNECTORS:
            connector = await client.create_connector(owner, plain, made_of)
        else:
            connector = await client.create(noun, name, made_of)
        if more.start:
            connector = await client.act("start", noun, name)
        if seconds is not None:
            connector = await wait_for(client, "start", noun, columns.key_of(noun, connector), seconds=seconds)
        print_one(noun, connector, form)

    return target.run(body)


def create_by_itself(
    target: GatewayTarget, kind: Kind, name: str, options: Given, more: Creation, *, form: str, wait: float | None
) -> int:
    """Creates resources that need more than a spec."""
    match kind:
        case kinds.DEDICATED_CONNECTORS:
            return create_dedicated(
                target, name, options, broker_cluster=more.broker_cluster, connector=more.connector,
                file=more.config_file, form=form, wait=wait,
            )  # fmt: skip
        case kinds.PLUGIN_IMPORTS:
            source = import_source(more.source, more.object_version, more.content)
            return create_import(target, name, source, options, form=form, wait=wait)
    check_no_wait(kind, wait)
    if kind in (kinds.WORKER_CONFIGURATIONS, kinds.SECRETS):
        return create_from_file(target, kind, name, more.config_file, options, form=form)
    header = {"name": more.plugin_name, "version": more.plugin_version, "any_file": more.any_file}
    return upload_plugin(target, Path(name), options, form, header)


def upload_plugin(target: GatewayTarget, file: Path, options: Given, form: str, header: Mapping[str, Any]) -> int:
    """Uploads a plugin's file and prints its content."""

    async def body(client: Gateway) -> None:
        with progress_line() as line:
            plugin = await upload(client.link, file, line, **said(options), **header)
        for problem in plugin.problems:
            print(f"keelman: note: {problem}", file=sys.stderr)
        print_one(kinds.PLUGINS, plugin, form)

    return target.run(body)


def check_options(kind: Kind, creation: Creation) -> None:
    """Raises InvalidArgument for an option that does not apply to this kind."""
    check_meant(kind, creation)
    if creation.start and kind not in (kinds.WORKER_CLUSTERS, kinds.DEFINITIONS):
        reason = "is not started" if kind in (kinds.TOPICS, *kinds.SAID) else "starts by itself"
        raise InvalidArgument(f"--start: only for worker-clusters and definitions; a {kind.singular} {reason}")


def broker_spec(
    options: Given, *, managed: bool = False, controllers: int | None = None, tls: str = "", access: str = ""
) -> BrokerClusterSpec:
    """Spec of a broker cluster. Raises InvalidArgument unless it is either managed or external."""
    if options.bootstrap_servers and (managed or options.nodes or controllers is not None or tls or access):
        raise InvalidArgument(
            "--bootstrap-servers: not together with --managed, --nodes, --controllers, --tls or --access: the brokers "
            "run elsewhere"
        )
    if not (options.bootstrap_servers or split_names(options.nodes)):
        raise InvalidArgument(
            "--nodes: a managed broker cluster needs its nodes (see `keelman get nodes`); "
            "brokers that exist already are named with --bootstrap-servers host:port"
        )
    spec = BrokerClusterSpec()
    apply(options, spec)
    if controllers is not None:
        spec.managed.controllers = controllers
    if tls:
        spec.managed.tls = tls_of(tls)
    if access:
        spec.managed.access = access_of(access)
    return spec


def worker_spec(options: Given, *, broker_cluster: str = "") -> WorkerClusterSpec:
    """Spec of a worker cluster: on the given nodes, or so many workers anywhere (1 by default)."""
    spec = WorkerClusterSpec(broker_cluster=broker_cluster or "default")
    apply(options, spec)
    if spec.WhichOneof("placement") is None:
        spec.count = 1
    return spec


def spark_spec(options: Given) -> SparkClusterSpec:
    """Spec of a Spark cluster. Raises InvalidArgument without a master."""
    if not options.master:
        raise InvalidArgument("--master: a Spark cluster needs its master: spark://host:port or sc://host:port")
    apply(options, spec := SparkClusterSpec())
    return spec


def topic_spec(options: Given, broker_cluster: str = "", topic: str = "") -> Any:
    """Spec of a topic."""
    spec = TopicSpec(broker_cluster=broker_cluster, topic=topic)
    apply(options, spec)
    return spec


def definition_spec(options: Given, cluster: str, connector: str = "", file: Path | None = None) -> Any:
    """Spec of a connector's definition. Raises InvalidArgument where no worker cluster or no class is named."""
    if not cluster:
        raise InvalidArgument("--cluster: a definition needs the worker cluster of its connector, which need not run")
    whole, _ = given_config(file, ())
    spec = ConnectorDefinitionSpec(worker_cluster=cluster, connector=connector, config=whole or {})
    apply(options, spec)
    class_of(spec.config)
    return spec


def create_applied(
    target: GatewayTarget,
    kind: Kind,
    name: tuple[str, str],
    options: Given,
    more: Creation,
    *,
    form: str,
    wait: float | None,
) -> int:
    """Creates a topic or a definition of a worker cluster and a plain name, and begins the operation that brings it
    about: for a topic unless `--no-apply` was given, for a definition if it starts."""
    owner, plain = name
    applies = more.start or (kind is kinds.TOPICS and not more.no_apply)
    if wait is not None and not applies:
        raise InvalidArgument(f"--wait: only for a {kind.singular} that is also applied")
    spec = topic_spec(options, more.broker_cluster, more.topic)
    if kind is kinds.DEFINITIONS:
        spec = definition_spec(options, owner, more.connector, more.config_file)

    async def body(client: Gateway) -> None:
        if kind is kinds.TOPICS and not spec.broker_cluster:
            spec.broker_cluster = await client.only_broker_cluster()
        resource = await client.create(kind, plain, spec)
        if applies:
            operation = await begin(client, kind, plain)
            if wait is not None:
                await follow(client, operation.name, seconds=wait)
            else:
                print(f"{kind.singular}/{plain} is being applied as {operation.target.goal}: "
                    f"operation/{operation.name}",
                      file=sys.stderr)  # fmt: skip
            resource = await client.get(kind, plain)
        print_one(
            kind, topic_line(resource) if kind is kinds.TOPICS and form not in ("json", "yaml") else resource, form
        )

    return target.run(body)


def connector_config(file: Path | None, values: Sequence[str] | None) -> dict[str, str]:
    """A connector's configuration: the file's, with --set over it. Raises InvalidArgument."""
    whole, values_given = given_config(file, values)
    config = {**(whole or {}), **values_given}
    class_of(config)
    return config
