"""Translates dedicated connectors between the model and the wire."""

from __future__ import annotations

from keelman.api.connect.v1 import dedicated_connector_pb2, operation_pb2
from keelman.model.connectors.dedicated_connector import FORMER_SPEC, WANTED_SPEC, Capacity, DedicatedConnectorSpec
from keelman.model.errors import InvalidArgument
from keelman.model.operation import Operation
from keelman.rpc.mapping import message_of, value_of
from keelman.state.plugins.sets import plugin_fields
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.autoscale_wire import autoscale_message, autoscale_of
from keelman.state.resources.hidden import shown_spec
from keelman.state.resources.limits import limits_message
from keelman.state.resources.log_delivery import delivery_message, delivery_of
from keelman.state.resources.rows import read


def spec_message(stored_spec: DedicatedConnectorSpec) -> dedicated_connector_pb2.DedicatedConnectorSpec:
    """Returns the message of a dedicated connector's spec, complete."""
    spec = message_of(
        dedicated_connector_pb2.DedicatedConnectorSpec,
        stored_spec,
        broker_cluster=None,  # that is one kind of brokers, below
        capacity=_capacity_message(stored_spec.capacity),
        log_delivery=delivery_message(stored_spec.log_delivery),
        **annotated(stored_spec.annotations),
    )
    if stored_spec.broker_cluster:
        spec.broker_cluster = stored_spec.broker_cluster
    elif stored_spec.bootstrap_servers:
        spec.external.bootstrap_servers = stored_spec.bootstrap_servers
        spec.external.client_properties.update(stored_spec.client_properties)
    return spec


def spec_of(message: dedicated_connector_pb2.DedicatedConnectorSpec) -> DedicatedConnectorSpec:
    """Returns the spec of a message. Raises InvalidArgument for an unknown engine, and for a credential profile, which
    only broker clusters have."""
    if profile := message.external.credential_profile:
        legal = "empty: create a broker cluster with it, and name that as spec.broker_cluster"
        raise InvalidArgument.of("spec.external.credential_profile", profile, legal)
    return value_of(
        DedicatedConnectorSpec,
        message,
        bootstrap_servers=message.external.bootstrap_servers,
        client_properties=dict(message.external.client_properties),
        capacity=_capacity_of(message.capacity),
        **plugin_fields(message),
        log_delivery=delivery_of(message.log_delivery),
        annotations=annotations_of(message),
    )


def _capacity_message(capacity: Capacity) -> dedicated_connector_pb2.DedicatedCapacity:
    message = dedicated_connector_pb2.DedicatedCapacity(worker_limits=limits_message(capacity.worker_limits))
    if capacity.autoscale is not None:
        message.autoscale.CopyFrom(autoscale_message(capacity.autoscale))
    else:
        message.count = capacity.count
    return message


def _capacity_of(message: dedicated_connector_pb2.DedicatedCapacity) -> Capacity:
    autoscale = autoscale_of(message.autoscale) if message.HasField("autoscale") else None
    return value_of(Capacity, message, autoscale=autoscale)


def change_message(operation: Operation) -> operation_pb2.DedicatedConnectorChange | None:
    """Returns the change of spec by an operation, secrets hidden; None if it changes no spec."""
    if FORMER_SPEC not in operation.facts:
        return None
    former, new = (
        spec_message(shown_spec(read(DedicatedConnectorSpec, operation.facts[key])))
        for key in (FORMER_SPEC, WANTED_SPEC)
    )
    return operation_pb2.DedicatedConnectorChange(former=former, wanted=new)
