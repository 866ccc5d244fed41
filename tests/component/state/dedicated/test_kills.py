"""The state service is killed between a write of an operation on a dedicated connector and the record of that write.

The next process continues the operation, or reverts it. The workers are a simulated agent's, so no connector ever comes
up.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import worker_cluster_service_pb2 as wc
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.operation_pb2 import OPERATION_ROLLBACK_DONE, OPERATION_STATE_CANCELED
from keelman.model.errors import FailedPrecondition, KeelmanError, NotFound
from keelman.state.database.failpoints import DEDICATED
from support.eventually import eventually
from support.state.dedicated import FAILED, SUCCEEDED, Dedicated, file_source
from support.state.definitions import connected
from support.state.service import Agent, Clients, StateProcess

pytestmark = pytest.mark.component
CONFIG = file_source("/nowhere/in", "t")
CASES = [
    ("dedicated-workers-written", 0), ("dedicated-workers-written", 1), ("dedicated-stopped", 0),
    ("dedicated-deleted", 0),
]  # fmt: skip


def test_each_point_has_a_case() -> None:
    assert {name for name, _ in CASES} == set(DEDICATED)


@contextlib.asynccontextmanager
async def dedicated(state: StateProcess) -> AsyncIterator[tuple[Clients, Agent, Dedicated]]:
    async with connected(state.port) as (clients, agent):
        yield clients, agent, Dedicated(clients.channel)


async def made(single_dedicated: Dedicated, bootstrap: str) -> None:
    """A dedicated connector whose worker cluster runs, and whose connector cannot be written."""
    operation = await single_dedicated.ended(await single_dedicated.create("one", CONFIG, bootstrap))
    assert (operation.state, operation.error.reason) == (FAILED, "STEP_DEADLINE"), operation


async def count_of(clients: Clients) -> int:
    request = wc.GetWorkerClusterRequest(name="one")
    return (await clients.clusters.GetWorkerCluster(request)).worker_cluster.spec.count


async def asked(single_dedicated: Dedicated, *, is_delete: bool) -> Any:
    """The answer to a request that may be repeated: the state service may have died before it answered the first."""
    if is_delete:
        return await single_dedicated.delete("one", request_id="again")
    return await single_dedicated.update("one", capacity=DedicatedCapacity(count=2), request_id="again")


@pytest.mark.parametrize(("point", "passages"), CASES)
async def test_a_kill_at_any_point_is_made_good(bootstrap: str, tmp_path: Path, point: str, passages: int) -> None:
    armed = tmp_path / "armed"
    state = StateProcess(tmp_path / "home", "--operation-wait-seconds", "1")
    state.environment = {"KEELMAN_FAILPOINT": point, "KEELMAN_FAILPOINT_FILE": str(armed)}
    await state.start()
    is_delete = point != "dedicated-workers-written"
    try:
        async with dedicated(state) as (_, _, connectors):
            await made(connectors, bootstrap)
            armed.write_text(str(passages))
            with contextlib.suppress(KeelmanError):
                await asked(connectors, is_delete=is_delete)
            async with asyncio.timeout(300):
                assert await state.child.wait() == -signal.SIGKILL, state.output[-2000:]
        state.environment = {}
        if passages:  # it is being reverted, which its agent's new session may delay
            state.flags = ("--operation-wait-seconds", "60")
        await state.start()
        async with dedicated(state) as (clients, agent, connectors):
            operation = await connectors.ended(await asked(connectors, is_delete=is_delete))
            if is_delete:
                assert operation.state == SUCCEEDED
                assert await connectors.state("one") == "GONE"
                with pytest.raises(NotFound):
                    await count_of(clients)
                await eventually(lambda: not agent.workloads, what="nothing is left on the node")
                return
            assert (operation.state, operation.rollback) == (FAILED, OPERATION_ROLLBACK_DONE), operation
            connector = await connectors.get("one")
            assert (connector.spec.capacity.count, await count_of(clients)) == (1, 1), (
                "its former configuration is unchanged"
            )
            assert await connectors.state("one") == "FAILED"
    finally:
        await state.end(signal.SIGKILL)


async def test_a_delete_ends_what_is_under_way(bootstrap: str, tmp_path: Path) -> None:
    state = StateProcess(tmp_path / "home")
    await state.start()
    try:
        async with dedicated(state) as (clients, _, connectors):
            creating = await connectors.create("one", CONFIG, bootstrap)
            with pytest.raises(FailedPrecondition, match="dedicated connector 'one': change or delete that"):
                await clients.delete_workers("one")
            deleting = await connectors.delete("one")
            assert (await connectors.operation(creating.operation.name)).state == OPERATION_STATE_CANCELED
            assert (await connectors.ended(deleting)).state == SUCCEEDED
            assert await connectors.state("one") == "GONE"
            again = await connectors.create("one", CONFIG, bootstrap)
            assert again.dedicated_connector.uid != creating.dedicated_connector.uid
    finally:
        await state.end(signal.SIGKILL)
