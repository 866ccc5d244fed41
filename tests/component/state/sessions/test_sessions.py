"""Agents and their sessions: which are connected, which are silent, their reports and the effects."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from keelman.api.connect.v1 import worker_service_pb2
from keelman.api.node.v1 import node_pb2, node_service_pb2, session_service_pb2, workload_pb2
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.state.clusters import STATE, gone, in_state, is_degraded
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component


@pytest.fixture
async def clients(tmp_path):
    async with state_in_loop(tmp_path) as (state, _):
        yield state


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
    async with state_in_loop(tmp_path, heartbeat_seconds=0.1, session_timeout_seconds=5.0) as (clients, _):
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
    times = {"heartbeat_seconds": 0.1, "session_timeout_seconds": 4.0}
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
