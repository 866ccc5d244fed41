"""Which broker a group's client calls after its coordinator has moved."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.coordination import FindCoordinatorRequest

from keelman.kafka import coordinator_lookup, reaching
from keelman.kafka.groups.protocol import GroupClient
from keelman.model.errors import Unavailable
from support.eventually import eventually


class Brokers:
    """Brokers of which some are silent."""

    def __init__(self, *coordinators: int, silent: tuple[int, ...] = (), known: tuple[int, ...] = (0,)) -> None:
        self.coordinators, self.silent = list(coordinators), silent
        self.asked: list[tuple[int, str]] = []

        brokers = [SimpleNamespace(nodeId=node, host=f"h{node}", port=9092) for node in known]
        self.cluster = SimpleNamespace(brokers=lambda: brokers)
        self._conns: dict[Any, Any] = {}

    async def send(self, node: int, request: Any, *, group: Any = None) -> Any:
        self.asked.append((node, type(request).__name__))
        if node in self.silent:
            await asyncio.sleep(600)
        if isinstance(request, FindCoordinatorRequest):
            coordinator = self.coordinators.pop(0) if len(self.coordinators) > 1 else self.coordinators[0]
            return SimpleNamespace(error_code=0, coordinator_id=coordinator)
        if node < 0:
            raise KafkaConnectionError("refused")
        return SimpleNamespace(error_code=0, generation_id=1, leader_id="m", member_id="m", members=[])


def client(brokers: Brokers) -> GroupClient:
    return GroupClient(brokers, "g", session_ms=10_000, rebalance_ms=60_000)  # type: ignore[arg-type]


async def test_a_join_at_a_silent_coordinator_is_given_up_when_another_is_known() -> None:
    brokers = Brokers(1, 1, 2, silent=(1,))
    group = client(brokers)
    join = asyncio.ensure_future(group.join("m", "connect", [("p", b"")]))
    await eventually(lambda: (1, "JoinGroupRequest") in brokers.asked)
    for _ in range(2):
        with pytest.raises(Unavailable, match="no heartbeat answer"):
            await group.heartbeat(1, "m", seconds=0.05)
        await asyncio.sleep(0.05)
        assert not join.done(), "it may be slow, and no other is known"
    assert await group.heartbeat(1, "m", seconds=5) == 0
    async with asyncio.timeout(5):
        with pytest.raises(Unavailable, match="another broker now"):
            await join
        assert (await group.join("m", "connect", [("p", b"")])).member == "m"
    assert brokers.asked[-1] == (2, "JoinGroupRequest")


async def test_a_silent_broker_is_not_waited_for_to_say_who_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_lookup.random, "shuffle", lambda nodes: nodes.sort(reverse=True))
    monkeypatch.setattr(coordinator_lookup, "ANSWER_SECONDS", 0.05)
    brokers = Brokers(2, silent=(7,), known=(0, 7))
    assert (await client(brokers).join("m", "connect", [("p", b"")])).member == "m"
    assert [node for node, _ in brokers.asked] == [7, 0, 2]


async def test_a_broker_that_was_silent_lately_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_lookup.random, "shuffle", lambda nodes: nodes.sort(reverse=True))
    reaching.note_silent("h7", 9092)
    brokers = Brokers(2, known=(0, 7))
    brokers._conns = {(0, "default"): SimpleNamespace(_requests=["a batch that replicas hold up"])}
    assert (await client(brokers).join("m", "connect", [("p", b"")])).member == "m"
    assert [node for node, _ in brokers.asked] == [0, 2]
    with reaching.connecting("h7", 9092):
        pass
    assert not reaching.is_silent("h7", 9092), "it took a connection"


async def test_a_coordinator_that_cannot_be_asked_is_looked_for_again() -> None:
    brokers = Brokers(-1, 2)
    group = client(brokers)
    with pytest.raises(Unavailable, match="does not answer"):
        await group.join("m", "connect", [("p", b"")])
    assert (await group.join("m", "connect", [("p", b"")])).generation == 1
