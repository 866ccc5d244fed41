"""Sets the fields of a spec from the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable
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
from keelman.cli import autoscaling, plugin_refs
from keelman.cli.configuration import pairs
from keelman.cli.kinds import Kind
from keelman.cli.options import check_meant
from keelman.cli.sizes import size_of
from keelman.cli.specs import edits
from keelman.cli.specs.broker_fields import edit_brokers
from keelman.cli.specs.dedicated_fields import edit_dedicated
from keelman.cli.specs.options import Given, GivenChange
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


def check_given(kind: Kind, given: Given) -> bool:
    """Tells whether any option was given. Raises InvalidArgument for an option that is not for this kind, and for a
    text that is never legal."""
    found = check_meant(kind, given)
    pairs("--label", given.labels or ())
    pairs("--set", given.values or ())
    edits.selector_of(given.node_selector)
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
        edits.edit_map("label", spec.labels, given.labels, change.unlabel if change else None)
        paths.append("labels")
    match spec:
        case NodeSpec():
            paths += edits.edit_limits(given.cpus, given.memory, spec.capacity, "capacity")
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
        edits.edit_map("set", spec.config, given.values, change.unset if change else None)
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
        spec.nodes.names[:] = edits.edit_nodes(given.nodes, change, spec.nodes.names)
        yield "nodes"
    elif given.autoscale:
        autoscaling.edit_autoscale(given.autoscale, given.count, spec)
        yield "autoscale"
    elif given.count is not None:
        spec.count = given.count
        yield "count"
    if given.values or (change and change.unset):
        edits.edit_map("set", spec.properties, given.values, change.unset if change else None)
        yield "properties"
    if given.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(edits.selector_of(given.node_selector))
        yield "node_selector"
    if given.routes:
        edits.edit_routes(given.routes, spec.routes)
        yield "routes"
    yield from edits.edit_log_delivery(given.log_group, given.log_bucket, given.log_topic, spec.log_delivery)
    if given.reserved_ports:
        spec.reserved_ports[:] = _reserved(given)
        yield "reserved_ports"
    for name in ("port", "metrics_port", "admin_port", "https", "shared_offset_topic"):
        if getattr(given, name) is not None:
            setattr(spec, name, getattr(given, name))
            yield name
    yield from _plugins(given, change, spec)
    yield from edits.edit_limits(given.cpus, given.memory, spec.limits, "limits")


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
    texts = [] if given.reserved_ports == [edits.NONE] else given.reserved_ports or []
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgument.of("--reserved-port", text, f"a port, or {edits.NONE}")
    return [int(text) for text in texts]
