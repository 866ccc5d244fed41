"""Selects the reports of a dedicated connector's workers that are about its present incarnation."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.model.cluster import ClusterState
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.workload import Workload, WorkloadKind
from keelman.state.dedicated.states import NOTHING_REPORTED, Reported
from keelman.state.reports.memberships import Memberships
from keelman.state.resources.snapshot import Snapshot


def reported_of(connector: DedicatedConnector, snapshot: Snapshot, reports: Memberships, now: datetime) -> Reported:
    """Returns its workers' last reports; nothing if they are stopped."""
    cluster = snapshot.worker_clusters.get(connector.name)
    if cluster is None or cluster.status.state is ClusterState.STOPPED:
        return NOTHING_REPORTED
    workers = snapshot.workloads_in(WorkloadKind.WORKER, connector.name)
    is_fresh, silence = reports.connectors.reported(connector.name), reports.connectors.silence(connector.name)
    in_group = any(_is_in_group(w, reports) for w in workers) if math.isfinite(silence) else None
    connector_now = _own(connector, reports.connectors.one(connector.name, connector.spec.connector))
    if connector_now is None or not (is_fresh or _is_newest(connector, snapshot, silence, now)):
        return Reported(None, is_fresh, in_group)
    return Reported(reports.with_lag(connector_now, workers), is_fresh, in_group)


def _is_in_group(worker: Workload, reports: Memberships) -> bool:
    membership = reports.recent_membership(worker)
    return membership is not None and membership.joined


def _own(connector: DedicatedConnector, connector_now: Connector | None) -> Connector | None:
    """Returns the report; None if it is of an earlier incarnation."""
    is_own = (
        connector_now is not None and bool(connector.connector_uid) and connector_now.uid == connector.connector_uid
    )
    return connector_now if is_own else None


def _is_newest(connector: DedicatedConnector, snapshot: Snapshot, silence: float, now: datetime) -> bool:
    """Returns whether the last report came after the last operation, which knew more than any report before it."""
    operation = snapshot.operations.get(connector.operation)
    if not math.isfinite(silence) or operation is None or operation.end_time is None:
        return math.isfinite(silence)
    return now - timedelta(seconds=silence) >= operation.end_time
