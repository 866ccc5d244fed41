"""The state service over real gRPC with a real database file: clusters, placements, refusals."""

from __future__ import annotations

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1 import worker_cluster_pb2, worker_service_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers_pb
from keelman.api.node.v1 import workload_pb2
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from support.eventually import eventually
from support.state.clusters import STATE, gone, in_state, is_degraded
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component


@pytest.fixture
async def clients(tmp_path):
    async with state_in_loop(tmp_path) as (state, _):
        yield state


async def test_from_nothing_to_running_workers_and_back(clients: Clients) -> None:
    async with Agent(clients, "n1") as agent:
        cluster = await clients.create_managed("default", "n1")
        assert cluster.generation == 1
        assert cluster.status.state == STATE.CLUSTER_STATE_STARTING
        assert len(cluster.status.kafka_cluster_id) == 22
        await clients.create_workers("demo", count=2, properties={"offset.flush.interval.ms": "5000"})
        stopped = await clients.worker_cluster("demo")
        assert stopped.status.state == STATE.CLUSTER_STATE_STOPPED
        assert stopped.status.group_id == "keelman-demo"
        await clients.start_workers("demo")
        running = await in_state(clients, "demo", "RUNNING")
        assert running.status.ready_workers == running.status.wanted_workers == 2
        assert list(running.status.rest_urls) == ["http://127.0.0.1:8083", "http://127.0.0.1:8084"]
        assert sorted(agent.workloads) == ["broker/default/0", "spark/n1", "worker/demo/0", "worker/demo/1"]
        broker = agent.workloads["broker/default/0"].spec.broker
        worker = agent.workloads["worker/demo/1"].spec.worker
        assert (broker.port, broker.controller_port) == (9092, 9093)
        assert worker.spark_address == "127.0.0.1:7430"
        assert worker.reports_bootstrap_servers == "127.0.0.1:9092"
        assert dict(worker.properties) == {
            "bootstrap.servers": "127.0.0.1:9092",
            "listeners": "http://127.0.0.1:8084",
            "group.id": "keelman-demo",
            "config.storage.topic": "demo.connect-configs",
            "offset.storage.topic": "demo.connect-offsets",
            "status.storage.topic": "demo.connect-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "offset.flush.interval.ms": "5000",
        }
        assert (await clients.broker_cluster("default")).status.bootstrap_servers == "127.0.0.1:9092"

        with pytest.raises(FailedPrecondition, match="worker clusters demo run on broker cluster 'default'"):
            await clients.brokers.StopBrokerCluster(brokers_pb.StopBrokerClusterRequest(name="default"))
        with pytest.raises(FailedPrecondition, match="used by worker clusters demo"):
            await clients.brokers.DeleteBrokerCluster(brokers_pb.DeleteBrokerClusterRequest(name="default"))

        await clients.stop_workers("demo")
        await in_state(clients, "demo", "STOPPED")
        await clients.delete_workers("demo")
        await eventually(lambda: gone(clients.worker_cluster("demo")))
        await eventually(lambda: sorted(agent.workloads) == ["broker/default/0"])
        await clients.brokers.DeleteBrokerCluster(brokers_pb.DeleteBrokerClusterRequest(name="default"))
        await eventually(lambda: gone(clients.broker_cluster("default")))
        await eventually(lambda: not agent.workloads)


async def test_a_repeated_create_gets_the_first_answer(clients: Clients) -> None:
    async with Agent(clients, "n1"):
        first = await clients.create_managed("default", "n1", request_id="r1")
        await eventually(lambda: has_etag_other_than(clients, first.etag))
        assert await clients.create_managed("default", "n1", request_id="r1") == first
        with pytest.raises(AlreadyExists, match="'default' exists already"):
            await clients.create_managed("default", "n1", request_id="r2")
        spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="default", count=1)
        with pytest.raises(InvalidArgument, match="was used for CreateBrokerCluster"):
            await clients.clusters.CreateWorkerCluster(
                workers_pb.CreateWorkerClusterRequest(name="demo", spec=spec, request_id="r1")
            )


