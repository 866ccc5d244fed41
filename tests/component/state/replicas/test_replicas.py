"""Several state services of one PostgreSQL, as processes, with agents that move between them.

Services are killed or frozen, and the database is away for some time.
"""

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from keelman.api.node.v1 import node_pb2, node_service_pb2
from keelman.model.errors import FailedPrecondition, KeelmanError, NotFound
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.state.secrets.sealed_rows import rekey_file
from support.eventually import eventually
from support.servers.postgresql import BINARIES, PostgresqlServer
from support.state.service import Agent, Clients, StateProcess, free_range

pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres"),
]
ONLINE, OFFLINE = node_pb2.NODE_STATE_ONLINE, node_pb2.NODE_STATE_OFFLINE
BEAT, TIMEOUT, LEASE = 0.3, 8.0, 6.0
MORE = 1.3
"""The factor by which a wait that may end without an event exceeds the timeout or lease."""
PATIENCE = 60.0


class Roamer:
    """An agent that moves to the next state service when it loses its own, and remembers its assigned workloads."""

    def __init__(self, node: str, *replicas: StateProcess) -> None:
        self.node, self.told = node, set()
        self._replicas = itertools.cycle(replicas)
        self.agent: Agent | None = None

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            async with channel(f"127.0.0.1:{next(self._replicas).port}") as connection:
                self.agent = Agent(Clients(connection), self.node)
                with contextlib.suppress(KeelmanError, AssertionError):
                    async with self.agent as agent:
                        while not agent.task.done():
                            self._note(agent)
                            await asyncio.wait([agent.task], timeout=BEAT)
                self._note(self.agent)
            await asyncio.sleep(BEAT)

    def _note(self, agent: Agent) -> None:
        self.told |= {(w.name, w.generation) for w in agent.workloads.values()}


class Plane:
    """A PostgreSQL, state services on it, and agents."""

    def __init__(self, folder: Path, count: int) -> None:
        self.server = PostgresqlServer({})
        self.server.start()
        self.url = self.server.database()
        flags = ["--database", self.url, "--key-file", str(folder / "key"), "--worker-ports", free_range(20)]
        flags += ["--heartbeat-seconds", str(BEAT), "--session-timeout-seconds", str(TIMEOUT)]
        self.replicas = [StateProcess(folder / f"state{number}", *flags) for number in range(count)]
        self.roamers: list[Roamer] = []

    def leader(self) -> StateProcess:
        """The replica that has the lease in the database. Raises StopIteration if it is none of these."""
        engine = sa.create_engine(self.url.replace("postgresql:", "postgresql+psycopg:"))
        try:
            with engine.connect() as connection:
                holder = connection.execute(sa.text("select holder from lease where name = 'leader'")).scalar_one()
        finally:
            engine.dispose()
        return next(r for r in self.replicas if f"/{r.child.pid}/" in holder)

    def others(self, than: StateProcess) -> list[StateProcess]:
        """All state services except this one."""
        return [r for r in self.replicas if r is not than]

    def moved(self) -> list[tuple[str, int]]:
        """The workloads that were assigned to two nodes in one generation."""
        orders = [order for roamer in self.roamers for order in roamer.told]
        return sorted({order for order in orders if orders.count(order) > 1})

    async def has_led(self, state: StateProcess) -> bool:
        """Whether it is the leader now."""
        with contextlib.suppress(StopIteration, sa.exc.SQLAlchemyError):
            return self.leader() is state
        return False


@contextlib.asynccontextmanager
async def plane(folder: Path, *nodes: str, count: int = 2) -> AsyncIterator[Plane]:
    control_plane = Plane(folder, count)
    tasks: list[asyncio.Task[None]] = []
    try:
        for replica in control_plane.replicas:
            await replica.start()
        await eventually(lambda: control_plane.has_led(control_plane.replicas[0]), what="the first leads")
        for number, node in enumerate(nodes):
            turned = control_plane.replicas[number % count :] + control_plane.replicas[: number % count]
            control_plane.roamers.append(Roamer(node, *turned))
            tasks.append(asyncio.ensure_future(control_plane.roamers[-1].run()))
        yield control_plane
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for replica in control_plane.replicas:
            if replica.child is not None and replica.child.returncode is None:
                replica.child.send_signal(signal.SIGCONT)
                await replica.end(signal.SIGKILL)
        control_plane.server.close()


@contextlib.asynccontextmanager
async def asked(replica: StateProcess) -> AsyncIterator[Clients]:
    async with channel(f"127.0.0.1:{replica.port}") as connection:
        yield Clients(connection)


async def states(replica: StateProcess) -> dict[str, int]:
    async with asked(replica) as clients:
        answer = await clients.nodes.ListNodes(node_service_pb2.ListNodesRequest())
        return {node.name: node.status.state for node in answer.nodes}


async def all_online(replica: StateProcess, *nodes: str) -> bool:
    return await states(replica) == dict.fromkeys(nodes, ONLINE)


async def run_workers(replica: StateProcess, name: str, count: int) -> None:
    """Creates and starts a worker cluster through one state service."""
    async with asked(replica) as clients:
        await clients.create_workers(name, brokers="ext", count=count)
        await clients.start_workers(name)


async def runs(replica: StateProcess, name: str, count: int) -> bool:
    async with asked(replica) as clients:
        try:
            cluster = await clients.worker_cluster(name)
        except NotFound:  # another service had the order to create it a moment ago
            return False
        return cluster.status.ready_workers == count and cluster.status.observed_generation == cluster.generation


