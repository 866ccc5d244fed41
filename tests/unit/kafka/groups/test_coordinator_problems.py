"""Why a group's coordinator does not answer, and whether the brokers are only about to choose it."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest

from keelman.kafka.groups.coordinator import coordinator_problem


class Brokers:
    """Brokers 1 and 2; a client of them. `leader` and `replicas` are those of a partition of the groups' topic."""

    def __init__(self, find: int = 0, describe: int = 0, *partitions: tuple[int, tuple[int, ...]]) -> None:
        self._find, self._describe, self._partitions = find, describe, partitions
        brokers = [SimpleNamespace(nodeId=1, host="h1", port=9092)]
        self.cluster = SimpleNamespace(brokers=lambda: brokers, broker_metadata=lambda _: brokers[0])
        self._conns: dict[Any, Any] = {}

    def get_random_node(self) -> int:
        return 1

    async def send(self, _: int, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=self._find, coordinator_id=1)
        if isinstance(request, DescribeGroupsRequest):
            return SimpleNamespace(groups=[(self._describe, "g")])
        partitions = [{"leader": leader, "replicas": replicas} for leader, replicas in self._partitions]
        told = {"brokers": [{"node_id": 1}, {"node_id": 2}], "topics": [{"partitions": partitions}]}
        return SimpleNamespace(to_object=lambda: told)


NONE, OTHER = GroupCoordinatorNotAvailableError.errno, NotCoordinatorForGroupError.errno


@pytest.mark.parametrize(
    ("brokers", "forming"),
    [
        (Brokers(NONE), True),
        (Brokers(NONE, 0, (-1, (1,)), (2, (2,))), True),
        (Brokers(NONE, 0, (-1, (3,)), (2, (2,))), False),
        (Brokers(0, OTHER), True),
    ],
    ids=["no topic yet", "a leader is being chosen", "its only broker is gone", "the broker does not know it yet"],
)
async def test_brokers_that_are_about_to_choose_a_coordinator_are_told_from_one_that_is_gone(
    brokers: Any, *, forming: bool
) -> None:
    problem = await coordinator_problem(brokers, "g", seconds=5)
    assert problem is not None
    assert problem.forming is forming
    assert "coordinator of group 'g'" in problem.text


async def test_a_coordinator_that_answers_is_no_problem() -> None:
    brokers: Any = Brokers()
    assert await coordinator_problem(brokers, "g", seconds=5) is None
