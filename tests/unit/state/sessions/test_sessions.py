"""The changes that wake the session of a node."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import secret_service_pb2 as secrets_pb
from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING
from keelman.model.errors import Conflict, Unavailable
from keelman.model.node import NodeState
from keelman.model.workload import Goal, WorkerSpec, Workload
from keelman.runtime.supervise import Siblings
from keelman.state.nouns import secret
from keelman.state.replicas.heard import Heard
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import subjects_of
from keelman.state.sessions import sessions
from keelman.state.sessions.sessions import Sessions
from support.eventually import eventually
from support.state.stores import open_store

PROPERTIES = {
    "config.providers": "s",
    "config.providers.s.class": "keelman.SecretsConfigProvider",
    "config.providers.s.param.names": "db-*",
}
WORKER = Workload("worker/demo/0", "n1", 1, Goal.RUNNING, WorkerSpec("demo", "h", 8083, PROPERTIES, "h:7430"), "u")


class Agent:
    """An agent that registers its node and then sends nothing."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.told: list[pb.OpenSessionResponse] = []

    async def requests(self) -> AsyncIterator[pb.OpenSessionRequest]:
        yield pb.OpenSessionRequest(registration=pb.Registration(node=self.node, agent_address="h:1", version="1"))
        await asyncio.Event().wait()

    async def write(self, message: pb.OpenSessionResponse) -> None:
        self.told.append(message)

    async def serve(self, served: Sessions) -> None:
        with contextlib.suppress(Unavailable, Conflict):
            await served.serve(self.requests(), self.write)

    @property
    def has_assignments(self) -> bool:
        return any(message.HasField("assignments") for message in self.told)

    @property
    def secrets(self) -> list[str]:
        """The names of the workloads that it was last assigned."""
        secrets = [message.secrets for message in self.told if message.HasField("secrets")]
        return [secret.name for secret in secrets[-1].secrets] if secrets else []


async def test_a_secret_wakes_those_nodes_alone_whose_workers_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    look = sessions.secrets_of

    def looking(node: str, *more: Any) -> pb.NodeSecrets:
        looked.append(node)
        return look(node, *more)

    monkeypatch.setattr(sessions, "secrets_of", looking)
    async with open_store(str(tmp_path / "state.db")) as store:
        commits, agents = Hub(), [Agent("n1"), Agent("n2")]
        served = Sessions(store, commits, Heard(), heartbeat_seconds=60, timeout_seconds=600)
        store.listen(lambda changes: commits.wake(subjects_of(changes)))
        store.listen(served.changed)

        async def keep(name: str) -> None:
            async with store.write() as tx:
                secret.create(tx, secrets_pb.CreateSecretRequest(name=name, values={"k": f"value-of-{name}"}))

        async with Siblings() as siblings:
            for agent in agents:
                siblings.start(agent.serve(served))
            await eventually(lambda: all(agent.has_assignments for agent in agents), seconds=20)
            looked.clear()
            await keep("db-early")
            async with store.write() as tx:
                tx.put(WORKER)
            await eventually(lambda: agents[0].secrets == ["db-early"], seconds=20)
            assert looked == ["n1"], "for its worker, and not for a secret that no workload read"
            await keep("other")
            await keep("db-late")
            await eventually(lambda: agents[0].secrets == ["db-early", "db-late"], seconds=20)
            assert looked == ["n1", "n1"]
            served.close()


class LivelyAgent(Agent):
    """An agent that reports a workload once it may, and then sends heartbeats."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.may_report = asyncio.Event()

    async def requests(self) -> AsyncIterator[pb.OpenSessionRequest]:
        yield pb.OpenSessionRequest(registration=pb.Registration(node=self.node, agent_address="h:1", version="1"))
        await self.may_report.wait()
        report = pb.WorkloadReport(number=1, complete=True)
        report.statuses[WORKER.name].state = WORKLOAD_STATE_RUNNING
        report.statuses[WORKER.name].generation = 1
        yield pb.OpenSessionRequest(report=report)
        while True:
            yield pb.OpenSessionRequest(heartbeat=pb.Heartbeat())
            await asyncio.sleep(0.01)

    def count(self, field: str) -> int:
        return sum(message.WhichOneof("message") == field for message in self.told)


async def test_heartbeats_are_answered_while_a_report_waits_for_its_turn(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "state.db")) as store:
        commits, agent = Hub(), LivelyAgent("n1")
        served = Sessions(store, commits, Heard(), heartbeat_seconds=60, timeout_seconds=600)
        async with store.write() as tx:
            tx.put(WORKER)
        async with Siblings() as siblings:
            siblings.start(agent.serve(served))
            await eventually(lambda: agent.has_assignments)
            async with store.write():
                agent.may_report.set()
                await eventually(lambda: agent.count("heartbeat_reply") > 3)
                assert agent.count("report_received") == 0
            await eventually(lambda: agent.count("report_received") == 1)
            assert store.snapshot.workloads[WORKER.name].has_run
            served.close()


async def test_an_agent_is_told_that_its_registration_waits(tmp_path: Path) -> None:
    clock = [0.0]
    heard = Heard(lambda: clock[0])
    async with open_store(str(tmp_path / "state.db")) as store:
        first, again = Agent("n1"), LivelyAgent("n1")
        served = Sessions(store, Hub(), heard, heartbeat_seconds=0.02, timeout_seconds=10)
        store.listen(served.changed)
        heard.listens()
        async with Siblings() as siblings:
            siblings.start(first.serve(served))
            await eventually(lambda: first.has_assignments)
            clock[0] = 100.0  # silent for long
            async with store.write():
                siblings.start(again.serve(served))
                await eventually(lambda: again.count("heartbeat_reply") > 2)
                assert again.count("welcome") == 0
                assert heard.silence("n1") == 0, "an agent that waits is alive"
            await eventually(lambda: again.count("welcome") == 1)
            served.close()


async def test_no_node_is_judged_by_a_process_that_was_behind(tmp_path: Path) -> None:
    clock = [0.0]
    heard = Heard(lambda: clock[0])
    async with open_store(str(tmp_path / "state.db")) as store:
        agent = Agent("n1")
        served = Sessions(store, Hub(), heard, heartbeat_seconds=2, timeout_seconds=10)
        heard.listens()
        async with Siblings() as siblings:
            siblings.start(agent.serve(served))
            await eventually(lambda: agent.has_assignments)

            async def judged_at(moment: float) -> NodeState:
                clock[0] = moment
                await served.judge(store)
                return store.snapshot.nodes["n1"].state

            assert await judged_at(1) is NodeState.ONLINE
            assert await judged_at(12) is NodeState.ONLINE, "it did not run for eleven seconds: what was sent waits"
            for second in range(13, 23):
                assert await judged_at(second) is NodeState.ONLINE
            assert await judged_at(23) is NodeState.OFFLINE
            served.close()
