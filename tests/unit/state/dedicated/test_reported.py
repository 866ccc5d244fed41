"""The state that is derived from the reports of a dedicated connector's workers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, Connector
from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.api.event.v1 import report_pb2 as pb
from keelman.kafka.feed import CONNECTOR_REPORTS, WORKER_REPORTS, Fact
from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec, WorkerClusterStatus
from keelman.model.connectors.dedicated_connector import DedicatedConnector, DedicatedConnectorSpec
from keelman.model.node import Node, NodeState
from keelman.model.operation import Operation, OperationKind, OperationState, OperationTarget
from keelman.model.workload import Goal, ProcessState, WorkerSpec, Workload, WorkloadStatus
from keelman.rpc.times import to_timestamp
from keelman.state.dedicated.reported import reported_of
from keelman.state.dedicated.states import NOTHING_REPORTED, Reported
from keelman.state.reports.connector_reports import SILENT_SECONDS, ConnectorReports
from keelman.state.reports.reports import Reports
from support.state.snapshots import snapshot_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = DedicatedConnector(
    "one", "u", NOW, NOW, 1, DedicatedConnectorSpec("c"), operation="op-1", connector_uid="now"
)  # fmt: skip
CLUSTER = WorkerCluster(
    "one", "w", NOW, NOW, 1, "", ClusterGoal.RUNNING, WorkerClusterSpec("b", count=1),
    status=WorkerClusterStatus(ClusterState.RUNNING, ready_workers=1),
)  # fmt: skip
WORKER = Workload(
    "worker/one/0", "n1", 1, Goal.RUNNING, WorkerSpec("one", "h", 1, {}, ""),
    status=WorkloadStatus(ProcessState.RUNNING, 1),
)  # fmt: skip


class Told:
    """A worker's reports and the state derived from them, with one clock for both."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.reports = Reports(Mock(), connectors=ConnectorReports(lambda: self.seconds))

    def tell(self, *, uid: str = "now", joined: bool = True, worker: str = "h:1") -> None:
        """Adds a leader's report: its membership, and its one connector, which has failed."""
        connector = Connector(worker_cluster="one", name="c", state=CONNECTOR_STATE_FAILED, uid=uid)
        place = pb.WorkerReport(worker_cluster="one", worker_id=worker, membership=WorkerMembership(joined=joined))
        self._fold(CONNECTOR_REPORTS, "one/c", connector=pb.ConnectorReport(connector=connector, round="1"))
        self._fold(CONNECTOR_REPORTS, "one", connectors=pb.ConnectorsReport(worker_cluster="one", round="1"))
        self._fold(WORKER_REPORTS, worker, worker=place)

    def _fold(self, topic: str, key: str, **subject: object) -> None:
        report = pb.Report(time=to_timestamp(self.now), **subject)  # type: ignore[arg-type]
        self.reports.fold(Fact(topic, key, report.SerializeToString()))

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def seen(
        self, cluster: WorkerCluster = CLUSTER, *, node: NodeState = NodeState.ONLINE, ended: datetime | None = None
    ) -> Reported:
        """Returns the derived state; `ended` is the end of the last operation, None if none is stored."""
        nodes = {"n1": Node("n1", "n1", NOW, NOW, node, "h:1")}
        snapshot = snapshot_of(nodes, {}, {"one": cluster}, {WORKER.name: WORKER})
        if ended is not None:
            target = OperationTarget("dedicated_connector", "one")
            snapshot.put(
                Operation(
                    "op-1", "o", NOW, NOW, OperationKind.RESTART, target, (), state=OperationState.SUCCEEDED,
                    end_time=ended,
                )
            )  # fmt: skip
        return reported_of(ONE, snapshot, self.reports, self.now)


@pytest.fixture
def told() -> Told:
    return Told()


def test_before_the_first_report_nothing_is_known(told: Told) -> None:
    assert told.seen() == NOTHING_REPORTED


def test_workers_that_report_are_asked_for_their_place_in_the_group(told: Told) -> None:
    told.tell()
    seen = told.seen()
    assert seen.connector is not None
    assert (seen.is_fresh, seen.in_group) == (True, True)
    assert told.seen(node=NodeState.OFFLINE).in_group is True, "it reports itself"
    told.tell(joined=False)
    assert told.seen().in_group is False


def test_a_worker_that_is_silent_is_in_no_group_whatever_another_reports(told: Told) -> None:
    told.tell()
    told.seconds = SILENT_SECONDS + 1
    told.tell(joined=False, worker="h:2")
    assert (told.seen().is_fresh, told.seen().in_group) == (True, False)


def test_the_last_report_of_workers_that_are_silent_is_kept(told: Told) -> None:
    told.tell()
    told.seconds = SILENT_SECONDS + 1
    seen = told.seen(ended=NOW)
    assert seen.connector is not None
    assert (seen.is_fresh, seen.in_group) == (False, False)
    assert told.seen().connector is not None, "the operation may be forgotten"
    assert told.seen(ended=NOW + timedelta(seconds=1)).connector is None, "the operation knew better"


def test_reports_of_another_incarnation_and_of_workers_that_are_stopped_count_for_nothing(told: Told) -> None:
    told.tell(uid="before")
    assert told.seen() == Reported(None, is_fresh=True, in_group=True)
    told.tell()
    stopped = replace(CLUSTER, status=WorkerClusterStatus(ClusterState.STOPPED))
    assert told.seen(stopped) == NOTHING_REPORTED
