"""Queries a Kafka cluster for its id, and for the leader and replicas of each partition."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError

from keelman.kafka.clients import Admin, admin_client, no_broker
from keelman.model.errors import Unavailable

CLIENT = "keelman-cluster-state"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition with its leader (-1: it has none) and its replicas, by broker id."""

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]

    @property
    def name(self) -> str:
        """The name in the form of Kafka's tools."""
        return f"{self.topic}-{self.number}"

    @property
    def is_whole(self) -> bool:
        """True when it has a leader and all its replicas are in sync."""
        return self.leader >= 0 and self.in_sync >= set(self.replicas)


async def kafka_cluster_id(properties: Mapping[str, str], *, seconds: float, client_id: str = CLIENT) -> str:
    """Returns the id of the cluster that these client properties, named as in Java, lead to.

    Raises Unavailable when no broker answers in that time, Unauthenticated when one refuses this client or is not
    trusted, InvalidArgument for invalid properties.
    """
    async with _asked(properties, seconds, client_id) as admin:
        return str((await admin._get_cluster_metadata([])).to_object()["cluster_id"])


async def partitions_of(properties: Mapping[str, str], *, seconds: float) -> list[Partition]:
    """Returns all partitions of the cluster, also of internal topics, by name. Raises as `kafka_cluster_id`."""
    async with _asked(properties, seconds) as admin:
        partitions = [
            _partition(topic["topic"], p) for topic in await admin.describe_topics() for p in topic["partitions"]
        ]
    return sorted(partitions, key=lambda p: (p.topic, p.number))


def _partition(topic: str, said: Mapping[str, Any]) -> Partition:
    return Partition(topic, said["partition"], said["leader"], tuple(said["replicas"]), frozenset(said["isr"]))


@contextlib.asynccontextmanager
async def _asked(properties: Mapping[str, str], seconds: float, client_id: str = CLIENT) -> AsyncIterator[Admin]:
    try:
        async with asyncio.timeout(seconds), admin_client(properties, client_id=client_id) as admin:
            yield admin
    except TimeoutError:
        servers = properties.get("bootstrap.servers")
        raise Unavailable(f"no broker answers at {servers} within {seconds:g} s", reason="NO_BROKER") from None
    except (KafkaError, OSError) as error:
        raise no_broker(properties, error) from None
