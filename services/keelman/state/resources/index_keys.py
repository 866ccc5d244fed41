"""Computes the keys under which a snapshot finds each resource, beside its name. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from keelman.model.annotations import Origin
from keelman.model.cluster import BrokerCluster, ManagedBrokers, WorkerCluster
from keelman.model.connectors.connector_definition import ConnectorDefinition
from keelman.model.connectors.dedicated_connector import FORMER_SPEC, DedicatedConnector
from keelman.model.connectors.worker_configuration import WorkerConfiguration
from keelman.model.document import Document
from keelman.model.operation import Operation
from keelman.model.plugins.plugin import Plugin
from keelman.model.plugins.plugin_import import PluginImport
from keelman.model.spark_cluster import SparkCluster
from keelman.model.topic import Topic
from keelman.model.workload import WorkerSpec, Workload
from keelman.state.kafka.kafkas import kafka_keys
from keelman.state.kafka.properties import group_of
from keelman.workers.properties.storage_topics import storage_topics_of

Key: TypeAlias = tuple[Any, ...]


def keys_of(resource: object, host_of: Callable[[str], str]) -> set[Key]:
    """Returns the index keys of a resource; none if its noun has no case here. `host_of` gives a node's host."""
    keys: set[Key] = set()
    match resource:
        case BrokerCluster():
            keys = _of_broker_cluster(resource)
        case WorkerCluster():
            keys = _of_worker_cluster(resource)
        case Workload():
            keys = _of_workload(resource, host_of(resource.node))
        case Plugin(origin=origin):
            keys = _of_origin(Plugin.NOUN, origin)
        case Document(kind=kind, scope=scope):
            keys = {("document", kind), ("document", kind, scope)}
        case Operation():
            keys = _of_operation(resource)
        case ConnectorDefinition(spec=spec):
            keys = {("definitions", spec.worker_cluster), ("connector", spec.worker_cluster, spec.connector)}
            keys |= _of_origin(resource.NOUN, spec.annotations.origin)
        case DedicatedConnector(spec=spec):
            keys = _of_origin(resource.NOUN, spec.annotations.origin)
            if spec.worker_configuration is not None:
                keys.add(("worker configuration", spec.worker_configuration.name))
        case Topic(spec=spec):
            keys = {("topics", spec.broker_cluster), ("topic resource", spec.broker_cluster, spec.topic)}
            keys |= _of_origin(resource.NOUN, spec.annotations.origin)
        case SparkCluster(spec=spec):
            keys = _of_origin(resource.NOUN, spec.annotations.origin)
            keys |= {("waits", resource.NOUN)} if resource.note else set()
        case WorkerConfiguration(annotations=annotations) | PluginImport(annotations=annotations):
            keys = _of_origin(resource.NOUN, annotations.origin)
    return keys


def _of_broker_cluster(cluster: BrokerCluster) -> set[Key]:
    noun = cluster.NOUN
    keys: set[Key] = {("waits", noun)} if cluster.note else set()
    keys |= _of_origin(noun, cluster.spec.annotations.origin) | kafka_keys(cluster)
    nodes: tuple[str, ...] = ()
    if isinstance(cluster.spec, ManagedBrokers):
        nodes = cluster.spec.nodes
        keys |= {("naming", noun, port) for port in cluster.spec.ports}
    return keys | {("pinned", noun, node) for node in nodes}


def _of_worker_cluster(cluster: WorkerCluster) -> set[Key]:
    noun, spec, brokers = cluster.NOUN, cluster.spec, cluster.spec.broker_cluster
    keys: set[Key] = {("users", brokers), ("group", brokers, group_of(cluster.name, spec.properties))}
    keys |= {("topic", brokers, topic) for topic in storage_topics_of(cluster.name, spec.properties).values()}
    keys |= {("waits", noun)} if cluster.note else set()
    keys |= {("naming", noun, port) for port in spec.ports}
    keys |= {("spark users", spec.spark_cluster)} if spec.spark_cluster else set()
    keys |= _of_origin(noun, spec.annotations.origin)
    keys |= {("plugin", key) for key in _plugins_named_by(cluster)}
    return keys | {("pinned", noun, node) for node in spec.nodes}


def _of_workload(workload: Workload, host: str) -> set[Key]:
    keys: set[Key] = {("on", workload.node)}
    if workload.cluster:
        keys.add(("in", workload.kind, workload.cluster))
    if isinstance(workload.spec, WorkerSpec):
        files = workload.spec.plugins + workload.spec.libraries
        keys |= {("loads", f"{file.name}/{file.version}") for file in files}
        keys |= {("linked", workload.spec.spark_cluster)} if workload.spec.spark_cluster else set()
    return keys | {("port", host, port) for port in (*workload.ports, *workload.tried_ports)}


def _of_operation(operation: Operation) -> set[Key]:
    target = (operation.target.noun, operation.target.name)
    keys: set[Key] = {("operations", *target)}
    if operation.has_ended:
        return keys
    former = operation.facts.get(FORMER_SPEC) or {}
    if (configuration := former.get("worker_configuration")) is not None:
        keys.add(("former worker configuration", configuration["name"]))
    return keys | {("unfinished",), ("unfinished", *target)}


def _of_origin(noun: str, origin: Origin | None) -> set[Key]:
    return set() if origin is None else {("origin", noun, origin)}


def _plugins_named_by(cluster: WorkerCluster) -> set[str]:
    """Returns the plugins of its spec, and those of its former set while its workers have that or may go back to it."""
    former, refs = cluster.plugin_history.former, cluster.spec.plugin_set.refs
    if former is not None and (cluster.went_back is not None or cluster.status.rollout is not None):
        refs += former.refs
    return {ref.key for ref in refs}
