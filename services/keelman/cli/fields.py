"""What `create` and `update` say of a node's or a cluster's spec: the options, and what they make of a spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, TypeAlias

import typer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.plugin_import_pb2 import PluginImport
from keelman.api.connect.v1.plugin_service_pb2 import UpdatePluginRequest
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import autoscaling, plugin_refs
from keelman.cli.configuration import pairs
from keelman.cli.dedicated_fields import edit_dedicated
from keelman.cli.kinds import (
    APPLIED,
    BROKER_CLUSTERS,
    CONNECTORS,
    DEDICATED_CONNECTORS,
    DEFINITIONS,
    NODES,
    SAID,
    TOPICS,
    WORKER_CLUSTERS,
    Kind,
    check_option,
)
from keelman.cli.sizes import size_of
from keelman.cli.spec_edits import NONE, edit_limits, edit_log_delivery, edit_map, selector_of
from keelman.model.errors import InvalidArgument

Spec: TypeAlias = (
    NodeSpec
    | BrokerClusterSpec
    | WorkerClusterSpec
    | UpdatePluginRequest
    | TopicSpec
    | ConnectorDefinitionSpec
    | WorkerConfiguration
    | DedicatedConnectorSpec
    | PluginImport
)
SPECS: Mapping[Kind, type[Spec]] = {
    NODES: NodeSpec,
    BROKER_CLUSTERS: BrokerClusterSpec,
    WORKER_CLUSTERS: WorkerClusterSpec,
    TOPICS: TopicSpec,
    DEFINITIONS: ConnectorDefinitionSpec,
    DEDICATED_CONNECTORS: DedicatedConnectorSpec,
}
_CLUSTERS = (BROKER_CLUSTERS, WORKER_CLUSTERS)
_WORKERS = (WORKER_CLUSTERS,)
_WITH_WORKERS = (WORKER_CLUSTERS, DEDICATED_CONNECTORS)
_LABELLED = (NODES, DEDICATED_CONNECTORS, *SAID, *_CLUSTERS, *APPLIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was typed of a spec; None and nothing for what was not."""

    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="Of what it is, for people.")
    ] = None
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="K=V", help="Label of what has labels; may be repeated."),
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "--property",
            "--config",
            metavar="K=V",
            help="Property of a cluster's brokers, clients or workers; key of a connector, definition or topic.",
        ),
    ] = None
    worker_values: Annotated[
        list[str] | None,
        typer.Option("--worker-property", metavar="K=V", help="Of a dedicated connector's workers, or none."),
    ] = None
    worker_configuration: Annotated[
        str,
        typer.Option("--worker-configuration", metavar="NAME[:REVISION]", help="Of a dedicated connector, or none."),
    ] = ""
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help="Of a topic; they only grow.", min=1)
    ] = None
    replication: Annotated[
        int | None, typer.Option("--replication", metavar="N", help="Replicas of each partition of a topic.", min=1)
    ] = None
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="A,B", help="Of a cluster: one broker or worker on each of these.")
    ] = ""
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", help="Number of workers, on any nodes; a new cluster has 1.", min=1),
    ] = None
    autoscale: Annotated[str, typer.Option("--autoscale", metavar="MIN..MAX[,K=V]", help=autoscaling.HELP)] = ""
    node_selector: Annotated[
        list[str] | None,
        typer.Option("--node-selector", metavar="K=V", help="Label of the nodes that a --count may be on, or none."),
    ] = None
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", help="Of a cluster, the same on each node; 0: a free one.")
    ] = None
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", metavar="PORT", help="Of each worker, for /metrics alone; 0: none.")
    ] = None
    admin_port: Annotated[
        int | None, typer.Option("--admin-port", metavar="PORT", help="Of each worker's admin listener; 0: none.")
    ] = None
    reserved_ports: Annotated[
        list[str] | None,
        typer.Option("--reserved-port", metavar="PORT", help="Kept free for connectors, or none; may be repeated."),
    ] = None
    routes: Annotated[
        list[str] | None,
        typer.Option(
            "--route", metavar="HOST=ADDRESS", help="Of a host, for its workers alone, or none; may be repeated."
        ),
    ] = None
    log_group: Annotated[
        str, typer.Option("--log-group", metavar="FOLDER", help="Files its workers' logs are delivered to, or none.")
    ] = ""
    log_bucket: Annotated[
        str,
        typer.Option("--log-bucket", metavar="BUCKET[/PREFIX]", help="Objects that they are delivered to, or none."),
    ] = ""
    log_topic: Annotated[
        str, typer.Option("--log-topic", metavar="TOPIC", help="Topic that they are delivered to, or none.")
    ] = ""
    https: Annotated[bool | None, typer.Option("--https/--no-https", help="Workers' REST API is https.")] = None
    cpus: Annotated[
        float | None,
        typer.Option("--cpus", metavar="N", help="Most processors of a worker, or of a node's workloads; 0: no limit."),
    ] = None
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Most memory of a worker, or of a node's workloads, e.g. 512MiB; 0: no limit.",
        ),
    ] = ""
    shared_offset_topic: Annotated[
        bool | None,
        typer.Option(
            "--shared-offset-topic/--no-shared-offset-topic", help="Worker clusters may have one offset topic."
        ),
    ] = None
    plugins: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="NAME[:VERSION]", help="Plugin that workers load; may be repeated."),
    ] = None
    libraries: Annotated[
        list[str] | None,
        typer.Option(
            "--library", metavar="NAME[:VERSION]", help="Plugin whose jars all Java plugins find; may be repeated."
        ),
    ] = None
    engine: Annotated[
        str, typer.Option("--engine", metavar="E", help="Of a worker cluster: keelman or kafka-connect.")
    ] = ""
    bootstrap_servers: Annotated[
        str, typer.Option("--bootstrap-servers", metavar="H:P,...", help="Brokers that exist already.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChange(Given):
    """What was typed of a change of a spec."""

    unlabel: Annotated[
        list[str] | None, typer.Option("--unlabel", metavar="K", help="A label to remove; may be repeated.")
    ] = None
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="K", help="A property to remove; may be repeated.")
    ] = None
    add_nodes: Annotated[
        list[str] | None, typer.Option("--add-node", metavar="NODE", help="One node more; may be repeated.")
    ] = None
    remove_nodes: Annotated[
        list[str] | None, typer.Option("--remove-node", metavar="NODE", help="One node less; may be repeated.")
    ] = None
    remove_plugins: Annotated[
        list[str] | None, typer.Option("--remove-plugin", metavar="NAME", help="One plugin less; may be repeated.")
    ] = None
    remove_libraries: Annotated[
        list[str] | None, typer.Option("--remove-library", metavar="NAME", help="One library less; may be repeated.")
    ] = None


