"""A client for fetching and its settings, from Java's properties."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.clients import Client, client_arguments, no_broker
from keelman.kafka.contact import contact
from keelman.kafka.known_brokers import BROKERS
from keelman.model.errors import InvalidArgument
from keelman.runtime.background import Background
from keelman.runtime.logging import get_logger

_log = get_logger()


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How much is asked for at once, in bytes and milliseconds, and how much is kept for who takes it.

    A broker that has nothing to give answers after `max_wait_ms`; while nothing comes that `grows` to some seconds.
    """

    max_wait_ms: int = 500
    grows: bool = True
    min_bytes: int = 1
    answer_bytes: int = 4 << 20
    partition_bytes: int = 1 << 20
    held_bytes: int = 4 << 20
    check_crcs: bool = True
    rack: str = ""

    @staticmethod
    def of(properties: Mapping[str, str]) -> FetchSettings:
        """As a Java consumer's properties say, where they do. Raises InvalidArgument for numbers that are none."""
        plain = FetchSettings()

        def number(key: str, default: int) -> int:
            text = properties.get(key, "").strip()
            if text and not text.isdigit():
                raise InvalidArgument.of(key, text, "a number")
            return int(text or default)

        answer_bytes = number("fetch.max.bytes", plain.answer_bytes)
        return FetchSettings(
            max_wait_ms=number("fetch.max.wait.ms", plain.max_wait_ms),
            grows="fetch.max.wait.ms" not in properties,
            min_bytes=number("fetch.min.bytes", plain.min_bytes),
            answer_bytes=answer_bytes,
            held_bytes=min(answer_bytes, plain.held_bytes),
            partition_bytes=number("max.partition.fetch.bytes", plain.partition_bytes),
            check_crcs=properties.get("check.crcs", "true").strip().lower() != "false",
            rack=properties.get("client.rack", "").strip(),
        )


class FetchClient(Client):  # type: ignore[misc]
    """A copy run's client: it begins with what this process knows of the cluster, asks about the topics that are in use
    and no others, and never makes one by asking. Used in the loop that it was made in."""

    def __init__(self, properties: Mapping[str, str], *, client_id: str, request_timeout_ms: int = 30_000) -> None:
        """`properties` are Java's. Raises InvalidArgument."""
        super().__init__(**client_arguments(properties), client_id=client_id, request_timeout_ms=request_timeout_ms)
        self.properties = properties
        self._background = Background(self._unsynced)

    async def bootstrap(self) -> None:
        """Connects to a broker, to learn of the others where they are not known. Raises KafkaConnectionError that says
        what one said, and Unauthenticated when one would not have us."""
        async with contact(self.properties):
            if not self.cluster.brokers() and await self._resumed():
                return
            await self._background.close()
            await super().bootstrap()
            BROKERS.met(self.properties, self.cluster._brokers)

    async def close(self) -> None:
        """Ends at once."""
        await self._background.close()
        await super().close()

    async def _resumed(self) -> bool:
        """Whether one of the brokers that were known lately has taken us."""
        known = BROKERS.of(self.properties)
        self.cluster._brokers = known
        for node in random.sample(sorted(known), len(known)):
            if await self._get_conn(node) is not None:
                self._background.start(self._md_synchronizer())
                return True
        BROKERS.forget(self.properties)
        self.cluster._brokers = {}
        return False

    def _unsynced(self, error: BaseException) -> None:
        _log.warning("metadata_not_followed", error=repr(error))

    async def _metadata_update(self, cluster_metadata: Any, topics: Iterable[str]) -> bool:
        """The library's own asks the brokers to make the topics that are not there, where they may; and for all topics
        there are while none is named."""
        nodes = [broker.nodeId for broker in self.cluster.brokers()]
        nodes += [node for node, _group in self._conns if node == "bootstrap"]
        random.shuffle(nodes)
        for node in nodes:
            try:
                answer = await self.send(node, MetadataRequest(list(topics), False))
            except (KafkaError, OSError, TimeoutError):
                continue
            if answer.brokers:
                cluster_metadata.update_metadata(answer)
                return True
        return False


async def opened(properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> FetchClient:
    """One that has met its cluster, for who closes it. Raises Unavailable, Unauthenticated and InvalidArgument."""
    made = FetchClient(properties, client_id=client_id, request_timeout_ms=timeout_ms)
    try:
        await made.bootstrap()
    except BaseException as error:
        await made.close()
        if not isinstance(error, KafkaError | OSError):
            raise
        raise no_broker(properties, error) from None
    return made
