"""Checks a request as far as possible without a call to another service."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from google.protobuf.message import Message

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.model.document import check_document_key, check_scope
from keelman.model.errors import InvalidArgument, Violation
from keelman.model.plugins.plugin import checked_version
from keelman.model.rules.field_checks import check_count, check_labels, check_limits, check_port, check_routes
from keelman.model.rules.names import checked_name, checked_request_id
from keelman.model.topic import check_topic_counts, checked_topic
from keelman.rpc.batches import methods_in
from keelman.rpc.masks import masked
from keelman.rpc.pages import page_limit

# Services whose `name` is a name that users choose; workers and workloads have composed ones.
NAMED = frozenset(
    {
        "keelman.api.node.v1.NodeService",
        "keelman.api.connect.v1.BrokerClusterService",
        "keelman.api.connect.v1.WorkerClusterService",
        "keelman.api.connect.v1.SparkClusterService",
        "keelman.api.connect.v1.TopicService",
        "keelman.api.connect.v1.ConnectorDefinitionService",
        "keelman.api.connect.v1.DedicatedConnectorService",
        "keelman.api.connect.v1.WorkerConfigurationService",
        "keelman.api.connect.v1.PluginImportService",
    }
)
UNNAMED = ("CreateDedicatedConnector", "")
"""A create without a name, for which the state service generates one."""
OF_CLUSTER = {
    "CreateWorkerCluster": "broker_cluster",
    "CreateTopic": "broker_cluster",
    "CreateConnectorDefinition": "worker_cluster",
}
"""Creates whose spec must name a cluster."""
FILTERS = ("node", "worker_cluster", "broker_cluster")
DOCUMENTS = "keelman.api.connect.v1.DocumentService"
BATCHES = "keelman.api.connect.v1.BatchService"
PLUGINS = "keelman.api.connect.v1.PluginService"
WATCHES = "keelman.api.event.v1.WatchService"  # its `name` is a filter too, of any noun


def check(service: str, method: str, request: Message) -> None:
    """Raises InvalidArgument for an illegal name, id, page size or spec; called for every forwarded request."""
    if service == BATCHES:
        _check_batch(request)
    else:
        _check_one(service, method, request)


def _check_one(service: str, method: str, request: Message) -> None:
    fields = request.DESCRIPTOR.fields_by_name
    value_of = partial(getattr, request)
    if "page_size" in fields:
        page_limit(value_of("page_size"))
    if service == PLUGINS and method != "ListWorkerPlugins":
        _check_plugin(method, request)
    elif service == DOCUMENTS:
        _check_document(method, request)
    elif "name" in fields and service not in (PLUGINS, WATCHES) and (method, value_of("name")) != UNNAMED:
        if service in NAMED:
            checked_name("name", value_of("name"))
        elif not value_of("name"):
            raise InvalidArgument.of("name", "", "not empty")
    for field in FILTERS:
        if field in fields and value_of(field):
            checked_name(field, value_of(field))
    if "labels" in fields:
        check_labels("labels", value_of("labels"))
    if "request_id" in fields:
        checked_request_id("request_id", value_of("request_id"))
    if service in NAMED and "spec" in fields:
        spec, mask = value_of("spec"), getattr(request, "update_mask", None)
        _check_spec(spec if mask is None else masked(type(spec)(), spec, mask))
    if cluster := OF_CLUSTER.get(method):
        checked_name(f"spec.{cluster}", getattr(value_of("spec"), cluster))


def _check_batch(request: Any) -> None:
    """Checks each request in a batch. Raises InvalidArgument with the place of each illegal request."""
    checked_request_id("request_id", request.request_id)
    wrong: list[Violation] = []
    for number, method in enumerate(methods_in(request)):
        try:
            _check_one(method.service, method.method, method.request)
        except InvalidArgument as error:
            wrong.append(Violation(f"writes[{number}]", f"writes[{number}].{error.message}"))
    if wrong:
        raise InvalidArgument.of_all(wrong)


def _check_plugin(method: str, request: Any) -> None:
    """Checks the names in a request about plugins; for an upload the names in its header."""
    named, field = (request.header, "header.") if method == "UploadPlugin" else (request, "")
    if named.name or method not in ("UploadPlugin", "ListPlugins"):
        checked_name(f"{field}name", named.name)
    if method != "ListPlugins" and (named.version or method in ("UpdatePlugin", "DeletePlugin")):
        checked_version(f"{field}version", named.version)


def _check_document(method: str, request: Any) -> None:
    """Checks the key of the document in a request; a list may leave parts of it open."""
    if method == "ListDocuments":
        if request.kind:
            checked_name("kind", request.kind)
        check_scope("scope", request.scope)
        return
    document, prefix = (request.document, "document.") if method == "PutDocument" else (request, "")
    check_document_key(prefix, document.kind, document.scope, document.key)


def _check_spec(spec: Any) -> None:
    """Checks the spec of a create or an update: each field by itself."""
    check_labels("spec.labels", spec.labels)
    match spec:
        case WorkerClusterSpec():
            _check_worker_cluster(spec)
        case BrokerClusterSpec():
            _check_names("spec.managed.nodes", spec.managed.nodes)
            check_port("spec.managed.port", spec.managed.port, zero="a free one on each node")
            check_port("spec.managed.metrics_port", spec.managed.metrics_port, zero="none")
        case TopicSpec():
            check_topic_counts("spec", spec.partitions, spec.replication_factor)
            if spec.topic:
                checked_topic("spec.topic", spec.topic)
        case SparkClusterSpec():
            _check_names("spec.nodes", spec.nodes)
        case NodeSpec():
            check_limits("spec.capacity", spec.capacity.cpus, spec.capacity.memory_bytes)


def _check_worker_cluster(spec: WorkerClusterSpec) -> None:
    _check_names("spec.nodes.names", spec.nodes.names)
    if spec.spark_cluster:
        checked_name("spec.spark_cluster", spec.spark_cluster)
    check_count("spec.count", spec.count)
    check_labels("spec.node_selector", spec.node_selector)
    check_limits("spec.limits", spec.limits.cpus, spec.limits.memory_bytes)
    check_port("spec.port", spec.port, zero="a free one on each node")
    check_port("spec.metrics_port", spec.metrics_port, zero="none")
    check_port("spec.admin_port", spec.admin_port, zero="none")
    check_routes("spec.routes", spec.routes)
    for number, port in enumerate(spec.reserved_ports):
        check_port(f"spec.reserved_ports[{number}]", port)


def _check_names(field: str, names: Iterable[str]) -> None:
    for number, name in enumerate(names):
        checked_name(f"{field}[{number}]", name)
