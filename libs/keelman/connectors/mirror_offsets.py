"""A mirror's offsets: MirrorMaker 2's, with what tells a log that was truncated or made anew beside them; and what a
user may set them to, in MirrorMaker 2's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.java.text import java_text
from keelman.connect.offsets import AlteredOffsets
from keelman.kafka.position import Position

OFFSET, EPOCH, TOPIC_ID = "offset", "leader_epoch", "topic_id"
_MOST = (1 << 31) - 1


def source_offset(offset: int, epoch: int, topic_id: str) -> dict[str, Any]:
    """The source offset of a record, with its leader epoch (none: -1) and its topic's id (none: empty).

    MirrorMaker 2 reads `offset` alone, writes no other key, and lets a user set others
    (MirrorUtils.java, `unwrapOffset` and `validateSourceOffset`).
    """
    made: dict[str, Any] = {OFFSET: offset}
    if epoch >= 0:
        made[EPOCH] = epoch
    if topic_id:
        made[TOPIC_ID] = topic_id
    return made


def position_behind(offset: Mapping[str, Any]) -> Position:
    """Where a partition is read on behind the record of a source offset.

    Of one without an epoch and a topic's id, as MirrorMaker 2 or a user have written it, nobody can say whether its
    record still is in the log that is there.
    """
    last, epoch, topic_id = int(offset[OFFSET]), offset.get(EPOCH), offset.get(TOPIC_ID)
    epochs = [(epoch, last)] if isinstance(epoch, int) and epoch >= 0 else []
    return Position(last + 1, topic_id if isinstance(topic_id, str) else "", epochs)


def check_mirrored(offsets: AlteredOffsets) -> bool:
    """True, or ConnectError for what is no position in a topic of the source cluster; anything may be deleted."""
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


def _invalid(partition: Mapping[str, Any], value: Any, key: str, why: str) -> ConnectError:
    return ConnectError(
        f"Source partition {java_text(partition)} has an invalid value {java_text(value)} for the '{key}' key, {why}"
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
