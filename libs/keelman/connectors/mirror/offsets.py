"""A mirror's source offsets: written and read, checked when a user sets them, compared with the end, dealt out to
parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.java.text import java_text
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.records import Offset, TopicPartition
from keelman.engine.clients import with_token
from keelman.engine.partition_offsets import offsets_at
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.fetching.position import FetchPosition

ASK_SECONDS = 3.0
OFFSET, EPOCH, TOPIC_ID = "offset", "leader_epoch", "topic_id"
_MOST = (1 << 31) - 1


def backlogs(
    consumer: Mapping[str, Any], admin: Mapping[str, Any], starts: Mapping[TopicPartition, Offset | None]
) -> dict[TopicPartition, int]:
    """Offsets between each start and its partition's end, deleted and aborted records among them.

    `consumer` and `admin` are librdkafka's settings. Raises RetriableConnectError when the source cluster is silent.
    """
    client, committed = AdminClient(with_token(admin)), reads_committed(consumer)
    try:
        ends, begins = (
            offsets_at(spec, starts, client, read_committed=committed, seconds=ASK_SECONDS)
            for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
        )
    except (KafkaException, TimeoutError) as error:
        reason = str(error) or f"no answer within {ASK_SECONDS:g} s"
        raise RetriableConnectError(f"the source cluster did not report where its partitions end: {reason}") from error
    behind = {}
    for partition, start in starts.items():
        begin = begins[partition] if start is None else max(begins[partition], int(start["offset"]) + 1)
        behind[partition] = max(0, ends[partition] - begin)
    return behind


def dealt(behind: Mapping[TopicPartition, int], *, slots: int, least: int) -> list[list[TopicPartition]]:
    """Partitions by part, the largest backlog first and always to the part that has least; none when fewer than two
    have any, or all together less than `least`."""
    count = min(slots, sum(1 for records in behind.values() if records > 0))
    if count < 2 or sum(behind.values()) < least:
        return []
    parts: list[list[TopicPartition]] = [[] for _ in range(count)]
    loads = [0] * count
    for partition in sorted(behind, key=lambda key: (-behind[key], key)):
        least_loaded = loads.index(min(loads))
        parts[least_loaded].append(partition)
        loads[least_loaded] += behind[partition]
    return [sorted(part) for part in parts]


def source_offset(offset: int, epoch: int, topic_id: str) -> dict[str, Any]:
    """The source offset of a record, with its leader epoch (none: -1) and its topic's id (none: empty).

    MirrorMaker 2 reads `offset` alone, writes no other key, and lets a user set others
    (MirrorUtils.java, `unwrapOffset` and `validateSourceOffset`).
    """
    position: dict[str, Any] = {OFFSET: offset}
    if epoch >= 0:
        position[EPOCH] = epoch
    if topic_id:
        position[TOPIC_ID] = topic_id
    return position


def position_behind(offset: Mapping[str, Any]) -> FetchPosition:
    """Returns the position behind the record of a source offset.

    For an offset without an epoch and a topic's id, as written by MirrorMaker 2 or a user, it is unknown whether its
    record is still in the present log.
    """
    last, epoch, topic_id = int(offset[OFFSET]), offset.get(EPOCH), offset.get(TOPIC_ID)
    epochs = [(epoch, last)] if isinstance(epoch, int) and epoch >= 0 else []
    return FetchPosition(last + 1, topic_id if isinstance(topic_id, str) else "", epochs)


def check_mirrored(offsets: AlteredOffsets) -> bool:
    """Returns True. Raises ConnectError for an offset that is no position in a topic of the source cluster; any offset
    may be deleted."""
    for partition, offset in offsets:
        if offset is None:
            continue
        if partition is None:
            raise ConnectError("Source partitions may not be null")
        for key in ("cluster", "topic"):
            value = _present(partition, key)
            if not isinstance(value, str):
                raise _invalid(partition, value, key, "which must be a string")
        number = _present(partition, "partition")
        if not _is_integer(number) or number > _MOST:
            raise _invalid(partition, number, "partition", "which must be an integer")
        if number < 0:
            raise _invalid(partition, number, "partition", "which cannot be negative")
        _check_offset(partition, offset)
    return True


def _check_offset(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
    where = f"Source offset {java_text(offset)} for source partition {java_text(partition)}"
    if "offset" not in offset:
        raise ConnectError(f"{where} is missing the 'offset' key, which is required")
    value = offset["offset"]
    if not _is_integer(value):
        shown = java_text(value)
        raise ConnectError(f"{where} has an invalid value {shown} for the 'offset' key, which must be an integer")
    if value < 0:
        raise ConnectError(f"{where} has an invalid value {value} for the 'offset' key, which cannot be negative")


def _present(partition: Mapping[str, Any], key: str) -> Any:
    if key not in partition:
        raise ConnectError(f"Source partition {java_text(partition)} is missing the '{key}' key, which is required")
    return partition[key]


def _invalid(partition: Mapping[str, Any], value: Any, key: str, reason: str) -> ConnectError:
    return ConnectError(
        f"Source partition {java_text(partition)} has an invalid value {java_text(value)} for the '{key}' key, {reason}"
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
