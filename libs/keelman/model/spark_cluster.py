"""Spark clusters: a Spark that runs tasks for workers of any node, by drivers that keelman places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.resource import Resource

DRIVERS, MAX_DRIVERS = 2, 4
"""The number of drivers of a cluster whose spec has none, and the most."""
MIN_HEAP_MB = 480
"""The least heap that Spark gives an executor, in MiB."""


@dataclass(frozen=True, slots=True)
class SparkClusterSpec:
    """A Spark cluster as the user wants it. 0 and empty values of executors mean the defaults of the nodes'
    settings."""

    master: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties for Spark, as in spark-defaults.conf."""
    drivers: int = 0
    """The number of drivers; 0: two, a driver and its standby."""
    nodes: tuple[str, ...] = ()
    """The nodes that may run its drivers; none: every node."""
    executor_cores: int = 0
    executor_memory_mb: int = 0
    executor_python: str = ""
    tenant: str = ""
    """The only tenant whose worker clusters may name it; empty: every worker cluster may."""
    annotations: Annotations = NO_ANNOTATIONS

    @property
    def wanted_drivers(self) -> int:
        """The number of drivers that it should have."""
        return self.drivers or DRIVERS


@dataclass(frozen=True, slots=True)
class SparkCluster(Resource):
    """A Spark with drivers on keelman's nodes. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "spark_cluster"

    generation: int
    etag: str
    spec: SparkClusterSpec
    note: str = ""
    """What keeps the planner from placing all of its drivers, for people; empty when nothing does."""

    @property
    def tenant(self) -> str:
        """The tenant that its drivers belong to, as of worker clusters; empty if it serves every tenant."""
        return f"+{self.spec.tenant}" if self.spec.tenant else ""