async def has_etag_other_than(clients: Clients, etag: str) -> bool:
    return (await clients.broker_cluster("default")).etag != etag


async def test_writes_answer_notes_on_the_properties_that_they_set(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    fields = {"keelman.cpu": "1", "zzz": "secret", "connect.protocol": "eager", "keelman.memory.bytes": "100000000"}
    spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="ext", count=1, properties=fields)
    create = workers_pb.CreateWorkerClusterRequest(name="demo", spec=spec, request_id="r1")
    for _ in range(2):  # the second time it is the first one's answer
        assert (await clients.clusters.CreateWorkerCluster(create)).notes == [
            "connect.protocol: ignored: all workers of a group speak keelman's own protocol",
            "keelman.cpu: unknown, did you mean keelman.cpus?",
            "zzz: unknown, nothing reads it",
        ]
    spec.properties.update({"zzz": "other", "plugin.discover": "only_scan", "topic.tracking.enable": "false"})
    change = workers_pb.UpdateWorkerClusterRequest(name="demo", spec=spec, update_mask=FieldMask(paths=["properties"]))
    assert (await clients.clusters.UpdateWorkerCluster(change)).notes == [
        "plugin.discover: unknown, nothing reads it",
        "zzz: unknown, nothing reads it",
    ]
    assert (await clients.clusters.UpdateWorkerCluster(change)).notes == []


async def test_an_old_etag_is_refused(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", count=1)
    old = await clients.worker_cluster("demo")
    await clients.start_workers("demo")
    with pytest.raises(Conflict, match="etag"):
        await clients.delete_workers("demo", etag=old.etag)

    async def delete() -> bool:
        try:
            await clients.delete_workers("demo", etag=(await clients.worker_cluster("demo")).etag)
        except Conflict:  # the planner still has changes for it
            return False
        return True

    await eventually(delete)


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ({"broker_cluster": "none", "count": 1}, InvalidArgument, r"spec.broker_cluster: 'none' .*\(ext\)"),
        ({"broker_cluster": "ext", "count": 0}, InvalidArgument, "spec.count: 0 is not legal: .* at least 1"),
        ({"broker_cluster": "ext"}, InvalidArgument, "spec.placement: .*nodes .*, count .* or autoscale"),
        ({"broker_cluster": "ext", "nodes": {"names": ["nx"]}}, InvalidArgument, "'nx' .* registered nodes are n1"),
        ({"broker_cluster": "ext", "nodes": {"names": ["n1", "n1"]}}, InvalidArgument, "each node once"),
        ({"broker_cluster": "ext", "nodes": {"names": []}}, InvalidArgument, "at least one node"),
        (
            {"broker_cluster": "ext", "count": 1, "properties": {"bootstrap.servers": "a:1"}},
            InvalidArgument,
            "spec.properties.bootstrap.servers: 'a:1' is not legal: leave it out",
        ),
        (
            {"broker_cluster": "ext", "count": 1, "properties": {"listeners": "http://:1"}},
            InvalidArgument,
            "spec.properties.listeners: 'http://:1' is not legal: leave it out",
        ),
        ({"broker_cluster": "ext", "count": 1, "properties": {"group.id": "g1"}}, FailedPrecondition, "'first'"),
        (
            {"broker_cluster": "ext", "count": 1, "properties": {"config.storage.topic": "t1"}},
            FailedPrecondition,
            "'t1' is a topic of worker cluster 'first'",
        ),
    ],
)
async def test_worker_clusters_that_cannot_be(clients: Clients, spec, error, text) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers(
        "first", brokers="ext", count=1, properties={"group.id": "g1", "status.storage.topic": "t1"}
    )
    async with Agent(clients, "n1"):
        spec_of_cluster = worker_cluster_pb2.WorkerClusterSpec(**spec)
        with pytest.raises(error, match=text):
            await clients.clusters.CreateWorkerCluster(
                workers_pb.CreateWorkerClusterRequest(name="demo", spec=spec_of_cluster)
            )


