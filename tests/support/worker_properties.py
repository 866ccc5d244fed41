"""The fewest properties that a worker can be started with."""

from __future__ import annotations

from pathlib import Path

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_ANY_WORKER = {"bootstrap.servers": "127.0.0.1:1", "key.converter": _JSON, "value.converter": _JSON}
OF_A_GROUP = {
    **_ANY_WORKER,
    "group.id": "g",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}
"""The properties of a worker of a group, whose brokers do not answer."""


def alone(offsets: Path) -> dict[str, str]:
    """The properties of a standalone worker, which stores its offsets in that file."""
    return {**_ANY_WORKER, "offset.storage.file.filename": str(offsets)}
