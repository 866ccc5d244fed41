"""An autoscaled dedicated connector, as its tests use it."""

from __future__ import annotations

import contextlib
from typing import Any

from keelman.api.connect.v1.operation_pb2 import OPERATION_KIND_SCALE, OPERATION_STATE_SUCCEEDED, Operation
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.model.errors import Unavailable
from support.eventually import eventually
from support.state.dedicated import Dedicated


class Scaled:
    """A dedicated connector and the operations that scale it."""

    def __init__(self, dedicated: Dedicated, name: str) -> None:
        self.dedicated, self.name = dedicated, name

    async def steps(self) -> list[Operation]:
        """The operations, the newest first."""
        answer = await self.dedicated.operations.ListOperations(ListOperationsRequest(kind=OPERATION_KIND_SCALE))
        return [operation for operation in answer.operations if operation.target.name == self.name]

    async def scaled(self, workers: int) -> Operation:
        """The operation that gave it so many workers, once it has succeeded."""

        async def found() -> Any:
            with contextlib.suppress(Unavailable):
                steps = await self.steps()
                goal = f"{workers} worker{'s' if workers > 1 else ''}"
                if steps and steps[0].target.goal == goal and steps[0].state == OPERATION_STATE_SUCCEEDED:
                    return steps[0]
            return None

        return await eventually(found, what=f"{self.name} has {workers} workers")

    async def shown(self) -> tuple[int, int, str]:
        """Its workers, its present tasks.max, and the tasks.max that the client sent."""
        dedicated = await self.dedicated.get(self.name)
        return dedicated.status.workers, dedicated.status.tasks_max, dedicated.spec.config["tasks.max"]
