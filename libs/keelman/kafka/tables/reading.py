"""Reads a whole topic, from its beginning to its end at the time of the call; or continues a former read."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.errors import KafkaError

from keelman.kafka.clients import low_level_client
from keelman.kafka.fetching.position import EARLIEST
from keelman.kafka.tables.following import TopicTables
from keelman.kafka.tables.table import Row, TopicTable
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.supervise import deadline, first_of

REQUEST_MS = 10_000


async def read_topic(properties: Mapping[str, str], topic: str, *, client_id: str, seconds: float) -> list[Row]:
    """Returns every committed record with a key, in order by partition; none for a missing topic.

    It includes everything written before the call, and committed or aborted since. `properties` are Java's. Raises
    DeadlineExceeded, Unavailable, InvalidArgument.
    """
    rows: list[Row] = []
    async with deadline(seconds, DeadlineExceeded(f"topic {topic} was not read to its end within {seconds:g} s")):
        partitions = await _partitions(properties, topic, client_id=client_id)
        if partitions:
            table = TopicTable(topic, partitions, rows.append)
            await _read(table, properties, client_id=client_id, seconds=seconds)
    return rows


class OnePartition:
    """A topic of one partition; each `read` returns the records since the last one."""

    def __init__(self, properties: Mapping[str, str], topic: str, *, client_id: str) -> None:
        """`properties` are Java's. Connects nothing yet."""
        self._properties, self._topic, self._client_id = properties, topic, client_id
        self._next = EARLIEST

    async def read(self, *, seconds: float) -> list[Row]:
        """Returns every committed record with a key, in order, of everything written before the call and committed or
        aborted by now. Raises DeadlineExceeded, Unavailable, InvalidArgument."""
        rows: list[Row] = []
        table = TopicTable(self._topic, 1, rows.append, {0: self._next})
        await _read(table, self._properties, client_id=self._client_id, seconds=seconds)
        self._next = table.positions[0]
        return rows


async def _read(table: TopicTable, properties: Mapping[str, str], *, client_id: str, seconds: float) -> None:
    async with TopicTables([table], properties, client_id=client_id, read_committed=True).open() as tables:
        await first_of(tables.follow(), table.read_to_end(seconds=seconds))


async def _partitions(properties: Mapping[str, str], topic: str, *, client_id: str) -> int:
    async with low_level_client(properties, client_id=client_id, timeout_ms=REQUEST_MS) as client:
        try:
            partitions = (await client.fetch_all_metadata()).partitions_for_topic(topic)
        except (KafkaError, OSError) as error:
            raise Unavailable(f"no broker answers about topic {topic}: {error!r}") from None
    return len(partitions or ())
