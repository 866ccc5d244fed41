"""The state service over real gRPC with a real database file: clusters, placements, sessions, refusals."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1 import worker_cluster_pb2, worker_service_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers_pb
from keelman.api.node.v1 import node_pb2, node_service_pb2, session_service_pb2, workload_pb2
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from keelman.testing.eventually import eventually
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component
STATE = brokers.ClusterState


@pytest.fixture
async def clients(tmp_path):
    async with state_in_loop(tmp_path) as (made, _):
        yield made


async def in_state(clients: Clients, name: str, wanted: str) -> worker_cluster_pb2.WorkerCluster:
    async def look():
        cluster = await clients.worker_cluster(name)
        return cluster if STATE.Name(cluster.status.state) == f"CLUSTER_STATE_{wanted}" else None

    return await eventually(look, what=f"{name} is {wanted}")


async def test_from_nothing_to_running_workers_and_back(clients: Clients) -> None:
    async with Agent(clients, "n1") as agent:
        made = await clients.create_managed("default", "n1")
        assert made.generation == 1
        assert made.status.state == STATE.CLUSTER_STATE_STARTING
        assert len(made.status.kafka_cluster_id) == 22
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


async def gone(get) -> bool:
    try:
        await get
    except NotFound:
        return True
    return False


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
    given = {"keelman.cpu": "1", "zzz": "secret", "connect.protocol": "eager", "keelman.memory.bytes": "100000000"}
    spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="ext", count=1, properties=given)
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
        except Conflict:  # the planner still has something to say about it
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
        made = worker_cluster_pb2.WorkerClusterSpec(**spec)
        with pytest.raises(error, match=text):
            await clients.clusters.CreateWorkerCluster(workers_pb.CreateWorkerClusterRequest(name="demo", spec=made))


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
    with pytest.raises(NotFound, match=r"no worker cluster is named 'demo': there is none yet"):
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


async def test_a_newer_session_ends_the_older(clients: Clients) -> None:
    async with Agent(clients, "n1") as old, Agent(clients, "n1") as new:
        assert new.welcome.session > old.welcome.session
        with pytest.raises(Conflict, match=f"session {old.welcome.session} gave way to {new.welcome.session}"):
            await old.task


async def test_a_second_agent_of_a_name_is_refused_while_the_first_is_heard(clients: Clients) -> None:
    async with Agent(clients, "n1", incarnation="a") as first:
        with pytest.raises(
            AlreadyExists, match=r"node 'n1' has an agent, which serves at 127\.0\.0\.1:7420: stop that one"
        ):
            async with Agent(clients, "n1", incarnation="b") as second:
                await second.task
        assert not first.task.done()

    async def is_let_in() -> bool:
        async with Agent(clients, "n1", incarnation="b") as second:
            return second.welcome is not None

    await eventually(is_let_in, what="the first one's session has ended")


async def test_a_session_begins_with_a_registration(clients: Clients) -> None:
    async def requests(*messages):
        for message in messages:
            yield message

    beat = session_service_pb2.OpenSessionRequest(heartbeat=session_service_pb2.Heartbeat())
    wrong = session_service_pb2.OpenSessionRequest(registration={"node": "N 1", "agent_address": "a:1"})
    for first, text in ((beat, "a registration"), (wrong, "registration.node: 'N 1'")):
        with pytest.raises(InvalidArgument, match=text), translated():
            async for _ in clients.sessions.OpenSession(requests(first)):
                pass


async def node_state(clients: Clients, name: str) -> str:
    node = (await clients.nodes.GetNode(node_service_pb2.GetNodeRequest(name=name))).node
    return node_pb2.NodeState.Name(node.status.state).removeprefix("NODE_STATE_")


async def test_a_silent_node_loses_its_movable_workers(tmp_path) -> None:
    async with state_in_loop(tmp_path, heartbeat_seconds=0.1, session_timeout_seconds=10.0) as (clients, _):
        await clients.create_external("ext", "127.0.0.1:1")
        await clients.create_workers("move", brokers="ext", count=2)
        async with Agent(clients, "n1", host="127.0.0.2") as first, Agent(clients, "n2", host="127.0.0.3") as second:
            await clients.create_workers("stay", brokers="ext", nodes={"names": ["n1"]})
            await clients.start_workers("move")
            await in_state(clients, "move", "RUNNING")
            await clients.start_workers("stay")
            await in_state(clients, "stay", "RUNNING")
            assert {"worker/move/0", "worker/stay/0", "spark/n1"} == set(first.workloads)
            uid = first.workloads["worker/move/0"].uid
            with pytest.raises(FailedPrecondition, match="'n1' is named by clusters stay"):
                await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name="n1"))
            with pytest.raises(FailedPrecondition, match="'n2' carries spark/n2, worker/move/1"):
                await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name="n2"))
            await first.__aexit__()
            moved = await eventually(lambda: second.workloads.get("worker/move/0"))
            assert (moved.generation, moved.uid) == (2, uid)
            assert moved.spec.worker.host == "127.0.0.3"
            assert await node_state(clients, "n1") == "OFFLINE"
            await in_state(clients, "move", "RUNNING")
            lost = await in_state(clients, "stay", "DEGRADED")
            assert lost.status.message == "worker/stay/0: node n1 is offline"
            with pytest.raises(FailedPrecondition, match="'n1' is named by clusters stay"):
                await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name="n1"))
            async with Agent(clients, "n1", host="127.0.0.2") as back:
                assert set(back.workloads) == {"worker/stay/0", "spark/n1"}
                await in_state(clients, "stay", "RUNNING")
                assert await node_state(clients, "n1") == "ONLINE"
            await clients.delete_workers("stay")
            await eventually(lambda: gone(clients.worker_cluster("stay")))

            async def forgotten() -> bool:
                try:
                    await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name="n1"))
                except FailedPrecondition:
                    return False
                return True

            await eventually(forgotten)
            with pytest.raises(NotFound):
                await node_state(clients, "n1")


async def test_nobody_is_judged_for_one_time_out_after_a_restart(tmp_path) -> None:
    times = {"heartbeat_seconds": 0.1, "session_timeout_seconds": 8.0}
    async with state_in_loop(tmp_path, **times) as (clients, _), Agent(clients, "n1"), Agent(clients, "n2"):
        await clients.create_external("ext", "127.0.0.1:1")
        await clients.create_workers("demo", brokers="ext", count=1)
        await clients.start_workers("demo")
        await in_state(clients, "demo", "RUNNING")
        await clients.nodes.CreateNode(node_service_pb2.CreateNodeRequest(name="n9"))
    begun = asyncio.get_running_loop().time()
    async with state_in_loop(tmp_path, **times) as (clients, _):
        assert await node_state(clients, "n1") == "UNKNOWN"
        async with Agent(clients, "n2") as other:
            assert (await clients.workloads())["worker/demo/0"].node == "n1"
            assert (await clients.worker_cluster("demo")).status.state == STATE.CLUSTER_STATE_RUNNING
            moved = await eventually(lambda: other.workloads.get("worker/demo/0"))
            assert moved.generation == 2
            assert asyncio.get_running_loop().time() - begun >= times["session_timeout_seconds"]
            assert await node_state(clients, "n9") == "EXPECTED", "its agent has not come yet"


def revision_of(home: Path) -> int:
    with contextlib.closing(sqlite3.connect(home / "state" / "state.db")) as database:
        (value,) = database.execute("SELECT value FROM counter WHERE name = 'revision'").fetchone()
    return value


async def test_reports_are_folded_and_acknowledged(clients: Clients, tmp_path) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", count=1)
    async with Agent(clients, "n1") as agent:
        await clients.start_workers("demo")
        await in_state(clients, "demo", "RUNNING")
        await eventually(lambda: is_degraded(clients))  # that is a write too
        await eventually(lambda: len(agent.received) == agent.reported)
        before = revision_of(tmp_path)
        vital = workload_pb2.WorkloadStatus(state="WORKLOAD_STATE_RUNNING", generation=1, pid=4711, memory_bytes=12345)
        agent.special["worker/demo/0"] = vital
        agent.report()

        async def memory() -> bool:
            answer = await clients.workers.GetWorker(worker_service_pb2.GetWorkerRequest(name="demo/0"))
            return answer.worker.process.memory_bytes == 12345

        await eventually(memory)
        await eventually(lambda: len(agent.received) == agent.reported)
        assert agent.received == sorted(agent.received)
        assert revision_of(tmp_path) == before, "memory is not worth a write"
        agent.special["worker/demo/0"] = workload_pb2.WorkloadStatus(
            state="WORKLOAD_STATE_FAILED", generation=1, exit_code=-9, restarts=3, reason="EXITED", message="killed"
        )
        agent.report()
        broken = await in_state(clients, "demo", "DEGRADED")
        assert broken.status.message == "worker/demo/0: killed"
        assert (broken.status.ready_workers, list(broken.status.rest_urls)) == (0, [])
        agent.special.clear()
        agent.workloads.clear()
        agent.report(complete=True)
        await in_state(clients, "demo", "STARTING")


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


async def is_degraded(clients: Clients) -> bool:
    status = (await clients.broker_cluster("ext")).status
    return status.state == STATE.CLUSTER_STATE_DEGRADED and "127.0.0.1:1" in status.message
