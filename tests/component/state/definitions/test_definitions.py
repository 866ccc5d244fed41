"""Connector definitions, applied to a real worker on a real broker by operations of the state service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.api.connect.v1 import operation_pb2
from keelman.api.connect.v1.operation_service_pb2 import CancelOperationRequest
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.state.definitions import ABSENT, FILE_SOURCE, PAUSED, RUNNING, STOPPED, Definitions, connected, worker_of
from support.state.service import free_range, state_in_loop
from support.state.topics import states
from support.worker.processes import FENCED, LinkSide, Run, WorkerProcess, link_side

pytestmark = pytest.mark.component
SUCCEEDED, FAILED = operation_pb2.OPERATION_STATE_SUCCEEDED, operation_pb2.OPERATION_STATE_FAILED
CANCELED = operation_pb2.OPERATION_STATE_CANCELED
CONFIG = {"connector.class": FILE_SOURCE, "file": "/nowhere/in", "topic": "definitions", "my.password": "s3cret"}


@dataclass
class World:
    """A state service, and the worker of its one worker cluster."""

    definitions: Definitions
    worker: WorkerProcess
    link: LinkSide

    async def config(self, name: str) -> dict[str, str]:
        """The connector's configuration in its worker; empty if it does not exist."""
        answer = await self.worker.ask("GET", f"/connectors/{name}/config")
        return {} if answer.status_code == 404 else {k: v for k, v in answer.json().items() if k != "name"}