_OF_WORKER_CLUSTERS = (
    "metrics_port", "admin_port", "reserved_ports", "routes", "https", "shared_offset_topic", "remove_plugins",
    "remove_libraries",
)  # fmt: skip
_OF_ALL_WITH_WORKERS = (
    "count", "autoscale", "node_selector", "log_group", "log_bucket", "log_topic", "plugins", "libraries", "engine",
)  # fmt: skip
_MEANT_FOR: Mapping[str, tuple[Kind, ...]] = {
    "description": _LABELLED,
    "labels": _LABELLED,
    "values": (*_CLUSTERS, CONNECTORS, DEDICATED_CONNECTORS, *APPLIED),
    "worker_values": (DEDICATED_CONNECTORS,),
    "worker_configuration": (DEDICATED_CONNECTORS,),
    "partitions": (TOPICS,),
    "replication": (TOPICS,),
    "nodes": _CLUSTERS,
    "port": _CLUSTERS,
    "cpus": (NODES, *_WITH_WORKERS),
    "memory": (NODES, *_WITH_WORKERS),
    "bootstrap_servers": (BROKER_CLUSTERS, DEDICATED_CONNECTORS),
    "unlabel": _LABELLED,
    "unset": (*_CLUSTERS, DEDICATED_CONNECTORS, *APPLIED),
    "add_nodes": _CLUSTERS,
    "remove_nodes": _CLUSTERS,
    **dict.fromkeys(_OF_WORKER_CLUSTERS, _WORKERS),
    **dict.fromkeys(_OF_ALL_WITH_WORKERS, _WITH_WORKERS),
}
_NAMES = {
    "labels": "--label",
    "values": "--set",
    "worker_values": "--worker-property",
    "reserved_ports": "--reserved-port",
    "routes": "--route",
    "add_nodes": "--add-node",
    "remove_nodes": "--remove-node",
    "plugins": "--plugin",
    "libraries": "--library",
    "remove_plugins": "--remove-plugin",
    "remove_libraries": "--remove-library",
}


