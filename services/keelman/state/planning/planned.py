"""The interface to the planner's progress."""

from __future__ import annotations

from typing import Protocol

from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.spark_cluster import SparkCluster


class Planned(Protocol):
    """Knows the planner's progress."""

    def observed(self, cluster: BrokerCluster | WorkerCluster | SparkCluster) -> int:
        """Returns the newest generation of a cluster that has been planned."""
