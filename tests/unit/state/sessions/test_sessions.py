"""The changes that wake the session of a node."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import secret_service_pb2 as secrets_pb
from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.model.errors import Unavailable
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
        with contextlib.suppress(Unavailable):
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
