"""The agent as a process of its own, with real children and a real session stream."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from pathlib import Path

import psutil
import pytest

from keelman.agent.settling import WORKLOADS
from keelman.api.node.v1 import agent_service_pb2 as agent_messages
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.workload_pb2 import WorkloadStatus
from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.rpc.health import is_serving
from keelman.rpc.server import LIVE
from keelman.runtime.processes.children import read_record
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import family
from support.agent.agents import REMOVED, STOPPED, STUBBORN, WITH_CHILD, Node, alive, healthy, workload
from support.eventually import eventually

pytestmark = pytest.mark.component


async def test_a_killed_child_is_started_again_at_once_and_its_leftovers_are_gone(node: Node) -> None:
    node.state.assign(workload(script=WITH_CHILD))
    node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    await eventually(lambda: len(family(first.pid)) == 2)
    grandchild = next(p for p in family(first.pid) if p != first.pid)

    os.kill(first.pid, signal.SIGKILL)

    def again() -> WorkloadStatus | None:
        status = node.state.in_state("worker/demo/0", "STARTING")
        return status if status and status.pid != first.pid else None

    second = await eventually(again)
    assert second.restarts == 1
    assert second.exit_code == -signal.SIGKILL
    assert second.message == "was ended by SIGKILL; last line of its log: up"
    assert not alive(grandchild)
    started = second.start_time.ToDatetime() - first.start_time.ToDatetime()
    assert started.total_seconds() < 60
    # The next process does not start at once: a process that keeps ending is not restarted in a tight loop.
    os.kill(second.pid, signal.SIGKILL)
    failed = ("worker/demo/0", "WORKLOAD_STATE_FAILED", 1)
    await eventually(lambda: failed in node.state.history)


async def test_an_agent_in_a_container_ends_its_workloads_before_itself(node: Node) -> None:
    node.state.assign(workload())
    agent = node.agent(drain_on_stop="true")
    running = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    assert await is_serving(node.address, service=LIVE)

    assert await node.end(agent, signal.SIGTERM) == 0

    assert not alive(running.pid)
    assert node.state.statuses["worker/demo/0"].reason == "DRAINED"
    node.agent()
    await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))


async def test_an_agent_tells_when_all_its_workloads_run(node: Node) -> None:
    node.agent()
    await eventually(lambda: is_serving(node.address))
    assert not await is_serving(node.address, service=WORKLOADS), "the state service has named none yet"
    node.state.assign(workload(script=healthy(node), python="-u"), workload("worker/demo/1", goal=STOPPED))
    await eventually(lambda: is_serving(node.address, service=WORKLOADS))
    assert node.state.in_state("worker/demo/0", "RUNNING")


async def test_a_workload_that_does_not_run_holds_a_rollout_up_for_a_while_only(node: Node) -> None:
    node.state.assign(workload(script="import sys; sys.exit(3)"))
    node.agent(settle_seconds="3")
    await eventually(lambda: is_serving(node.address))
    assert not await is_serving(node.address, service=WORKLOADS)
    await eventually(lambda: is_serving(node.address, service=WORKLOADS))


async def test_a_killed_agent_is_followed_by_one_that_adopts(node: Node) -> None:
    node.state.assign(workload())
    agent = node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    await node.end(agent, signal.SIGKILL)
    assert alive(first.pid)

    agent = node.agent()
    await eventually(lambda: node.state.sessions == 2)
    adopted = await eventually(lambda: len(node.state.first_reports) == 2 and node.state.statuses["worker/demo/0"])
    assert (adopted.pid, adopted.restarts, adopted.generation) == (first.pid, 0, 1)
    assert adopted.start_time == first.start_time
    # Its death is noticed though it is not the new agent's child.
    os.kill(first.pid, signal.SIGKILL)
    second = await eventually(
        lambda: node.state.statuses["worker/demo/0"].pid not in (0, first.pid) and node.state.statuses["worker/demo/0"]
    )
    assert second.restarts == 1
    assert not second.HasField("exit_code")

    # SIGTERM leaves it, too.
    assert await node.end(agent, signal.SIGTERM) == 0
    assert alive(second.pid)
    node.agent()
    await eventually(lambda: len(node.state.first_reports) == 3)
    assert node.state.statuses["worker/demo/0"].pid == second.pid


async def test_an_end_while_the_agent_is_away_is_noticed_with_its_exit_code(node: Node) -> None:
    script = """
