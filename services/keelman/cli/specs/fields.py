"""Sets the fields of a spec from the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.plugin_import_pb2 import PluginImport
from keelman.api.connect.v1.plugin_service_pb2 import UpdatePluginRequest
from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import autoscaling, plugin_refs
from keelman.cli.configuration import pairs
from keelman.cli.kinds import Kind
from keelman.cli.options import check_meant
from keelman.cli.sizes import size_of
from keelman.cli.specs import edits
from keelman.cli.specs.broker_fields import edit_brokers
from keelman.cli.specs.dedicated_fields import edit_dedicated
from keelman.cli.specs.options import Given, GivenChange
from keelman.cli.specs.spark_fields import edit_spark
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
    | SparkClusterSpec
)


def check_given(kind: Kind, options: Given) -> bool:
    """Tells whether any option was given. Raises InvalidArgument for an option that is not for this kind, and for a
    text that is never legal."""
    meant = check_meant(kind, options)
    pairs("--label", options.labels or ())
    pairs("--set", options.values or ())
    edits.selector_of(options.node_selector)
    _reserved(options)
    plugin_refs.named("--plugin", options.plugins or ())
    plugin_refs.named("--library", options.libraries or ())
    if options.engine:
        plugin_refs.engine_of(options.engine)
    if options.memory:
        size_of("--memory", options.memory)
    return meant


def apply(options: Given, spec: Spec) -> list[str]:
    """Changes a spec by the given options; returns the mask: the names of the given fields. Raises InvalidArgument."""
    paths: list[str] = []
    change = options if isinstance(options, GivenChange) else None
    if options.description is not None:
        spec.description = options.description
        paths.append("description")
    if options.labels or (change and change.unlabel):
        edits.edit_map("label", spec.labels, options.labels, change.unlabel if change else None)
        paths.append("labels")
    match spec:
        case NodeSpec():
            paths += edits.edit_limits(options.cpus, options.memory, spec.capacity, "capacity")
        case BrokerClusterSpec():
            paths += edit_brokers(options, change, spec)
        case WorkerClusterSpec():
            paths += _workers(options, change, spec)
        case DedicatedConnectorSpec():
            paths += edit_dedicated(options, change.unset if change else None, spec)
        case SparkClusterSpec():
            paths += edit_spark(options, change, spec)
        case TopicSpec() | ConnectorDefinitionSpec():
            paths += _applied(options, change, spec)
    return paths


def said(options: Given) -> dict[str, Any]:
    """Returns the given description and labels of a resource."""
    request = UpdatePluginRequest()
    apply(options, request)
    return {"description": request.description, "labels": dict(request.labels)}


def _applied(options: Given, change: GivenChange | None, spec: TopicSpec | ConnectorDefinitionSpec) -> Iterable[str]:
    if options.values or (change and change.unset):
        edits.edit_map("set", spec.config, options.values, change.unset if change else None)
        yield "config"
    if isinstance(spec, TopicSpec) and options.partitions is not None:
        spec.partitions = options.partitions
        yield "partitions"
    if isinstance(spec, TopicSpec) and options.replication is not None:
        spec.replication_factor = options.replication
        yield "replication_factor"


def _workers(options: Given, change: GivenChange | None, spec: WorkerClusterSpec) -> Iterable[str]:
    named = bool(options.nodes or (change and (change.add_nodes or change.remove_nodes)))
    if named and (options.count is not None or options.autoscale):
        option = "--autoscale" if options.autoscale else "--count"
        raise InvalidArgument(f"{option}: not together with --nodes: one worker runs on each of these")
    if named:
        placed = f"count ({spec.count})" if spec.count else spec.WhichOneof("placement")
        if not options.nodes and placed not in ("nodes", None):
            said = f"--add-node, --remove-node: its workers are placed by {placed}, not on named nodes: "
            raise InvalidArgument(said + "change --count or --autoscale, or name all nodes with --nodes")
        spec.nodes.names[:] = edits.edit_nodes(options.nodes, change, spec.nodes.names)
        yield "nodes"
    elif options.autoscale:
        autoscaling.edit_autoscale(options.autoscale, options.count, spec)
        yield "autoscale"
    elif options.count is not None:
        spec.count = options.count
        yield "count"
    if options.values or (change and change.unset):
        edits.edit_map("set", spec.properties, options.values, change.unset if change else None)
        yield "properties"
    if options.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(edits.selector_of(options.node_selector))
        yield "node_selector"
    if options.routes:
        edits.edit_routes(options.routes, spec.routes)
        yield "routes"
    yield from edits.edit_log_delivery(options.log_group, options.log_bucket, options.log_topic, spec.log_delivery)
    if options.reserved_ports:
        spec.reserved_ports[:] = _reserved(options)
        yield "reserved_ports"
    for name in ("port", "metrics_port", "admin_port", "https", "shared_offset_topic", "tenant", "spark_cluster"):
        if getattr(options, name) is not None:
            setattr(spec, name, getattr(options, name))
            yield name
    yield from _allowed(options, spec)
    yield from _plugins(options, change, spec)
    yield from edits.edit_limits(options.cpus, options.memory, spec.limits, "limits")


def _allowed(options: Given, spec: WorkerClusterSpec) -> Iterable[str]:
    for name in ("allowed_topics", "allowed_groups"):
        if patterns := getattr(options, name):
            getattr(spec, name)[:] = [] if patterns == ["none"] else patterns
            yield name


def _plugins(options: Given, change: GivenChange | None, spec: WorkerClusterSpec) -> Iterable[str]:
    gone = (change.remove_plugins, change.remove_libraries) if change else (None, None)
    for flag, path, present, new, old in (
        ("plugin", "plugins", spec.plugins, options.plugins, gone[0]),
        ("library", "libraries", spec.libraries, options.libraries, gone[1]),
    ):
        if new or old:
            plugin_refs.edit(flag, present, new or (), old or ())
            yield path
    if options.engine:
        spec.engine = plugin_refs.engine_of(options.engine)
        yield "engine"


def _reserved(options: Given) -> list[int]:
    texts = [] if options.reserved_ports == [edits.NONE] else options.reserved_ports or []
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgument.of("--reserved-port", text, f"a port, or {edits.NONE}")
    return [int(text) for text in texts]
