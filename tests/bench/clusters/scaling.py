"""A worker cluster that scales by default settings: the time from the load until scaling out begins, and ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bench.clusters.dedicated import in_rounds
from bench.measuring.figures import Figure
from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.operation_pb2 import OPERATION_KIND_SCALE, Operation
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from support.copying.loads import COSTLY, Numbers
from support.eventually import eventually
from support.state.dedicated import SUCCEEDED, Dedicated, file_source

GOALS = {"begun": "<= 30", "done": "<= 5"}
BATCH = 20_000
CAPACITY = DedicatedCapacity(
    autoscale=Autoscale(max_workers=2, tasks_per_worker=1, scale_out_cpu_percent=12, scale_in_cpu_percent=2)
)
"""The times are the default ones. A host that does other work too leaves a connector a small share of a processor."""


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Each round has a connector of its own. The load comes once it has been idle for some time."""
    return await in_rounds("scale-out", _round, GOALS, folder, rounds=rounds, say=say)


async def _round(dedicated: Dedicated, folder: Path, servers: str, turn: int) -> dict[str, float]:
    name = f"c{turn}"
    numbers = Numbers(folder / f"{name}.txt", BATCH)
    config = file_source(numbers.path, name, **COSTLY)
    result = await dedicated.ended(await dedicated.create(name, config, servers, capacity=CAPACITY), seconds=300)
    assert result.state == SUCCEEDED, result

    async def step() -> Operation | None:
        answer = await dedicated.operations.ListOperations(ListOperationsRequest(kind=OPERATION_KIND_SCALE))
        return next(
            (
                operation
                for operation in answer.operations
                if operation.target.name == name and operation.HasField("end_time")
            ),
            None,
        )

    begun = time.time()
    async with numbers.load():
        outcome = await eventually(step, seconds=180, what="it is scaled out")
    assert outcome.state == SUCCEEDED, outcome
    await dedicated.ended(await dedicated.delete(name), seconds=300)
    created, ended = (item.ToNanoseconds() / 1e9 for item in (outcome.create_time, outcome.end_time))
    return {"begun": created - begun, "done": ended - created}
