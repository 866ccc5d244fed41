"""Translates limits of processors and memory between the model and the wire."""

from __future__ import annotations

from keelman.api.node.v1 import workload_pb2
from keelman.model.workload import NO_LIMITS, ResourceLimits
from keelman.rpc.mapping import message_of


def limits_message(limits: ResourceLimits) -> workload_pb2.ResourceLimits | None:
    """Returns the message of limits; None if there are none. An absent message means no limits."""
    return None if limits == NO_LIMITS else message_of(workload_pb2.ResourceLimits, limits)
