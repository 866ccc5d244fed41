"""What a user may set a mirror's offsets to, in MirrorMaker 2's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.java.text import java_text
from keelman.connect.offsets import AlteredOffsets

_MOST = (1 << 31) - 1


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
