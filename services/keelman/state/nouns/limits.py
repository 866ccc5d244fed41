"""Limits of processors and memory on the wire."""

from __future__ import annotations

from keelman.api.node.v1 import workload_pb2
from keelman.model.workload import NO_LIMITS, ResourceLimits


def limits_message(limits: ResourceLimits) -> workload_pb2.ResourceLimits | None:
    """Limits; None where there is none."""
    if limits == NO_LIMITS:
        return None
    return workload_pb2.ResourceLimits(cpus=limits.cpus, memory_bytes=limits.memory_bytes)


def limits_of(message: workload_pb2.ResourceLimits) -> ResourceLimits:
    """Limits; those of an absent message are none."""
    return ResourceLimits(message.cpus, message.memory_bytes)
