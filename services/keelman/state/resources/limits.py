"""Translates limits of processors and memory between the model and the wire."""

from __future__ import annotations

from keelman.api.node.v1 import workload_pb2
from keelman.model.workload import NO_LIMITS, ResourceLimits
from keelman.rpc.mapping import message_of


def limits_message(limits: ResourceLimits) -> workload_pb2.ResourceLimits | None:
    """Limits on the wire; None where there is none. An absent message are none."""
    return None if limits == NO_LIMITS else message_of(workload_pb2.ResourceLimits, limits)
