"""What a user may set a FileStreamSource's offsets to."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import AlteredOffsets


def check_positions(config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
    """True, or ConnectError in Connect's words for what is no file's position; whether the file has it is not asked."""
    if not config.get("file"):
        raise ConnectError(
            "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used for "
            "input and offsets are not tracked."
        )
    for partition, offset in offsets:
        if offset is None:
            continue
        if "position" not in offset:
            raise ConnectError("Offset objects should either be null or contain the key 'position'")
        position = offset["position"]
        if not isinstance(position, int) or isinstance(position, bool):
            raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
        if position < 0:
            raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
        if partition is None:
            raise ConnectError("Partition objects cannot be null")
        if "filename" not in partition:
            raise ConnectError("Partition objects should contain the key 'filename'")
    return True
