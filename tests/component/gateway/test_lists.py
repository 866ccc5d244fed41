"""Lists of connectors come from reports: no request reaches a worker, and a connector just written is in them."""

from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import connector_service_pb2 as wire
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.api.connect.v1.worker_service_pb2_grpc import WorkerServiceStub
from keelman.api.event.v1.report_pb2 import (
    ConnectorLag,
    ConnectorReport,
    ConnectorsReport,
    LagReport,
    Report,
    WorkerReport,
    WorkerUsage,
)
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING
from keelman.kafka.feed import CONNECTOR_REPORTS, WORKER_REPORTS, ReportPublisher
from keelman.rpc.channels import Channel, channel
from keelman.rpc.times import to_duration
from keelman.runtime.logs.redaction import HIDDEN
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component
SOURCE = {"connector.class": "FileStreamSource", "file": "/data/in", "topic": "t", "a.password": "canary"}


class Leader:
    """Reports as the leader of a worker cluster does."""

    def __init__(self, publisher: ReportPublisher, worker_id: str, cluster: str = "demo") -> None:
        self.publisher, self.worker_id, self.cluster, self.cpu = publisher, worker_id, cluster, 0.0

    def _publish(self, topic: str, key: str, **subject: object) -> None:
        now = Timestamp()
        now.GetCurrentTime()
        self.publisher.publish(topic, key, Report(time=now, name=key, **subject).SerializeToString())

    def alive(self) -> None:
        self.cpu += 0.5
        usage = WorkerUsage(cpu_time=to_duration(self.cpu), memory_bytes=7, lag_records=3)
        about = WorkerReport(worker_cluster=self.cluster, worker_id=self.worker_id, usage=usage)
        about.membership.CopyFrom(WorkerMembership(joined=True, leader=True))
        self._publish(WORKER_REPORTS, self.worker_id, worker=about)

    def lags(self, **records: int) -> None:
        lags = [ConnectorLag(connector=name.replace("_", "-"), records=count) for name, count in records.items()]
        about = LagReport(worker_cluster=self.cluster, worker_id=self.worker_id, connectors=lags)
        self._publish(WORKER_REPORTS, f"{self.worker_id}/lag", lags=about)

    def tell(self, name: str, state: int = CONNECTOR_STATE_RUNNING) -> None:
        connector = Connector(worker_cluster=self.cluster, name=name, state=state, config={"topic": "t"})
        self._publish(
            CONNECTOR_REPORTS, f"{self.cluster}/{name}", connector=ConnectorReport(connector=connector, round="1")
        )

    def close(self) -> None:
        about = ConnectorsReport(worker_cluster=self.cluster, round="1")
        self._publish(CONNECTOR_REPORTS, self.cluster, connectors=about)


async def demo_runs(gateway: Channel, bootstrap: str, name: str = "demo") -> str:
    """Creates a worker cluster of this name whose events are on this broker; returns its worker's address."""
    external = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers=bootstrap))
    await BrokerClusterServiceStub(gateway).CreateBrokerCluster(
        brokers.CreateBrokerClusterRequest(name="default", spec=external)
    )
    stub = WorkerClusterServiceStub(gateway)
    spec = WorkerClusterSpec(broker_cluster="default", count=1)

    async def created() -> bool:
        try:
            await stub.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name=name, spec=spec))
        except Exception:  # no node has registered yet
            return False
        return True

    await eventually(created)
    await stub.StartWorkerCluster(clusters.StartWorkerClusterRequest(name=name))

    async def found() -> str:
        listed = await WorkerServiceStub(gateway).ListWorkers(workers.ListWorkersRequest())
        running = [w for w in listed.workers if w.process.state == WORKLOAD_STATE_RUNNING]
        return running[0].rest_url if running else ""

    return await eventually(found)


async def test_a_list_asks_no_worker_whose_connectors_are_reported(bootstrap: str, tmp_path: Path) -> None:
    async with running_system(tmp_path) as system, channel(system.gateway.address) as gateway:
        url = await demo_runs(gateway, bootstrap)
        stub, worker = ConnectorServiceStub(gateway), system.worker("worker/demo/0")

        async def names(**fields: object) -> list[str]:
            answer = await stub.ListConnectors(wire.ListConnectorsRequest(**fields))
            assert not answer.unreachable
            return [c.name for c in answer.connectors]

        async def create(name: str) -> None:
            await stub.CreateConnector(wire.CreateConnectorRequest(worker_cluster="demo", name=name, config=SOURCE))

        worker.connectors["early"] = SOURCE
        list_connectors = await stub.ListConnectors(wire.ListConnectorsRequest())
        assert [(c.name, c.config["a.password"]) for c in list_connectors.connectors] == [("early", HIDDEN)]
        async with ReportPublisher(bootstrap, "test") as publisher:
            leader = Leader(publisher, url.removeprefix("http://"))
            for number in range(5):
                leader.tell(f"c-{number}", CONNECTOR_STATE_FAILED if number == 3 else CONNECTOR_STATE_RUNNING)
            leader.close()
            leader.alive()
            everything = ["c-0", "c-1", "c-2", "c-3", "c-4"]

            async def reported() -> bool:
                return await names() == everything

            await eventually(reported, what="the list has the reported values")
            leader.lags(c_0=17, c_1=0)

            async def lags() -> bool:
                answer = await stub.ListConnectors(wire.ListConnectorsRequest(page_size=3))
                lag_records = [c.lag_records if c.HasField("lag_records") else None for c in answer.connectors]
                return lag_records == [17, 0, None] and not any(c.HasField("lag_bytes") for c in answer.connectors)

            await eventually(lags, what="the list has the lag of each connector")
            worker.asked.clear()
            assert await names(state=CONNECTOR_STATE_FAILED) == ["c-3"]
            assert await names(page_size=2, worker_cluster="demo") == ["c-0", "c-1"]
            await create("c-11")
            assert "c-11" in await names()
            await stub.DeleteConnector(wire.DeleteConnectorRequest(worker_cluster="demo", name="c-11"))
            assert "c-11" not in await names()
            assert [target for method, target in worker.asked if b"?expand" in target] == []

            async def used() -> bool:
                leader.alive()
                get_worker = await WorkerServiceStub(gateway).GetWorker(workers.GetWorkerRequest(name="demo/0"))
                usage = get_worker.worker.usage
                return usage.cpus > 0 and (usage.memory_bytes, usage.lag_records) == (7, 3)

            await eventually(used, what="the worker's usage is shown")