@pytest_asyncio.fixture(scope="module")
async def world(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("definitions")
    async with (
        link_side() as (link, spark),
        state_in_loop(folder / "home", worker_ports=free_range(2)) as (_, port),
        connected(port) as (clients, agent),
        worker_of(clients, agent, "defined", bootstrap=bootstrap, folder=folder / "worker", spark=spark) as worker,
    ):
        yield World(Definitions(clients, "defined"), worker, link)


async def test_a_connector_runs_pauses_stops_changes_and_goes(world: World) -> None:
    definitions, worker = world.definitions, world.worker
    created = await definitions.create("life", CONFIG, connector="Life of it", labels={"team": "blue"})
    assert (created.generation, created.status.applied_generation) == (1, 0)
    assert created.spec.config["my.password"] == "[hidden]"
    assert await world.config("Life of it") == {}, "nothing is applied by itself"

    operation = await definitions.apply("life", PAUSED)
    assert operation.state == SUCCEEDED, operation
    assert list(states(operation).values()) == ["DONE", "SKIPPED", "DONE", "DONE"]
    assert (await worker.states("Life of it"))[0] == "PAUSED"
    assert await world.config("Life of it") == CONFIG

    operation = await definitions.apply("life")
    assert operation.state == SUCCEEDED, operation
    assert list(states(operation).values()) == ["DONE", "SKIPPED", "DONE", "DONE"]
    assert await worker.states("Life of it") == ["RUNNING", "RUNNING"]
    assert (await definitions.apply("life", STOPPED)).state == SUCCEEDED
    assert await worker.states("Life of it") == ["STOPPED"]

    definition = await definitions.get("life")
    assert dict(definition.spec.config) == CONFIG
    assert (definition.goal, definition.status.applied_goal, definition.status.applied_generation) == (
        STOPPED,
        STOPPED,
        1,
    )
    shown = dict(definition.spec.config) | {"my.password": "[hidden]", "file": "/nowhere/else"}
    changed = await definitions.update("life", definition.etag, config=shown)
    assert changed.generation == 2
    assert (await definitions.apply("life", RUNNING)).state == SUCCEEDED
    assert await world.config("Life of it") == CONFIG | {"file": "/nowhere/else"}

    request = pb.ListConnectorDefinitionsRequest(labels={"team": "blue"}, worker_cluster="defined")
    [listed] = (await definitions.clients.definitions.ListConnectorDefinitions(request)).connector_definitions
    assert listed.spec.config["my.password"] == "[hidden]"
    with translated(), pytest.raises(FailedPrecondition, match="apply it as ABSENT first"):
        await definitions.delete("life")
    with translated(), pytest.raises(FailedPrecondition, match=r"spec.connector: .* apply the definition as ABSENT"):
        await definitions.update("life", connector="other")
    assert (await definitions.apply("life", ABSENT)).state == SUCCEEDED
    assert await world.config("Life of it") == {}
    assert list(states(await definitions.apply("life", ABSENT)).values()) == ["DONE", "SKIPPED", "DONE"]
    await definitions.delete("life")


async def test_what_connect_refuses_leaves_nothing_behind(world: World) -> None:
    definitions = world.definitions
    await definitions.create("refused", CONFIG | {"tasks.max": "0"})
    operation = await definitions.apply("refused", PAUSED)
    assert (operation.state, operation.error.code, operation.error.reason) == (
        FAILED, "INVALID_ARGUMENT", "CONFIG_REFUSED",
    )  # fmt: skip
    assert "tasks.max" in operation.error.message
    assert list(states(operation).values()) == ["UNDONE", "SKIPPED", "FAILED", "PENDING"]
    assert await world.config("refused") == {}
    definition = await definitions.get("refused")
    assert (definition.status.message, definition.status.applied_generation) == (operation.error.message, 0)

    await definitions.update("refused", config=CONFIG)
    assert (await definitions.apply("refused")).state == SUCCEEDED
    await definitions.update("refused", config=CONFIG | {"tasks.max": "0"})
    operation = await definitions.apply("refused", STOPPED)
    assert list(states(operation).values()) == ["UNDONE", "UNDONE", "FAILED", "PENDING"]
    await world.worker.reaches("refused", "RUNNING", "RUNNING")
    assert await world.config("refused") == CONFIG
    definition = await definitions.get("refused")
    assert (definition.generation, definition.status.applied_generation, definition.status.applied_goal) == (
        3,
        1 + 1,
        RUNNING,
    )


async def test_what_fails_is_told_by_its_trace_and_an_update_that_fails_is_taken_back(world: World) -> None:
    definitions, link = world.definitions, world.link
    link.slow = True
    await definitions.create("failing", CONFIG)
    try:
        name = await definitions.begin("failing")
        link.fail(await _new_run(link, "failing"), retriable=False, trace="no such disk\n  at line 1")
        operation = await definitions.ended(name)
        assert (operation.error.reason, operation.error.message) == ("CONNECTOR_FAILED", "task 0 failed: no such disk")
        assert list(states(operation).values()) == ["DONE", "DONE", "SKIPPED", "FAILED"]
        definition = await definitions.get("failing")
        assert (definition.status.applied_generation, definition.status.message) == (1, operation.error.message)
        assert await world.config("failing") == CONFIG, "it stays, for inspection"

        name = await definitions.begin("failing")
        link.fence(await _new_run(link, "failing"))
        assert (await definitions.ended(name)).state == SUCCEEDED, "the failed parts are restarted"

        await definitions.update("failing", config=CONFIG | {"file": "/nowhere/else"})
        name = await definitions.begin("failing")
        link.fail(await _new_run(link, "failing"), retriable=False, trace="no such disk\n  at line 1")
        operation = await definitions.ended(name)
        assert operation.state == FAILED
        assert list(states(operation).values()) == ["UNDONE", "UNDONE", "SKIPPED", "FAILED"]
        assert await world.config("failing") == CONFIG
        assert (await definitions.get("failing")).status.applied_generation == 1
    finally:
        link.slow = False


async def _new_run(link: LinkSide, connector: str) -> Run:
    """The run that waits for a fence."""
    runs = lambda: [run for run in link.of(connector, state=FENCED) if run.confirmed is None]  # noqa: E731
    await eventually(runs, what=f"a new run of {connector}")
    return runs()[-1]


async def test_drift_is_told_and_put_right_when_asked(world: World) -> None:
    definitions, worker = world.definitions, world.worker
    await definitions.create("drifting", CONFIG)
    assert (await definitions.apply("drifting")).state == SUCCEEDED

    async def drifts(*expected: str) -> None:
        async def told() -> bool:
            status = (await definitions.get("drifting")).status
            return list(status.drifts) == list(expected) and status.drifted == bool(expected)

        await eventually(told, what=f"drifts are {expected}")

    await drifts()
    await worker.ask("PUT", "/connectors/drifting/config", CONFIG | {"tasks.max": "3", "my.password": "renewed-canary"})
    await worker.ask("PUT", "/connectors/drifting/pause")
    changed = "config: tasks.max is 3, was not there when applied"
    await drifts(changed, "state: PAUSED, was applied as RUNNING")
    assert (await definitions.get("drifting")).status.connector.name == "drifting"
    assert (await definitions.apply("drifting")).state == SUCCEEDED
    assert await world.config("drifting") == CONFIG
    await worker.reaches("drifting", "RUNNING", "RUNNING")
    await worker.ask("DELETE", "/connectors/drifting")
    await drifts("connector is missing; the applied goal is RUNNING")
    await definitions.delete("drifting", keep_connector=True)


async def test_what_cannot_be_reached_is_waited_for(world: World) -> None:
    clients = world.definitions.clients
    await clients.create_workers("unreachable", count=1)
    definitions = Definitions(clients, "unreachable")
    with translated(), pytest.raises(InvalidArgument, match=r"spec\.worker_cluster: 'nowhere'"):
        await Definitions(clients, "nowhere").create("waiting", CONFIG)
    await definitions.create("waiting", CONFIG)
    with translated(), pytest.raises(FailedPrecondition, match="is STOPPED: start it first"):
        await definitions.begin("waiting")
    await clients.start_workers("unreachable")
    name = await definitions.begin("waiting")

    async def waits() -> bool:
        message = (await definitions.operation(name)).message
        return (
            message.startswith("no worker of worker cluster 'unreachable' can be reached: ")
            and "waits until" in message
        )

    await eventually(waits)
    with translated(), pytest.raises(FailedPrecondition, match=f"operation {name} on .* has not ended"):
        await definitions.begin("waiting")
    await clients.operations.CancelOperation(CancelOperationRequest(name=name, reason="not today"))
    operation = await definitions.ended(name)
    assert (operation.state, operation.message) == (CANCELED, "canceled: not today")
    assert not (await definitions.get("waiting")).status.applying
