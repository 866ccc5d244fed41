"""The state service is killed at each point of operations on connectors.

The next process continues the operations or reverts them, and each request takes effect once.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keelman.api.connect.v1 import operation_pb2
from keelman.api.connect.v1.operation_service_pb2 import CancelOperationRequest, ListOperationsRequest
from keelman.model.errors import KeelmanError, Unavailable
from keelman.state.database.failpoints import ON_WORKERS, OPERATIONS
from support.eventually import eventually
from support.state.definitions import ABSENT, FILE_SOURCE, RUNNING, STOPPED, Definitions, connected, worker_of
from support.state.service import StateProcess, free_range
from support.worker.processes import WorkerProcess, link_side

pytestmark = pytest.mark.component
CONFIG = {"connector.class": FILE_SOURCE, "file": "/nowhere/in", "topic": "definitions"}
OTHER = CONFIG | {"file": "/nowhere/else"}
REFUSED = CONFIG | {"tasks.max": "0"}
SUCCEEDED, FAILED = operation_pb2.OPERATION_STATE_SUCCEEDED, operation_pb2.OPERATION_STATE_FAILED
CANCELED = operation_pb2.OPERATION_STATE_CANCELED
AT_START = ("operations-led", "operations-forgotten")
CHANGE = ("operation-begun", "step-begun", "step-tried", "step-ended", "operation-ended", "connector-written")
REFUSAL = ("step-failed", "operation-turned", "undo-tried", "undo-ended")
CANCEL = ("connector-steered", "connector-put-back")
DELETE = ("connector-deleted",)
Case = tuple[str, int]
CASES: list[Case] = [
    ("operations-led", 0),
    ("step-tried", 2),
    ("connector-written", 0),
    ("undo-tried", 0),
    ("connector-steered", 0),
    ("connector-deleted", 0),
]
"""Run by `make test`: points, each with the number of its former passages."""
OTHERS: list[Case] = [
    *((name, 0) for name in (*AT_START, *CHANGE, *REFUSAL, *CANCEL, *DELETE) if (name, 0) not in CASES),
    ("step-begun", 3),
]
"""Run by `make slow`."""


def test_each_point_has_a_case() -> None:
    assert {name for name, _ in (*CASES, *OTHERS)} == {*OPERATIONS, *ON_WORKERS}


@dataclass
class Killed:
    """A state service that ends at one point after the other; its worker keeps running."""

    state: StateProcess
    file: Path
    worker: WorkerProcess | None = None

    async def start(self, name: str) -> None:
        """Starts it with a point at which it will end once the file exists."""
        self.file.unlink(missing_ok=True)
        self.state.environment = {"KEELMAN_FAILPOINT": name, "KEELMAN_FAILPOINT_FILE": str(self.file)}
        await self.state.start()

    async def dead(self) -> None:
        async with asyncio.timeout(300):
            assert await self.state.child.wait() == -signal.SIGKILL, self.state.output[-2000:]

    @contextlib.asynccontextmanager
    async def definitions(self) -> AsyncIterator[Definitions]:
        async with connected(self.state.port) as (clients, _):
            yield Definitions(clients, "killed")

    async def config(self, name: str) -> dict[str, str]:
        assert self.worker is not None
        answer = await self.worker.ask("GET", f"/connectors/{name}/config")
        return {} if answer.status_code == 404 else {k: v for k, v in answer.json().items() if k != "name"}


@dataclass
class Story:
    """The requests for a stopped connector, and its expected final state."""

    name: str
    point: str
    ends: operation_pb2.OperationState.ValueType = SUCCEEDED
    config: dict[str, str] = field(default_factory=lambda: OTHER)

    def __post_init__(self) -> None:
        if self.point in REFUSAL:
            self.ends, self.config = FAILED, CONFIG
        elif self.point in CANCEL:
            self.ends, self.config = CANCELED, CONFIG
        elif self.point in DELETE:
            self.config = {}

    async def prepare(self, definitions: Definitions) -> None:
        await definitions.create(self.name, CONFIG)
        assert (await definitions.apply(self.name, STOPPED)).state == SUCCEEDED
        await definitions.update(self.name, config=REFUSED if self.point in REFUSAL else OTHER)

    async def ask(self, definitions: Definitions) -> str:
        """Requests the operation, as a client does that repeats a request without an answer."""
        goal = RUNNING if self.point in CANCEL else ABSENT if self.point in DELETE else STOPPED
        operation = await definitions.begin(self.name, goal, request_id=f"apply-{self.name}")
        if self.point in CANCEL:
            await eventually(lambda: _waits(definitions, operation), what="it waits for its task")
            with contextlib.suppress(KeelmanError):
                await definitions.clients.operations.CancelOperation(CancelOperationRequest(name=operation))
        return operation

    async def check(self, killed: Killed, definitions: Definitions) -> None:
        """The request has taken effect, once."""
        operation = await definitions.ended(await self.ask(definitions))
        assert operation.state == self.ends, (self.point, operation)
        assert await killed.config(self.name) == self.config, (self.point, operation)
        status = (await definitions.get(self.name)).status
        assert (status.operation, status.applying) == (operation.name, False)
        assert status.applied_generation == (2 if self.ends == SUCCEEDED else 1)
        request = ListOperationsRequest(target=operation.target)
        operations = (await definitions.clients.operations.ListOperations(request)).operations
        assert [operation.name for operation in operations][:1] == [operation.name]
        assert len(operations) == 2


async def _waits(definitions: Definitions, operation: str) -> bool:
    """Whether the operation waits for its task, or the state service is dead and there is nothing to wait for."""
    try:
        actual_operation = await definitions.operation(operation)
    except Unavailable:
        return True
    return actual_operation.state not in (operation_pb2.OPERATION_STATE_PENDING,) and (
        actual_operation.steps[-1].state != operation_pb2.OPERATION_STEP_STATE_PENDING
        or actual_operation.HasField("end_time")
    )


@pytest.mark.parametrize("cases", [CASES, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["some", "others"])
async def test_a_kill_at_any_point_is_made_good(bootstrap: str, tmp_path: Path, cases: list[Case]) -> None:
    killed = Killed(StateProcess(tmp_path / "home", "--worker-ports", free_range(2)), tmp_path / "armed")
    async with link_side() as (link, spark):
        link.slow = True
        await killed.start(cases[0][0])
        try:
            async with connected(killed.state.port) as (clients, agent):
                place = {"bootstrap": bootstrap, "folder": tmp_path / "worker", "spark": spark}
                stack = contextlib.AsyncExitStack()
                killed.worker = await stack.enter_async_context(worker_of(clients, agent, "killed", **place))
            async with stack:
                await _all(killed, cases)
        finally:
            await killed.state.end(signal.SIGKILL)


async def _all(killed: Killed, cases: list[Case]) -> None:
    for number, (point, passages) in enumerate(cases):
        story = Story(f"story-{number}", point)
        async with killed.definitions() as definitions:
            await story.prepare(definitions)
            if point in AT_START:
                operation = await story.ask(definitions)
                if point == "operations-forgotten":
                    await definitions.ended(operation)
                await killed.state.end()
                killed.file.write_text("0")
                flags = killed.state.flags
                killed.state.flags = (*flags, "--operations-kept=0") if point == "operations-forgotten" else flags
                await killed.state.spawn()
                await killed.dead()
                killed.state.flags = flags
            else:
                killed.file.write_text(str(passages))
                with contextlib.suppress(KeelmanError):
                    await story.ask(definitions)
                await killed.dead()
        await killed.start(cases[number + 1][0] if number + 1 < len(cases) else "none")
        async with killed.definitions() as definitions:
            await story.check(killed, definitions)
