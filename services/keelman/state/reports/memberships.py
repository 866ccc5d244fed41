"""The interface to what workers report of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from keelman.api.connect.v1 import plugin_pb2, worker_pb2
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.model.workload import Workload
from keelman.state.reports.connector_reports import ConnectorReports


class Memberships(Protocol):
    """Knows workers' reports of themselves."""

    def membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns the worker's place in its group; None while unknown."""

    def recent_membership(self, worker: Workload) -> worker_pb2.WorkerMembership | None:
        """Returns as `membership`; None also when the worker has been silent of late."""

    def usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns the worker's use of resources; None while unknown."""

    def recent_usage(self, worker: Workload) -> worker_pb2.WorkerUsage | None:
        """Returns as `usage`; None also when the worker has been silent of late."""

    def with_lag(self, connector: Connector, workers: Iterable[Workload]) -> Connector:
        """Returns a connector with the records that its cluster's workers have left to copy for it."""

    def plugins(self, worker: Workload) -> Sequence[plugin_pb2.WorkerPlugin]:
        """Returns the worker's report on its plugins, as far as it is known."""

    @property
    def connectors(self) -> ConnectorReports:
        """The connectors of workers' groups."""