def check_given(kind: Kind, given: Given) -> bool:
    """Whether anything was typed. Raises InvalidArgument for an option that says nothing about this kind, and for a
    text that is never legal."""
    found = [one.name for one in fields(given) if getattr(given, one.name) not in (None, "", [])]
    for name in found:
        check_option(_NAMES.get(name, "--" + name.replace("_", "-")), kind, _MEANT_FOR[name])
    pairs("--label", given.labels or ())
    pairs("--set", given.values or ())
    selector_of(given.node_selector)
    _reserved(given)
    plugin_refs.named("--plugin", given.plugins or ())
    plugin_refs.named("--library", given.libraries or ())
    if given.engine:
        plugin_refs.engine_of(given.engine)
    if given.memory:
        size_of("--memory", given.memory)
    return bool(found)


def apply(given: Given, spec: Spec) -> list[str]:
    """Changes a spec to what was typed; returns the mask: the fields that were named. Raises InvalidArgument."""
    paths: list[str] = []
    change = given if isinstance(given, GivenChange) else None
    if given.description is not None:
        spec.description = given.description
        paths.append("description")
    if given.labels or (change and change.unlabel):
        edit_map("label", spec.labels, given.labels, change.unlabel if change else None)
        paths.append("labels")
    match spec:
        case NodeSpec():
            paths += edit_limits(given.cpus, given.memory, spec.capacity, "capacity")
        case BrokerClusterSpec():
            paths += _brokers(given, change, spec)
        case WorkerClusterSpec():
            paths += _workers(given, change, spec)
        case DedicatedConnectorSpec():
            paths += edit_dedicated(given, change.unset if change else None, spec)
        case TopicSpec() | ConnectorDefinitionSpec():
            paths += _applied(given, change, spec)
    return paths


def split_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _brokers(given: Given, change: GivenChange | None, spec: BrokerClusterSpec) -> Iterable[str]:
    if given.bootstrap_servers:
        if spec.WhichOneof("kind") == "managed":
            raise InvalidArgument("--bootstrap-servers: not together with nodes: keelman runs the brokers there")
        spec.external.bootstrap_servers = given.bootstrap_servers
        yield "external.bootstrap_servers"
    external = spec.WhichOneof("kind") == "external"
    if external and (given.nodes or given.port is not None or (change and (change.add_nodes or change.remove_nodes))):
        raise InvalidArgument("--bootstrap-servers: not together with nodes or a port: the brokers run elsewhere")
    if given.nodes or (change and (change.add_nodes or change.remove_nodes)):
        spec.managed.nodes[:] = _nodes(given, change, spec.managed.nodes)
        yield "managed.nodes"
    if given.port is not None:
        spec.managed.port = given.port
        yield "managed.port"
    if given.values or (change and change.unset):
        where = spec.external.client_properties if external else spec.managed.properties
        edit_map("set", where, given.values, change.unset if change else None)
        yield "external.client_properties" if external else "managed.properties"


