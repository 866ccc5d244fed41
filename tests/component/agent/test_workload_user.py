"""Workloads that run as a user of their own, under an agent that is root."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.api.node.v1 import agent_service_pb2 as agent_messages
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.workload_pb2 import BrokerWorkload, ResourceLimits, Workload, WorkloadGoal, WorkloadSpec
from keelman.model.cluster import new_cluster_id
from keelman.rpc.channels import channel
from keelman.runtime.home import Home, SharedHome, cache_folder
from keelman.runtime.processes.ports import free_ports
from support.agent.agents import REMOVED, RUNNING, STOPPED, Node, healthy, running_node, workload
from support.agent.other_users import reachable
from support.agent.workloads import real_workloads
from support.eventually import eventually

pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as others"),
]
NOBODY = pwd.getpwnam("nobody")
DAEMON = pwd.getpwnam("daemon")


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    # Not below pytest's own folder, which each start of pytest closes to other users.
    with tempfile.TemporaryDirectory(prefix="keelman-user-") as folder:
        Path(folder).chmod(0o711)
        async with running_node(Path(folder)) as node:
            node.home = SharedHome(node.home.root)
            yield node


async def test_its_process_folder_socket_and_log_are_the_users(node: Node) -> None:
    limits = ResourceLimits(memory_bytes=2**30, cpus=1)
    node.state.assign(workload(script=healthy(node), python="-u", limits=limits))
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody", limits="watchdog")
    status = await eventually(lambda: agent.poll() is not None or node.state.in_state("worker/demo/0", "RUNNING"))
    assert agent.poll() is None, node.log_of_agent()
    assert not isinstance(status, bool)
    process = psutil.Process(status.pid)
    assert set(process.uids()) == {NOBODY.pw_uid}
    assert set(process.gids()) == {NOBODY.pw_gid}
    folder = node.home.workload("worker/demo/0")
    for path in (folder, folder / "log", folder / "tmp", node.home.socket("worker/demo/0")):
        assert path.stat().st_uid == NOBODY.pw_uid, path
        assert path.stat().st_mode & 0o077 == 0 or stat.S_ISSOCK(path.stat().st_mode), path
    assert (folder / "record.json").stat().st_uid == 0
    environment = process.environ()
    assert (environment["USER"], environment["KEELMAN_CACHE"]) == ("nobody", str(node.home.root / "cache"))
    async with channel(node.address) as connection:
        request = agent_messages.StreamLogsRequest(workload="worker/demo/0", tail_lines=1)
        await eventually(lambda: b"line 300\n" in (folder / "log").read_bytes())
        assert [m.lines async for m in AgentServiceStub(connection).StreamLogs(request)] == [b"line 300\n"]
    # Adopted by the next agent, and removed with all of its files.
    await node.end(agent, signal.SIGKILL)
    node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody", limits="watchdog")
    await eventually(lambda: len(node.state.first_reports) == 2)
    assert node.state.statuses["worker/demo/0"].pid == status.pid
    node.state.assign(workload(goal=REMOVED, generation=2))
    await eventually(lambda: node.state.in_state("worker/demo/0", "REMOVED"))
    assert not folder.exists()


async def test_a_worker_and_its_spark_service_run_as_that_user(bootstrap: str, node: Node) -> None:
    spark, worker = real_workloads(bootstrap, "as-nobody")
    node.state.assign(spark, worker)
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody")
    names = (spark.name, worker.name)
    await eventually(lambda: agent.poll() is not None or all(node.state.in_state(name, "RUNNING") for name in names))
    assert agent.poll() is None, node.log_of_agent()
    for name in names:
        process = psutil.Process(node.state.statuses[name].pid)
        for child in (process, *process.children(recursive=True)):
            assert set(child.uids()) == {NOBODY.pw_uid}, child.cmdline()
        assert (node.home.workload(name) / "settings.toml").stat().st_uid == NOBODY.pw_uid


async def test_brokers_run_as_a_user_of_their_own_and_take_over_what_was_roots(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(cache_folder()))  # filled by the set-up: nothing is fetched
    port, controller_port = free_ports(2)
    broker_workload = BrokerWorkload(
        broker_cluster="kept", kafka_cluster_id=new_cluster_id(), host="127.0.0.1", port=port,
        controller_port=controller_port, controller=True, replicas=1,
    )  # fmt: skip
    name, folder = "broker/kept/0", node.home.workload("broker/kept/0")
    node.home = Home(node.home.root)

    def broker(generation: int, goal: WorkloadGoal) -> Workload:
        return Workload(
            name=name, uid="b", node="n1", generation=generation, goal=goal, spec=WorkloadSpec(broker=broker_workload)
        )

    node.state.assign(broker(1, RUNNING))
    agent = node.agent(prefix=reachable(node.folder / "aside"))
    await eventually(lambda: node.state.in_state(name, "RUNNING"))
    assert psutil.Process(node.state.statuses[name].pid).uids().real == 0
    properties = {"bootstrap.servers": f"127.0.0.1:{port}"}
    producer = Producer(properties)
    admin = AdminClient(properties)
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(300)
    producer.produce("kept", b"kept by root")
    assert producer.flush(300) == 0
    node.state.assign(broker(2, STOPPED))
    await eventually(lambda: node.state.in_state(name, "STOPPED"))
    await node.end(agent, signal.SIGTERM)

    users = {"workload_user": "nobody", "broker_user": "daemon"}
    node.home = SharedHome(node.home.root, brokers_apart=True)
    node.state.assign(broker(3, RUNNING), workload(script=healthy(node), python="-u"))
    agent = node.agent(prefix=reachable(node.folder / "aside"), **users)
    for item in (name, "worker/demo/0"):
        await eventually(lambda item=item: agent.poll() is not None or node.state.in_state(item, "RUNNING"))
    assert agent.poll() is None, node.log_of_agent()
    process = psutil.Process(node.state.statuses[name].pid)
    for child in (process, *process.children(recursive=True)):
        assert set(child.uids()) == {DAEMON.pw_uid}, child.cmdline()
    assert psutil.Process(node.state.statuses["worker/demo/0"].pid).uids().real == NOBODY.pw_uid
    owned = {path: path.lstat().st_uid for path in folder.rglob("*") if path.name != "record.json"}
    assert {path for path, uid in owned.items() if uid != DAEMON.pw_uid} == set()
    assert any(path.name.startswith("kept-0") for path in owned)
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o077) == (DAEMON.pw_uid, 0)
    tried = subprocess.run(["ls", str(folder)], capture_output=True, text=True, check=False, user=NOBODY.pw_uid)
    assert "Permission denied" in tried.stderr
    assert node.home.socket(name).stat().st_uid == DAEMON.pw_uid

    consumer = Consumer({**properties, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("kept", 0, 0)])
    message = await asyncio.to_thread(consumer.poll, 300)
    consumer.close()
    assert message is not None
    assert message.value() == b"kept by root"


async def test_a_user_that_cannot_enter_the_home_is_refused_at_the_start(node: Node) -> None:
    node.home.root.mkdir(mode=0o700)
    agent = node.agent(prefix=reachable(node.folder / "aside"), workload_user="nobody")
    assert await asyncio.to_thread(agent.wait, 300) == 1
    assert "agent.workload_user: 'nobody' is not legal: a user who can run" in node.log_of_agent()
    assert "Permission denied" in node.log_of_agent()
