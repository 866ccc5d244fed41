"""The options of `create` and `update` for the specs of nodes, clusters and others; sets a spec's fields from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.plugin_import_pb2 import PluginImport
from keelman.api.connect.v1.plugin_service_pb2 import UpdatePluginRequest
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import autoscaling, plugin_refs, spec_edits
from keelman.cli.broker_fields import edit_brokers
from keelman.cli.configuration import pairs
from keelman.cli.dedicated_fields import edit_dedicated
from keelman.cli.kinds import (
    APPLIED,
    BROKER_CLUSTERS,
    CONNECTORS,
    DEDICATED_CONNECTORS,
    NODES,
    SAID,
    TOPICS,
    WORKER_CLUSTERS,
    Kind,
)
from keelman.cli.options import check_meant, option
from keelman.cli.sizes import size_of
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
_CLUSTERS = (BROKER_CLUSTERS, WORKER_CLUSTERS)
_WORKERS = (WORKER_CLUSTERS,)
_WITH_WORKERS = (WORKER_CLUSTERS, DEDICATED_CONNECTORS)
_LABELLED = (NODES, DEDICATED_CONNECTORS, *SAID, *_CLUSTERS, *APPLIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Options for a spec; None or empty if not given."""

    description: str | None = option("--description", "TEXT", "Of what it is, for people.", _LABELLED)
    labels: list[str] | None = option("--label", "K=V", "Label of what has labels; may be repeated.", _LABELLED)
    values: list[str] | None = option(
        "--set --property --config",
        "K=V",
        "Property of a cluster's brokers, clients or workers; key of a connector, definition or topic.",
        (*_CLUSTERS, CONNECTORS, DEDICATED_CONNECTORS, *APPLIED),
    )
    worker_values: list[str] | None = option(
        "--worker-property", "K=V", "Of a dedicated connector's workers, or none.", (DEDICATED_CONNECTORS,)
    )
    worker_configuration: str = option(
        "--worker-configuration",
        "NAME[:REVISION]",
        "Of a dedicated connector, or none.",
        (DEDICATED_CONNECTORS,),
        default="",
    )
    partitions: int | None = option("--partitions", "N", "Of a topic; they only grow.", (TOPICS,), min=1)
    replication: int | None = option("--replication", "N", "Replicas of each partition of a topic.", (TOPICS,), min=1)
    nodes: str = option("--nodes", "A,B", "Of a cluster: one broker or worker on each of these.", _CLUSTERS, default="")
    count: int | None = option(
        "--count", "N", "Number of workers, on any nodes; a new cluster has 1.", _WITH_WORKERS, min=1
    )
    autoscale: str = option("--autoscale", "MIN..MAX[,K=V]", autoscaling.HELP, _WITH_WORKERS, default="")
    node_selector: list[str] | None = option(
        "--node-selector", "K=V", "Label of the nodes that a --count may be on, or none.", _WITH_WORKERS
    )
    port: int | None = option("--port", "PORT", "Of a cluster, the same on each node; 0: a free one.", _CLUSTERS)
    metrics_port: int | None = option("--metrics-port", "PORT", "Of each worker or broker; 0: none.", _CLUSTERS)
    admin_port: int | None = option("--admin-port", "PORT", "Of each worker's admin listener; 0: none.", _WORKERS)
    reserved_ports: list[str] | None = option(
        "--reserved-port", "PORT", "Kept free for connectors, or none; may be repeated.", _WORKERS
    )
    routes: list[str] | None = option(
        "--route", "HOST=ADDRESS", "Of a host, for its processes alone, or none; may be repeated.", _CLUSTERS
    )
    heap: str = option(
        "--heap", "SIZE", "Most heap of each broker, at least 128MiB; 0: 512MiB.", (BROKER_CLUSTERS,), default=""
    )
    log_group: str = option(
        "--log-group", "FOLDER", "Files its workers' logs are delivered to, or none.", _WITH_WORKERS, default=""
    )
    log_bucket: str = option(
        "--log-bucket", "BUCKET[/PREFIX]", "Objects that they are delivered to, or none.", _WITH_WORKERS, default=""
    )
    log_topic: str = option(
        "--log-topic", "TOPIC", "Topic that they are delivered to, or none.", _WITH_WORKERS, default=""
    )
    https: bool | None = option("--https/--no-https", None, "Workers' REST API is https.", _WORKERS)
    cpus: float | None = option(
        "--cpus", "N", "Most processors of a worker, or of a node's workloads; 0: no limit.", (NODES, *_WITH_WORKERS)
    )
    memory: str = option(
        "--memory",
        "SIZE",
        "Most memory of a worker, or of a node's workloads, e.g. 512MiB; 0: no limit.",
        (NODES, *_WITH_WORKERS),
        default="",
    )
    shared_offset_topic: bool | None = option(
        "--shared-offset-topic/--no-shared-offset-topic", None, "Worker clusters may have one offset topic.", _WORKERS
    )
    plugins: list[str] | None = option(
        "--plugin", "NAME[:VERSION]", "Plugin that workers load; may be repeated.", _WITH_WORKERS
    )
    libraries: list[str] | None = option(
        "--library", "NAME[:VERSION]", "Plugin whose jars all Java plugins find; may be repeated.", _WITH_WORKERS
    )
    engine: str = option("--engine", "E", "Of a worker cluster: keelman or kafka-connect.", _WITH_WORKERS, default="")
    credential_profile: str | None = option(
        "--credential-profile",
        "SECRET",
        "Secret with security.*, sasl.* and ssl.* properties of external brokers' clients; '' for none.",
        (BROKER_CLUSTERS,),
    )
    bootstrap_servers: str = option(
        "--bootstrap-servers",
        "H:P,...",
        "Brokers that exist already.",
        (BROKER_CLUSTERS, DEDICATED_CONNECTORS),
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChange(Given):
    """Options for a change of a spec."""

    unlabel: list[str] | None = option("--unlabel", "K", "A label to remove; may be repeated.", _LABELLED)
    unset: list[str] | None = option(
        "--unset", "K", "A property to remove; may be repeated.", (*_CLUSTERS, DEDICATED_CONNECTORS, *APPLIED)
    )
    add_nodes: list[str] | None = option("--add-node", "NODE", "One node more; may be repeated.", _CLUSTERS)
    remove_nodes: list[str] | None = option("--remove-node", "NODE", "One node less; may be repeated.", _CLUSTERS)
    remove_plugins: list[str] | None = option("--remove-plugin", "NAME", "One plugin less; may be repeated.", _WORKERS)
    remove_libraries: list[str] | None = option(
        "--remove-library", "NAME", "One library less; may be repeated.", _WORKERS
    )


def check_given(kind: Kind, given: Given) -> bool:
    """Tells whether any option was given. Raises InvalidArgument for an option that is not for this kind, and for a
    text that is never legal."""
    found = check_meant(kind, given)
    pairs("--label", given.labels or ())
    pairs("--set", given.values or ())
    spec_edits.selector_of(given.node_selector)
    _reserved(given)
    plugin_refs.named("--plugin", given.plugins or ())
    plugin_refs.named("--library", given.libraries or ())
    if given.engine:
        plugin_refs.engine_of(given.engine)
    if given.memory:
        size_of("--memory", given.memory)
    return found


def apply(given: Given, spec: Spec) -> list[str]:
    """Changes a spec by the given options; returns the mask: the names of the given fields. Raises InvalidArgument."""
    paths: list[str] = []
    change = given if isinstance(given, GivenChange) else None
    if given.description is not None:
        spec.description = given.description
        paths.append("description")
    if given.labels or (change and change.unlabel):
        spec_edits.edit_map("label", spec.labels, given.labels, change.unlabel if change else None)
        paths.append("labels")
    match spec:
        case NodeSpec():
            paths += spec_edits.edit_limits(given.cpus, given.memory, spec.capacity, "capacity")
        case BrokerClusterSpec():
            paths += edit_brokers(given, change, spec)
        case WorkerClusterSpec():
            paths += _workers(given, change, spec)
        case DedicatedConnectorSpec():
            paths += edit_dedicated(given, change.unset if change else None, spec)
        case TopicSpec() | ConnectorDefinitionSpec():
            paths += _applied(given, change, spec)
    return paths


def said(given: Given) -> dict[str, Any]:
    """Returns the given description and labels of a resource."""
    request = UpdatePluginRequest()
    apply(given, request)
    return {"description": request.description, "labels": dict(request.labels)}


def _applied(given: Given, change: GivenChange | None, spec: TopicSpec | ConnectorDefinitionSpec) -> Iterable[str]:
    if given.values or (change and change.unset):
        spec_edits.edit_map("set", spec.config, given.values, change.unset if change else None)
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
        spec.nodes.names[:] = spec_edits.edit_nodes(given.nodes, change, spec.nodes.names)
        yield "nodes"
    elif given.autoscale:
        autoscaling.edit_autoscale(given.autoscale, given.count, spec)
        yield "autoscale"
    elif given.count is not None:
        spec.count = given.count
        yield "count"
    if given.values or (change and change.unset):
        spec_edits.edit_map("set", spec.properties, given.values, change.unset if change else None)
        yield "properties"
    if given.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(spec_edits.selector_of(given.node_selector))
        yield "node_selector"
    if given.routes:
        spec_edits.edit_routes(given.routes, spec.routes)
        yield "routes"
    yield from spec_edits.edit_log_delivery(given.log_group, given.log_bucket, given.log_topic, spec.log_delivery)
    if given.reserved_ports:
        spec.reserved_ports[:] = _reserved(given)
        yield "reserved_ports"
    for name in ("port", "metrics_port", "admin_port", "https", "shared_offset_topic"):
        if getattr(given, name) is not None:
            setattr(spec, name, getattr(given, name))
            yield name
    yield from _plugins(given, change, spec)
    yield from spec_edits.edit_limits(given.cpus, given.memory, spec.limits, "limits")


def _plugins(given: Given, change: GivenChange | None, spec: WorkerClusterSpec) -> Iterable[str]:
    gone = (change.remove_plugins, change.remove_libraries) if change else (None, None)
    for flag, path, present, new, old in (
        ("plugin", "plugins", spec.plugins, given.plugins, gone[0]),
        ("library", "libraries", spec.libraries, given.libraries, gone[1]),
    ):
        if new or old:
            plugin_refs.edit(flag, present, new or (), old or ())
            yield path
    if given.engine:
        spec.engine = plugin_refs.engine_of(given.engine)
        yield "engine"


def _reserved(given: Given) -> list[int]:
    texts = [] if given.reserved_ports == [spec_edits.NONE] else given.reserved_ports or []
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgument.of("--reserved-port", text, f"a port, or {spec_edits.NONE}")
    return [int(text) for text in texts]