def _applied(given: Given, change: GivenChange | None, spec: TopicSpec | ConnectorDefinitionSpec) -> Iterable[str]:
    if given.values or (change and change.unset):
        edit_map("set", spec.config, given.values, change.unset if change else None)
        yield "config"
    if isinstance(spec, TopicSpec) and given.partitions is not None:
        spec.partitions = given.partitions
        yield "partitions"
    if isinstance(spec, TopicSpec) and given.replication is not None:
        spec.replication_factor = given.replication
        yield "replication_factor"


def _workers(given: Given, change: GivenChange | None, spec: WorkerClusterSpec) -> Iterable[str]:
    named = bool(given.nodes or (change and (change.add_nodes or change.remove_nodes)))
    if named and (given.count is not None or given.autoscale):
        option = "--autoscale" if given.autoscale else "--count"
        raise InvalidArgument(f"{option}: not together with --nodes: one worker runs on each of these")
    if named:
        placed = f"count ({spec.count})" if spec.count else spec.WhichOneof("placement")
        if not given.nodes and placed not in ("nodes", None):
            said = f"--add-node, --remove-node: its workers are placed by {placed}, not on named nodes: "
            raise InvalidArgument(said + "change --count or --autoscale, or name all nodes with --nodes")
        spec.nodes.names[:] = _nodes(given, change, spec.nodes.names)
        yield "nodes"
    elif given.autoscale:
        autoscaling.edit_autoscale(given.autoscale, given.count, spec)
        yield "autoscale"
    elif given.count is not None:
        spec.count = given.count
        yield "count"
    if given.values or (change and change.unset):
        edit_map("set", spec.properties, given.values, change.unset if change else None)
        yield "properties"
    if given.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(selector_of(given.node_selector))
        yield "node_selector"
    if given.routes:
        spec.routes.clear()
        spec.routes.update({} if given.routes == [NONE] else pairs("--route", given.routes))
        yield "routes"
    yield from edit_log_delivery(given.log_group, given.log_bucket, given.log_topic, spec.log_delivery)
    if given.reserved_ports:
        spec.reserved_ports[:] = _reserved(given)
        yield "reserved_ports"
    for name in ("port", "metrics_port", "admin_port", "https", "shared_offset_topic"):
        if getattr(given, name) is not None:
            setattr(spec, name, getattr(given, name))
            yield name
    yield from _plugins(given, change, spec)
    yield from edit_limits(given.cpus, given.memory, spec.limits, "limits")


def _plugins(given: Given, change: GivenChange | None, spec: WorkerClusterSpec) -> Iterable[str]:
    gone = (change.remove_plugins, change.remove_libraries) if change else (None, None)
    for option, path, present, new, old in (
        ("plugin", "plugins", spec.plugins, given.plugins, gone[0]),
        ("library", "libraries", spec.libraries, given.libraries, gone[1]),
    ):
        if new or old:
            plugin_refs.edit(option, present, new or (), old or ())
            yield path
    if given.engine:
        spec.engine = plugin_refs.engine_of(given.engine)
        yield "engine"


def _nodes(given: Given, change: GivenChange | None, present: Sequence[str]) -> list[str]:
    """Nodes in their order, the new ones last."""
    names = split_names(given.nodes) if given.nodes else list(present)
    for name in (change.remove_nodes or ()) if change else ():
        if name not in names:
            raise InvalidArgument.of("--remove-node", name, "one of its nodes: " + ", ".join(names))
        names.remove(name)
    names += (change.add_nodes or ()) if change else ()
    if not names:
        raise InvalidArgument("--remove-node: it needs at least one node; `keelman stop` stops it, `delete` ends it")
    return names


def _reserved(given: Given) -> list[int]:
    texts = [] if given.reserved_ports == [NONE] else given.reserved_ports or []
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgument.of("--reserved-port", text, f"a port, or {NONE}")
    return [int(text) for text in texts]