@pytest.mark.parametrize("bootstrap", ["", "host", "host:", ":1", "a:1,b", "a:1,,b:2", "a:0", "a:65536", "http://a:1"])
async def test_bootstrap_servers_that_cannot_be(clients: Clients, bootstrap: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spec.external.bootstrap_servers: .* host:port"):
        await clients.create_external("ext", bootstrap)


async def test_names_and_nodes_that_cannot_be(clients: Clients) -> None:
    with pytest.raises(InvalidArgument, match=r"name: 'Default' is not legal: 1 to 63 lower-case"):
        await clients.create_external("Default", "127.0.0.1:1")
    with pytest.raises(InvalidArgument, match="no node has registered yet"):
        await clients.create_managed("default", "n1")
    with pytest.raises(InvalidArgument, match=r"managed .* or external"):
        await clients.brokers.CreateBrokerCluster(brokers_pb.CreateBrokerClusterRequest(name="x"))
    worker = worker_service_pb2.GetWorkerRequest(name="demo/7")
    with pytest.raises(NotFound, match=r"no worker cluster is named 'demo': none exists yet"):
        await clients.workers.GetWorker(worker)
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", count=1)
    with pytest.raises(NotFound, match=r"no worker is named 'demo/7'"):
        await clients.workers.GetWorker(worker)
    with pytest.raises(FailedPrecondition, match="'ext' is external"):
        await clients.brokers.StartBrokerCluster(brokers_pb.StartBrokerClusterRequest(name="ext"))


async def test_a_port_that_is_taken_is_left_to_its_owner(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", count=1)
    async with Agent(clients, "n1") as agent:
        for name in ("worker/demo/0", "spark/n1"):
            agent.special[name] = workload_pb2.WorkloadStatus(
                state=workload_pb2.WORKLOAD_STATE_FAILED, generation=1, reason="PORT_TAKEN", message="taken"
            )
        await clients.start_workers("demo")
        await in_state(clients, "demo", "RUNNING")
        worker, spark = agent.workloads["worker/demo/0"], agent.workloads["spark/n1"]
        assert worker.spec.worker.port == 8084
        assert spark.spec.spark.port == 7431
        assert worker.spec.worker.spark_address == "127.0.0.1:7431"
        assert worker.generation > 1


async def test_a_restarted_worker_is_a_new_generation(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", count=1)
    with pytest.raises(NotFound):
        await clients.workers.RestartWorker(worker_service_pb2.RestartWorkerRequest(name="demo/0"))
    async with Agent(clients, "n1") as agent:
        await clients.start_workers("demo")
        await in_state(clients, "demo", "RUNNING")
        answer = await clients.workers.RestartWorker(worker_service_pb2.RestartWorkerRequest(name="demo/0"))
        assert answer.worker.rest_url == "http://127.0.0.1:8083"
        await eventually(lambda: agent.workloads["worker/demo/0"].generation == 2)
        await clients.stop_workers("demo")
        with pytest.raises(FailedPrecondition, match="start worker cluster 'demo'"):
            await eventually_stopped(clients)


async def eventually_stopped(clients: Clients) -> None:
    await in_state(clients, "demo", "STOPPED")
    await clients.workers.RestartWorker(worker_service_pb2.RestartWorkerRequest(name="demo/0"))


async def test_pages_of_a_list(clients: Clients) -> None:
    for number in range(3):
        await clients.create_external(f"ext-{number}", "127.0.0.1:1")
    names, token = [], ""
    while True:
        request = brokers_pb.ListBrokerClustersRequest(page_size=2, page_token=token)
        answer = await clients.brokers.ListBrokerClusters(request)
        names += [c.name for c in answer.broker_clusters]
        token = answer.next_page_token
        if not token:
            break
    assert names == ["ext-0", "ext-1", "ext-2"]


async def test_an_external_cluster_that_does_not_answer_says_so(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await eventually(lambda: is_degraded(clients))
