"""The limits of a node's tenants: what the workers of each may use together, with all copying for them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from keelman.model.workload import ResourceLimits

SPARK_BYTES = 512 * 2**20
"""For a tenant's Spark service itself, which its workers' limits of memory do not count."""


def tenant_limits(workers: Iterable[tuple[str, ResourceLimits]]) -> dict[str, ResourceLimits]:
    """Returns the limits of tenants from those of their workers, each with its tenant: the sum, and none where a
    worker has none."""
    limits_of: defaultdict[str, list[ResourceLimits]] = defaultdict(list)
    for tenant, limits in workers:
        limits_of[tenant].append(limits)
    return {tenant: _together(limits) for tenant, limits in limits_of.items()}


def _together(limits: list[ResourceLimits]) -> ResourceLimits:
    cpus, memory = [one.cpus for one in limits], [one.memory_bytes for one in limits]
    return ResourceLimits(sum(cpus) if all(cpus) else 0.0, sum(memory) + SPARK_BYTES if all(memory) else 0)
