"""Reads the committed source offsets of a connector: the worker's topic, and over it the connector's own where it has
one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keelman.connect.offsets import identity, parse_key
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.tables.reading import read_topic
from keelman.worker.config.client_properties import writes_elsewhere
from keelman.worker.storage.store import WorkerStore
from keelman.workers.properties.typed import WorkerProperties

READ_SECONDS = 30.0
OffsetRow = tuple[bytes, bytes]


def offset_topics(properties: WorkerProperties, connector: Mapping[str, str]) -> tuple[str, str]:
    """Returns the topic that the connector's tasks commit to and, when that is not the worker's own, the worker's; else
    empty.

    A topic of the worker's name in another cluster is the connector's own too: offsets can be committed together with
    records only where the records are. A standalone worker has a file instead of all these.
    """
    if properties.standalone:
        return "", ""
    own = connector.get("offsets.storage.topic", "").strip() or properties.offset_topic.name
    if own == properties.offset_topic.name and not writes_elsewhere(properties.raw, connector):
        return own, ""
    return own, properties.offset_topic.name


async def own_offsets(properties: WorkerProperties, name: str, connector: Mapping[str, str]) -> list[OffsetRow]:
    """Returns the newest committed row of each partition in the connector's own topic; none when it has no topic of its
    own.

    Raises KeelmanError.
    """
    own, workers = offset_topics(properties, connector)
    if not workers:
        return []
    client = merged(properties.raw, connector, "producer")
    rows = await read_topic(client, own, client_id=f"{properties.group_id}-{name}-offsets", seconds=READ_SECONDS)
    newest: dict[bytes, bytes] = {}
    for row in rows:
        if row.value is None:
            newest.pop(row.key, None)
        else:
            newest[row.key] = row.value
    return [(key, value) for key, value in newest.items() if _partition(key, name) is not None]


def merged_offsets(name: str, workers: Iterable[OffsetRow], own: Iterable[OffsetRow]) -> list[OffsetRow]:
    """Returns the rows of both topics; for a partition in both the connector's counts."""
    wins = list(own)
    partitions = {_partition(key, name) for key, _ in wins}
    return [*(row for row in workers if _partition(row[0], name) not in partitions), *wins]


async def committed_rows(store: WorkerStore, name: str, connector: Mapping[str, str]) -> list[OffsetRow]:
    """Returns all committed offsets of a connector, of this (resolved) configuration, at the time of the call. Raises
    KeelmanError."""
    await store.offset_topic.read()
    own = await own_offsets(store.properties, name, connector)
    return merged_offsets(name, store.offsets.of(name), own)


def _partition(key: bytes, connector: str) -> str | None:
    parsed = parse_key(key)
    return identity(parsed[1]) if parsed is not None and parsed[0] == connector else None
