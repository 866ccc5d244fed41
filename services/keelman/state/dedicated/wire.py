"""Dedicated connectors on the wire."""

from __future__ import annotations

import dataclasses

from keelman.api.connect.v1 import dedicated_connector_pb2, operation_pb2, plugin_pb2, worker_cluster_pb2
from keelman.model.dedicated_connector import Capacity, DedicatedConnectorSpec, WorkerConfigurationRef
from keelman.model.operation import Operation
from keelman.model.plugin_set import PluginRef
from keelman.state.autoscaling.wire import autoscale_message, autoscale_of
from keelman.state.nouns.clusters import annotate, annotations_of
from keelman.state.nouns.hidden import shown_spec
from keelman.state.nouns.limits import limits_message, limits_of
from keelman.state.nouns.log_delivery import delivery_message, delivery_of
from keelman.state.nouns.plugin_sets import engine_of
from keelman.state.nouns.rows import read_spec

FORMER_SPEC, WANTED_SPEC = "former_spec", "wanted_spec"
"""Facts of an operation that updates: the specs, as they are stored."""


def spec_message(wanted: DedicatedConnectorSpec) -> dedicated_connector_pb2.DedicatedConnectorSpec:
    """What a user wants of a dedicated connector, on the wire, complete."""
    spec = dedicated_connector_pb2.DedicatedConnectorSpec(
        connector=wanted.connector,
        config=dict(wanted.config),
        capacity=_capacity_message(wanted.capacity),
        plugins=[_ref_message(ref) for ref in wanted.plugins],
        libraries=[_ref_message(ref) for ref in wanted.libraries],
        properties=dict(wanted.properties),
        node_selector=dict(wanted.node_selector),
        topic_prefix=wanted.topic_prefix,
        topic_suffix=wanted.topic_suffix,
        engine=worker_cluster_pb2.WorkerEngine.Value(f"WORKER_ENGINE_{wanted.engine}"),
        log_delivery=delivery_message(wanted.log_delivery),
    )
    if wanted.broker_cluster:
        spec.broker_cluster = wanted.broker_cluster
    elif wanted.bootstrap_servers:
        spec.external.bootstrap_servers = wanted.bootstrap_servers
        spec.external.client_properties.update(wanted.client_properties)
    if (ref := wanted.worker_configuration) is not None:
        spec.worker_configuration.name, spec.worker_configuration.revision = ref.name, ref.revision
    annotate(spec, wanted.annotations)
    return spec


def spec_of(message: dedicated_connector_pb2.DedicatedConnectorSpec) -> DedicatedConnectorSpec:
    """What a user wants of a dedicated connector. Raises InvalidArgument for an unknown engine."""
    ref = message.worker_configuration
    return DedicatedConnectorSpec(
        connector=message.connector,
        config=dict(message.config),
        broker_cluster=message.broker_cluster,
        bootstrap_servers=message.external.bootstrap_servers,
        client_properties=dict(message.external.client_properties),
        capacity=_capacity_of(message.capacity),
        plugins=tuple(PluginRef(one.name, one.version, one.sha256.lower()) for one in message.plugins),
        libraries=tuple(PluginRef(one.name, one.version, one.sha256.lower()) for one in message.libraries),
        worker_configuration=(
            WorkerConfigurationRef(ref.name, ref.revision) if message.HasField("worker_configuration") else None
        ),
        properties=dict(message.properties),
        node_selector=dict(message.node_selector),
        topic_prefix=message.topic_prefix,
        topic_suffix=message.topic_suffix,
        engine=engine_of(message.engine),
        log_delivery=delivery_of(message.log_delivery),
        annotations=annotations_of(message),
    )


def _capacity_message(wanted: Capacity) -> dedicated_connector_pb2.DedicatedCapacity:
    made = dedicated_connector_pb2.DedicatedCapacity(worker_limits=limits_message(wanted.worker_limits))
    if wanted.autoscale is not None:
        made.autoscale.CopyFrom(autoscale_message(wanted.autoscale))
    else:
        made.count = wanted.count
    return made


def _capacity_of(message: dedicated_connector_pb2.DedicatedCapacity) -> Capacity:
    autoscale = autoscale_of(message.autoscale) if message.HasField("autoscale") else None
    return Capacity(message.count, limits_of(message.worker_limits), autoscale)


def change_message(operation: Operation) -> operation_pb2.DedicatedConnectorChange | None:
    """What an operation changes, secrets hidden; None where it changes no spec."""
    if FORMER_SPEC not in operation.facts:
        return None
    former, wanted = (
        spec_message(shown_spec(read_spec(DedicatedConnectorSpec, operation.facts[key])))
        for key in (FORMER_SPEC, WANTED_SPEC)
    )
    return operation_pb2.DedicatedConnectorChange(former=former, wanted=wanted)


def _ref_message(ref: PluginRef) -> plugin_pb2.PluginRef:
    return plugin_pb2.PluginRef(**dataclasses.asdict(ref))
