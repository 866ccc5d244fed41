"""A whole system and its dedicated connectors, as tests use them."""

from __future__ import annotations

import contextlib
from typing import Any

import psutil

from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED, OPERATION_STEP_STATE_PENDING
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.errors import Unavailable
from keelman.runtime.processes.process_trees import MARK
from support.cli.system import Keelman
from support.eventually import eventually
from support.state.dedicated import Dedicated
from support.state.topics import ENDED


class System:
    """A system, its dedicated connectors and its brokers."""

    def __init__(self, keelman: Keelman, dedicated: Dedicated, servers: str) -> None:
        self.keelman, self.dedicated, self.servers = keelman, dedicated, servers

    async def create(self, name: str, config: dict[str, str], **more: Any) -> Any:
        """Creates a dedicated connector that comes up."""
        operation = await self.dedicated.ended(await self.dedicated.create(name, config, self.servers, **more))
        assert operation.state == OPERATION_STATE_SUCCEEDED, (operation, self.keelman.logs())
        assert await self.dedicated.state(name) == "RUNNING"
        return operation

    async def done(self, answer: Any) -> Any:
        """Waits for the operation of an answer, which must succeed."""
        operation = await self.dedicated.ended(answer)
        assert operation.state == OPERATION_STATE_SUCCEEDED, (operation, self.keelman.logs())
        return operation

    async def deleted(self, *names: str) -> None:
        """Deletes these connectors, all at once."""
        answers = [await self.dedicated.delete(name) for name in names]
        for name, answer in zip(names, answers, strict=True):
            await self.done(answer)
            assert await self.dedicated.state(name) == "GONE"

    async def begun(self, answer: Any, step: int) -> None:
        """Waits until a step of an operation has begun."""

        async def has_begun() -> bool:
            with contextlib.suppress(Unavailable):
                operation = await self.dedicated.operation(answer.operation.name)
                return operation.steps[step].state != OPERATION_STEP_STATE_PENDING
            return False

        await eventually(has_begun, what=f"step {step} begins")

    async def eventually_done(self, answer: Any) -> None:
        """The same while the state service restarts."""

        async def has_ended() -> Any:
            with contextlib.suppress(Unavailable):
                operation = await self.dedicated.operation(answer.operation.name)
                return operation if operation.state in ENDED else None

        operation = await eventually(has_ended, what="the operation ends")
        assert operation.state == OPERATION_STATE_SUCCEEDED, (operation, self.keelman.logs())

    async def partitions(self, *topics: str) -> dict[str, tuple[int, str]]:
        """Partitions and cleanup.policy of topics."""
        async with TopicBrokers.open({"bootstrap.servers": self.servers}) as brokers:
            result = await brokers.describe(topics)
            configs = await brokers.configs(topics)
        return {n: (len(t.partitions), configs[n]["cleanup.policy"].value or "") for n, t in result.topics.items()}

    def workers(self, name: str) -> list[int]:
        """Process ids of its workers, by their agent's mark."""
        workers = []
        for process in self.keelman.processes():
            with contextlib.suppress(psutil.Error):
                if name in process.environ().get(MARK, ""):
                    workers.append(process.pid)
        return workers