import asyncio, sys
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import run_process
async def body(stop):
    print('up')
    await stop.wait()
    raise Unavailable('the hold is full', reason='HOLD_FULL')
sys.exit(run_process('held', body))
"""
    node.state.assign(workload(script=script, python="-u"))
    agent = node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    log = node.home.workload("worker/demo/0") / "log"
    await eventually(lambda: b"up" in log.read_bytes())
    await node.end(agent, signal.SIGKILL)
    os.kill(first.pid, signal.SIGTERM)
    await eventually(lambda: not alive(first.pid))

    node.agent()
    second = await eventually(
        lambda: node.state.statuses["worker/demo/0"].pid not in (0, first.pid) and node.state.statuses["worker/demo/0"]
    )
    assert second.exit_code == 1
    assert (second.reason, second.message) == ("HOLD_FULL", "the hold is full")
    assert second.restarts == 1


async def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(node: Node) -> None:
    node.state.assign(workload(script=STUBBORN))
    node.agent(grace_seconds="0.5")
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    await eventually(lambda: b"up" in (node.home.workload("worker/demo/0") / "log").read_bytes())
    node.state.assign(workload(script=STUBBORN, goal=STOPPED, generation=2))
    status = await eventually(lambda: node.state.in_state("worker/demo/0", "STOPPED"))
    assert (status.reason, status.exit_code, status.pid) == ("KILLED", -signal.SIGKILL, 0)
    assert not alive(first.pid)
    # Its files stay until the system removes it; then the system and the node forget it.
    assert node.home.workload("worker/demo/0").exists()
    node.state.assign(workload(script=STUBBORN, goal=REMOVED, generation=3))
    await eventually(lambda: node.state.in_state("worker/demo/0", "REMOVED"))
    assert not node.home.workload("worker/demo/0").exists()
    node.state.remove("worker/demo/0")
    async with channel(node.address) as connection:
        agent = AgentServiceStub(connection)

        async def gone() -> bool:
            return not (await agent.ListLocalWorkloads(agent_messages.ListLocalWorkloadsRequest())).workloads

        await eventually(gone)


async def test_by_force_it_is_killed_at_once(node: Node) -> None:
    node.state.assign(workload(script=STUBBORN))
    node.agent(grace_seconds="600")
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    await eventually(lambda: b"up" in (node.home.workload("worker/demo/0") / "log").read_bytes())
    # The first stop is not forced and takes its time.
    node.state.assign(workload(script=STUBBORN, goal=STOPPED, generation=2))
    await eventually(lambda: node.state.in_state("worker/demo/0", "STOPPING"))
    node.state.assign(workload(script=STUBBORN, goal=STOPPED, generation=3, force=True))
    status = await eventually(lambda: node.state.in_state("worker/demo/0", "STOPPED"))
    assert (status.reason, status.message) == ("KILLED", "was killed at once, as ordered")
    assert not alive(first.pid)


async def test_a_taken_port_is_named_and_the_workload_starts_when_it_is_free(node: Node) -> None:
    (port,) = free_ports(1)  # below the ports of outgoing connections, which could take it
    with socket.create_server(("127.0.0.1", port)):
        node.state.assign(workload(port=port))
        node.agent()
        status = await eventually(lambda: node.state.in_state("worker/demo/0", "FAILED"))
        assert status.reason == "PORT_TAKEN"
        assert f"port {port} on 127.0.0.1 is taken" in status.message
        assert not (node.home.workload("worker/demo/0") / "record.json").exists()
    started = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    assert started.restarts == 0


async def test_the_session_is_opened_anew_and_work_goes_on_without_it(node: Node) -> None:
    node.state.assign(workload())
    agent = node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    await eventually(lambda: node.state.heartbeats >= 3)
    (registration,) = node.state.registrations
    assert (registration.node, registration.agent_address) == ("n1", node.address)
    figures = node.state.figures
    assert 0 <= figures.cpus_used <= psutil.cpu_count() + 1
    assert min(figures.memory_available_bytes, figures.disk_free_bytes) > 0

    node.state.drop()
    await eventually(lambda: node.state.sessions == 2)
    # A gap in the versions ends a session as well.
    node.state.assign(workload("worker/demo/1"), gap=5)
    await eventually(lambda: node.state.sessions == 3)
    await eventually(lambda: node.state.in_state("worker/demo/1", "STARTING"))
    await eventually(lambda: len(node.state.first_reports) == 3)
    assert "worker/demo/0" in node.state.first_reports[-1]
    assert node.state.statuses["worker/demo/0"].pid == first.pid

    # Without the state service: a killed child, then a killed agent and a killed child.
    await node.state_down()
    folder = node.home.workload("worker/demo/0")
    os.kill(first.pid, signal.SIGKILL)
    record = await eventually(lambda: _other_record(folder, first.pid))
    await node.end(agent, signal.SIGKILL)
    os.kill(record, signal.SIGKILL)
    await eventually(lambda: not alive(record))
    node.agent()
    third = await eventually(lambda: _other_record(folder, record))
    assert alive(third)


def _other_record(folder: Path, pid: int) -> int:
    record = read_record(folder)
    return record.pid if record and record.pid != pid and not record.ended else 0


async def test_generations_fence_and_a_new_one_restarts(node: Node) -> None:
    node.state.assign(workload(generation=3))
    node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    node.state.assign(workload(generation=2, goal=STOPPED))
    node.state.assign(workload("worker/demo/1"))
    await eventually(lambda: node.state.in_state("worker/demo/1", "STARTING"))
    assert node.state.statuses["worker/demo/0"].pid == first.pid

    node.state.assign(workload(generation=4))
    second = await eventually(
        lambda: (
            node.state.statuses["worker/demo/0"].generation == 4 and node.state.in_state("worker/demo/0", "STARTING")
        )
    )
    assert second.pid != first.pid
    assert second.restarts == 0
    assert not alive(first.pid)
    # A workload that the system no longer knows is stopped, and its files stay.
    del node.state.workloads["worker/demo/0"]
    node.state.drop()
    await eventually(lambda: not alive(second.pid))
    assert node.home.workload("worker/demo/0").exists()
    async with channel(node.address) as connection:
        agent = AgentServiceStub(connection)

        async def names() -> list[str]:
            answer = await agent.ListLocalWorkloads(agent_messages.ListLocalWorkloadsRequest())
            return [w.name for w in answer.workloads]

        async def forgotten() -> bool:
            return await names() == ["worker/demo/1"]

        await eventually(forgotten)


async def test_drain_stops_in_order_and_starts_nothing(node: Node) -> None:
    names = ["broker/default/0", "spark/n1", "worker/demo/0"]
    node.state.assign(*(workload(name) for name in names))
    agent = node.agent()
    await eventually(lambda: all(node.state.in_state(name, "STARTING") for name in names))
    pids = [node.state.statuses[name].pid for name in names]
    async with channel(node.address) as connection:
        stub = AgentServiceStub(connection)
        answer = await stub.Drain(agent_messages.DrainRequest(), timeout=300)
        assert list(answer.killed) == []
        assert not any(map(alive, pids))
        local = await stub.ListLocalWorkloads(agent_messages.ListLocalWorkloadsRequest())
        assert [w.name for w in local.workloads] == names
        assert {w.status.reason for w in local.workloads} == {"DRAINED"}
        assert all(not w.spec.worker.properties for w in local.workloads)
    # By its log, for one report may contain several ends and has no order.
    matches = re.findall(r" (stopping|ended) +workload=(\S+)", node.log_of_agent())
    assert matches == [(what, name) for name in reversed(names) for what in ("stopping", "ended")]
    await eventually(lambda: {n for n, s, _ in node.state.history if s == "WORKLOAD_STATE_STOPPED"} == set(names))
    await node.end(agent, signal.SIGTERM)
    node.agent()
    await eventually(lambda: all(node.state.in_state(name, "STARTING") for name in names))
    assert all(node.state.statuses[name].restarts == 0 for name in names)


async def test_a_second_agent_on_the_home_is_refused_and_the_lock_dies_with_its_holder(node: Node) -> None:
    node.state.assign(workload())
    first = node.agent()
    await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    (other_port,) = free_ports(1)
    second = node.agent(port=str(other_port))
    assert await asyncio.to_thread(second.wait, 300) == 1
    assert f"keelman agent: another agent (pid {first.pid}) runs on {node.home.root}" in node.log_of_agent()
    await node.end(first, signal.SIGKILL)
    node.agent()  # though the child of the first, which inherits nothing, lives
    await eventually(lambda: node.state.sessions == 2)


async def test_health_memory_and_logs_of_a_running_workload(node: Node) -> None:
    node.state.assign(workload(script=healthy(node), python="-u"))
    node.agent()
    await eventually(lambda: node.state.in_state("worker/demo/0", "RUNNING"))
    running = await eventually(lambda: (s := node.state.statuses["worker/demo/0"]).memory_bytes and s)
    assert 5_000_000 < running.memory_bytes < 500_000_000
    assert (running.message, running.reason) == ("", "")
    async with channel(node.address) as connection:
        stub = AgentServiceStub(connection)
        request = agent_messages.StreamLogsRequest(workload="worker/demo/0", tail_lines=3)
        log = node.home.workload("worker/demo/0") / "log"
        await eventually(lambda: b"line 300\n" in log.read_bytes())
        got = b"".join([m.lines async for m in stub.StreamLogs(request)])
        assert got == b"line 298\nline 299\nline 300\n"
        request.follow, request.tail_lines = True, 1
        stream = stub.StreamLogs(request)
        assert (await stream.read()).lines == b"line 300\n"
        with log.open("ab") as more:
            more.write(b"new li")
            more.flush()
            more.write(b"ne\n")
        async with asyncio.timeout(300):
            got = b""
            while not got.endswith(b"\n"):
                got += (await stream.read()).lines
        assert got == b"new line\n"
        stream.cancel()
        with log.open("ab") as more:
            for cluster in (b"a", b"b"):
                more.write(b'{"event": "said", "connector": "x", "worker_cluster": "%s"}\n' % cluster)
        about = agent_messages.StreamLogsRequest(workload="worker/demo/0", connector="x", worker_cluster="b")
        got = b"".join([m.lines async for m in stub.StreamLogs(about)])
        assert got == b'{"event": "said", "connector": "x", "worker_cluster": "b"}\n'
        about.connector = ""
        with pytest.raises(InvalidArgument, match="worker_cluster: 'b' is not legal: empty where no connector"):
            [m async for m in translated_stream(stub.StreamLogs(about))]


async def test_a_child_gets_named_variables_and_a_folder_and_a_umask_of_its_own(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET_OF_SOMEBODY", "HTTPS_PROXY", "KEELMAN_BROKER_PORT", "PASSED_ON"):
        monkeypatch.setenv(name, "x")
    script = "import json, os, tempfile, time; tempfile.mkstemp(); open('made', 'w'); "
    script += "print(json.dumps({**os.environ, 'folder': tempfile.gettempdir()}), flush=True); time.sleep(600)"
    node.state.assign(workload(script=script))
    node.agent(pass_environment="PASSED_*", umask="027")
    folder = node.home.workload("worker/demo/0")
    text = await eventually(lambda: (t := (folder / "log").read_text()).endswith("}\n") and t)
    tree = json.loads(text)
    assert tree["folder"] == tree["TMPDIR"] == str(folder / "tmp")
    assert (tree["PATH"], tree["PASSED_ON"]) == (os.environ["PATH"], "x")
    assert {"SECRET_OF_SOMEBODY", "HTTPS_PROXY", "KEELMAN_BROKER_PORT"}.isdisjoint(tree)
    assert (folder / "made").stat().st_mode & 0o777 == 0o640
    assert len(list((folder / "tmp").iterdir())) == 1


async def test_a_frozen_child_is_given_up_though_another_agent_started_it(node: Node) -> None:
    node.state.assign(workload(script=healthy(node), python="-u"))
    agent = node.agent()
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "RUNNING"))
    await node.end(agent, signal.SIGKILL)
    os.kill(first.pid, signal.SIGSTOP)
    begun = len(node.state.history)
    node.agent(unwell_seconds="1")
    # It does not answer the new agent's first requests: a busy node looks the same, and it is not reported as starting.
    await eventually(lambda: len(node.state.first_reports) == 2)
    assert node.state.history[begun] == ("worker/demo/0", "WORKLOAD_STATE_RUNNING", 1)

    def again() -> WorkloadStatus | None:
        status = node.state.statuses["worker/demo/0"]
        return status if status.pid not in (0, first.pid) else None

    second = await eventually(again)
    assert (second.restarts, second.reason) == (1, "UNHEALTHY")
    assert second.message == "did not answer its health check for 1 s and was killed"
    assert not alive(first.pid)
    await eventually(lambda: node.state.in_state("worker/demo/0", "RUNNING"))
