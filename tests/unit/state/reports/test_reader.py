"""Reports of deleted worker clusters are dropped, whichever process deleted them and whenever."""

from pathlib import Path

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, CopyRun
from keelman.api.event.v1 import report_pb2
from keelman.kafka.feed import CONNECTOR_REPORTS, COPY_RUN_REPORTS, WORKER_REPORTS, Fact
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.reports.connector_reports import SILENT_SECONDS, ConnectorReports
from keelman.state.reports.reader import Sweeper
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import WORKER_CLUSTER
from keelman.state.resources.store import ResourceStore
from support.state.stores import open_store

GONE = [("keelman.reports.connector.v1", "demo"), ("keelman.reports.connector.v1", "demo/c")]


class Told:
    """Reports of worker clusters as the topics have them, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reports = Reports(Hub(), connectors=ConnectorReports(lambda: self.now))

    def tell(self, cluster: str, *connectors: str) -> None:
        """Adds a round with all its connectors, and a copy run of each."""
        for name in connectors:
            connector = report_pb2.ConnectorReport(connector=Connector(worker_cluster=cluster, name=name), round="1")
            self._fold(CONNECTOR_REPORTS, f"{cluster}/{name}", report_pb2.Report(connector=connector))
            uid = f"{cluster}-{name}"
            copy_run = CopyRun(uid=uid, worker_cluster=cluster, connector=name, state=COPY_RUN_STATE_ENDED)
            self._fold(COPY_RUN_REPORTS, uid, report_pb2.Report(copy_run=copy_run))
        whole = report_pb2.ConnectorsReport(worker_cluster=cluster, round="1")
        self._fold(CONNECTOR_REPORTS, cluster, report_pb2.Report(connectors=whole))

    def beat(self, cluster: str) -> None:
        """Adds a report of one of its workers."""
        worker = report_pb2.WorkerReport(worker_cluster=cluster, worker_id="h:1")
        self._fold(WORKER_REPORTS, "h:1", report_pb2.Report(worker=worker))

    def _fold(self, topic: str, key: str, report: report_pb2.Report) -> None:
        self.reports.fold(Fact(topic, key, report.SerializeToString()))

    def uids(self, store: ResourceStore) -> list[str]:
        return [copy_run.uid for copy_run in self.reports.runs.all(store.snapshot)]


async def create(store: ResourceStore, name: str) -> None:
    async with store.write() as tx:
        if "default" not in tx.snapshot.broker_clusters:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        worker_clusters.create(tx, name, WorkerClusterSpec("default", count=1))


async def forget(store: ResourceStore, name: str) -> None:
    async with store.write() as tx:
        tx.drop(WORKER_CLUSTER, name)


async def swept(sweeper: Sweeper) -> list[tuple[str, str]]:
    facts = await sweeper.sweep()
    assert all(fact.value is None for fact in facts)
    return [(fact.topic, fact.key) for fact in facts]


async def test_one_that_was_deleted_before_this_process_started_is_swept(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        await create(store, "demo")
        await forget(store, "demo")
    told = Told()
    for cluster in ("demo", "foreign"):
        told.tell(cluster, "c")
    async with open_store(str(tmp_path / "state.db")) as store:
        sweeper = Sweeper(store, told.reports)
        assert await swept(sweeper) == [*GONE, (COPY_RUN_REPORTS, "demo-c")]
        assert told.uids(store) == ["foreign-c"], "another system's may be in the same topics"
        assert await swept(sweeper) == []


async def test_one_that_comes_and_goes_between_two_sweeps_is_swept_once_it_is_silent(tmp_path: Path) -> None:
    told = Told()
    async with open_store(str(tmp_path / "state.db")) as store:
        sweeper = Sweeper(store, told.reports)
        assert await swept(sweeper) == []
        with store.listening(sweeper.changed):
            await create(store, "demo")
            await forget(store, "demo")
        told.tell("demo", "c")
        told.beat("demo")
        assert await swept(sweeper) == [], "a worker of that name still reports"
        told.now += SILENT_SECONDS + 1
        assert await swept(sweeper) == [*GONE, (COPY_RUN_REPORTS, "demo-c")]
        told.tell("demo", "c")
        assert await swept(sweeper) == [*GONE, (COPY_RUN_REPORTS, "demo-c")], "last words that came late"


async def test_the_copy_runs_of_a_deleted_connector_go_with_it(tmp_path: Path) -> None:
    told = Told()
    async with open_store(str(tmp_path / "state.db")) as store:
        await create(store, "demo")
        sweeper = Sweeper(store, told.reports)
        told.tell("demo", "c", "d")
        told.reports.fold(Fact(CONNECTOR_REPORTS, "demo/c", None))
        assert await swept(sweeper) == []
        assert await swept(sweeper) == [(COPY_RUN_REPORTS, "demo-c")]
        assert told.uids(store) == ["demo-d"]
