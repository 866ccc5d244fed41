"""Parts of a cluster of brokers for tests: its properties, a request, and the partition that coordinates a name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest_v0
from aiokafka.protocol.api import Request

from keelman.connect.java.text import string_hash
from support.brokers.broker import INTERNAL_PARTITIONS
from support.eventually import eventually

MOVE_SECONDS = 300.0
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"

# A frozen broker is given up after 4 s, not 9, a broker that falls behind leaves the in-sync replicas after 3 s, not
# 30, and a lost controller is replaced after 2 s. Brokers on a busy machine miss shorter limits.
QUICK = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "metadata.max.idle.interval.ms": "5000",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "share.coordinator.state.topic.num.partitions": "1",
    "auto.leader.rebalance.enable": "false",  # a test moves leaders itself
}


class Reassign(Request[AlterPartitionReassignmentsRequest_v0]):  # type: ignore[misc]  # aiokafka has no types
    """AlterPartitionReassignments 0 (KIP-455) of one partition."""

    API_KEY = AlterPartitionReassignmentsRequest_v0.API_KEY

    def __init__(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        self._topics: list[Any] = [(topic, [(partition, list(replicas), {})], {})]

    def build(
        self, request_struct_class: type[AlterPartitionReassignmentsRequest_v0]
    ) -> AlterPartitionReassignmentsRequest_v0:
        """The request for the version that the broker takes."""
        return request_struct_class(timeout_ms=int(MOVE_SECONDS * 1000), topics=self._topics, tags={})


@dataclass(frozen=True, slots=True)
class Led:
    """One partition: its leader (-1: none), its replicas with the preferred leader first, and those in sync."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


async def until(condition: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
    """Waits for a condition. Raises AssertionError after the time."""
    value: Callable[[], bool | Awaitable[bool]] = condition
    await eventually(value, seconds=seconds, what=what)


def coordinating(name: str, partitions: int) -> int:
    """The partition with the records of a group or transactional id, chosen by Java's hash of the name, as in Kafka."""
    value = string_hash(name)
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions
