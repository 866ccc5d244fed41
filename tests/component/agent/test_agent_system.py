"""The agent between the real state service and a real broker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from keelman.api.node.v1.agent_service_pb2 import DrainRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.rpc.channels import channel
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import family, is_marked, kill_all, start_of
from support.eventually import eventually
from support.state.service import Clients, StateProcess, free_range

pytestmark = pytest.mark.component


def start_agent(home: Home, port: int, state: StateProcess) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "keelman.agent", "run", "--node", "n1", "--home", str(home.root)]
    command += ["--port", str(port), "--state-address", f"127.0.0.1:{state.port}"]
    with (home.root / "agent.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def living(pids: Iterable[int]) -> dict[int, str]:
    """The live processes with their starts: a process id may be reused later."""
    return {pid: start for pid in pids if (start := start_of(pid))}


@asynccontextmanager
async def nothing_left(home: Home) -> AsyncIterator[list[subprocess.Popen[bytes]]]:
    agents: list[subprocess.Popen[bytes]] = []
    try:
        yield agents
    finally:
        for agent in agents:
            agent.kill()
            agent.wait(60)
        folders = list(home.workloads.glob("*"))
        kill_all([p for p in psutil.pids() if any(is_marked(p, f) for f in folders)])


async def test_a_node_from_its_first_broker_to_its_drain(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (agent_port,) = free_ports(1)
    state = StateProcess(tmp_path / "state", "--broker-ports", free_range(4))
    await state.start()
    async with nothing_left(home) as agents, channel(f"127.0.0.1:{state.port}") as connection:
        try:
            clients = Clients(connection)
            agents.append(start_agent(home, agent_port, state))

            async def online() -> bool:
                assert agents[-1].poll() is None
                return bool((await clients.nodes.ListNodes(ListNodesRequest())).nodes)

            await eventually(online)
            await clients.create_managed("default", "n1")

            async def running(*kinds: str) -> dict[str, Workload] | None:
                answer = {w.name.partition("/")[0]: w for w in (await clients.workloads()).values()}
                states = [answer[k].status.state for k in kinds if k in answer]
                ready = states == [WorkloadState.WORKLOAD_STATE_RUNNING] * len(kinds)
                return answer if ready else None

            first = await eventually(lambda: running("broker"))
            assert first
            kinds = ("broker",)
            pids = {k: first[k].status.pid for k in kinds}
            leftovers = living(p for p in family(pids["broker"]) if p != pids["broker"])
            assert leftovers, "the Java process"

            # The agent is killed: the next one adopts the running workloads.
            agents[-1].kill()
            agents[-1].wait(60)
            begun = time.time_ns()
            agents.append(start_agent(home, agent_port, state))
            reported: list[Workload] = []

            async def told_anew() -> dict[str, Workload] | None:
                """The new agent's reports; until then the state service has the former agent's reports."""
                answer = {w.name.partition("/")[0]: w for w in (await clients.workloads()).values()}
                reported.extend(answer.values())
                return answer if all(answer[k].status.observe_time.ToNanoseconds() > begun for k in kinds) else None

            adopted = await eventually(told_anew)
            assert {w.status.state for w in reported} == {WorkloadState.WORKLOAD_STATE_RUNNING}, "no report of STARTING"
            assert {k: adopted[k].status.pid for k in kinds} == pids
            assert all(adopted[k].status.restarts == first[k].status.restarts for k in kinds)

            # The broker is killed: it comes back on the same ports, and no Java process of the former one is left.
            os.kill(pids["broker"], signal.SIGKILL)

            async def back() -> dict[str, Workload] | None:
                actual_running = await running(*kinds)
                return (
                    actual_running if actual_running and actual_running["broker"].status.pid != pids["broker"] else None
                )

            second = await eventually(back)
            assert second
            assert not leftovers.items() & living(leftovers).items()
            assert second["broker"].spec == first["broker"].spec
            assert second["broker"].status.restarts == first["broker"].status.restarts + 1

            async def weighed() -> bool:
                actual_running = await running(*kinds)
                return actual_running is not None and actual_running["broker"].status.memory_bytes > 100_000_000

            await eventually(weighed)
            everything = living(p for k in kinds for p in family(second[k].status.pid))
            async with channel(f"127.0.0.1:{agent_port}") as link:
                answer = await AgentServiceStub(link).Drain(DrainRequest(), timeout=300)
            assert list(answer.killed) == []
            assert not everything.items() & living(everything).items()
            agents[-1].terminate()
            assert await asyncio.to_thread(agents[-1].wait, 300) == 0
        except BaseException:
            print((home.root / "agent.log").read_text()[-6000:])
            for log in home.workloads.glob("*/log"):
                print(log, log.read_text()[-3000:])
            raise
        finally:
            await state.end()