async def run_demo(control_plane: Plane, asked_one: StateProcess) -> None:
    """Waits for all nodes, starts two workers through one state service, and waits until each service shows them."""
    nodes = [roamer.node for roamer in control_plane.roamers]
    for replica in control_plane.replicas:
        await eventually(lambda r=replica: all_online(r, *nodes), seconds=PATIENCE, what="all nodes are online")
    async with asked(asked_one) as clients:
        await clients.create_external("ext", "127.0.0.1:1")
    await run_workers(asked_one, "demo", 2)
    for replica in control_plane.replicas:
        await eventually(lambda r=replica: runs(r, "demo", 2), seconds=PATIENCE, what="all know that it runs")


def false_alarms(control_plane: Plane) -> int:
    return sum(r.output.count("node_offline") for r in control_plane.replicas)


async def test_any_serves_and_one_plans(tmp_path: Path) -> None:
    async with plane(tmp_path, "n1", "n2") as control_plane:
        leader, other = control_plane.replicas
        await run_demo(control_plane, other)
        # The nodes are at different state services: the leader gets n2's reports only through the other one.
        loop = asyncio.get_running_loop()
        until = loop.time() + MORE * TIMEOUT
        await eventually(lambda: loop.time() > until, seconds=PATIENCE)
        assert await all_online(leader, "n1", "n2")
        assert (false_alarms(control_plane), "planned" in other.output) == (0, False)
        assert control_plane.moved() == []


async def test_the_key_is_not_changed_while_a_state_service_runs(tmp_path: Path) -> None:
    async with plane(tmp_path, count=1) as control_plane:
        key = (tmp_path / "key").read_bytes()
        with pytest.raises(FailedPrecondition, match="a state service uses this database: stop all of them"):
            await rekey_file(control_plane.url, tmp_path / "key")
        assert (tmp_path / "key").read_bytes() == key
        assert await control_plane.replicas[0].end() == 0
        await eventually(lambda: rekeyed_now(control_plane.url, tmp_path / "key"), what="it has no users")
        assert (tmp_path / "key").read_bytes() != key


async def rekeyed_now(url: str, key: Path) -> bool:
    """Whether the key could be changed: PostgreSQL notices a process's end a moment later."""
    with contextlib.suppress(FailedPrecondition):
        await rekey_file(url, key)
        return True
    return False


async def test_another_leads_when_the_leader_is_killed(tmp_path: Path) -> None:
    async with plane(tmp_path, "n1", "n2", "n3") as control_plane:
        leader, other = control_plane.replicas
        await run_demo(control_plane, leader)
        await leader.end(signal.SIGKILL)
        await run_workers(other, "late", 1)  # acknowledged while there is no leader
        await eventually(lambda: control_plane.has_led(other), seconds=PATIENCE, what="the other one leads")
        await eventually(lambda: runs(other, "late", 1), seconds=PATIENCE)
        assert await all_online(other, "n1", "n2", "n3")
        assert false_alarms(control_plane) == 0
        await leader.start()
        await eventually(lambda: all_online(leader, "n1", "n2", "n3"), seconds=PATIENCE)
        assert control_plane.moved() == []


async def test_a_frozen_leader_that_comes_back_does_no_harm(tmp_path: Path) -> None:
    async with plane(tmp_path, "n1", "n2") as control_plane:
        leader, other = control_plane.replicas
        await run_demo(control_plane, leader)
        leader.child.send_signal(signal.SIGSTOP)
        await eventually(lambda: control_plane.has_led(other), seconds=PATIENCE, what="the other one leads")
        await run_workers(other, "late", 1)
        await eventually(lambda: runs(other, "late", 1), seconds=PATIENCE)
        leader.child.send_signal(signal.SIGCONT)
        await eventually(
            lambda: "leads_no_more" in leader.output, seconds=PATIENCE, what="the former leader stops leading"
        )
        for replica in control_plane.replicas:
            await eventually(lambda r=replica: runs(r, "late", 1), seconds=PATIENCE)
            await eventually(lambda r=replica: all_online(r, "n1", "n2"), seconds=PATIENCE)
        assert "node_offline" not in leader.output
        assert control_plane.moved() == []


async def test_the_database_may_be_gone_for_a_while(tmp_path: Path) -> None:
    async with plane(tmp_path, "n1", "n2") as control_plane:
        leader, other = control_plane.replicas
        await run_demo(control_plane, other)
        control_plane.server.kill()
        loop = asyncio.get_running_loop()
        until = loop.time() + MORE * LEASE
        await eventually(lambda: loop.time() > until, seconds=PATIENCE)
        assert [r.child.returncode for r in control_plane.replicas] == [None, None], "they wait for it"
        assert [await is_serving(f"127.0.0.1:{r.port}") for r in control_plane.replicas] == [False, False]
        control_plane.server.start()
        await eventually(lambda: runs(leader, "demo", 2), seconds=PATIENCE)
        await run_workers(leader, "late", 1)
        for replica in control_plane.replicas:
            await eventually(lambda r=replica: runs(r, "late", 1), seconds=PATIENCE)
            await eventually(lambda r=replica: all_online(r, "n1", "n2"), seconds=PATIENCE)
            await eventually(lambda r=replica: is_serving(f"127.0.0.1:{r.port}"), seconds=PATIENCE)
        assert (false_alarms(control_plane), control_plane.moved()) == (0, [])
