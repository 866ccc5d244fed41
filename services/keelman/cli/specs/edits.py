"""Edits the fields that several specs share: maps of texts, labels of nodes, limits."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING

from keelman.api.connect.v1.log_delivery_pb2 import FileLogDelivery, KafkaLogDelivery, LogDelivery, S3LogDelivery
from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.cli.configuration import pairs
from keelman.cli.sizes import size_of
from keelman.model.errors import InvalidArgument

if TYPE_CHECKING:
    from keelman.cli.specs.options import GivenChange

NONE = "none"
"""The value that clears a selector, ports or other values."""


def edit_map(
    option: str, values: MutableMapping[str, str], texts: Sequence[str] | None, removed: Sequence[str] | None
) -> None:
    """Sets and removes keys. Raises InvalidArgument for a key that is both set and removed, or removed and missing."""
    changes = pairs(f"--{option}", texts or ())
    for key in removed or ():
        if key in changes:
            raise InvalidArgument(f"--un{option}: {key} is also given with --{option}")
        if key not in values:
            keys_text = ", ".join(sorted(values)) or "it has none"
            raise InvalidArgument.of(f"--un{option}", key, f"one that it has: {keys_text}")
        del values[key]
    for key, value in changes.items():
        values[key] = value


def selector_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Parses labels of nodes. Raises InvalidArgument."""
    return {} if texts == [NONE] else pairs("--node-selector", texts or ())


def edit_limits(cpus: float | None, memory: str, limits: ResourceLimits, path: str) -> Iterable[str]:
    """Sets the given limits; yields the path if any changed."""
    if cpus is not None:
        limits.cpus = cpus
    if memory:
        limits.memory_bytes = size_of("--memory", memory)
    if cpus is not None or memory:
        yield path


def edit_log_delivery(group: str, bucket: str, topic: str, log_delivery: LogDelivery) -> Iterable[str]:
    """Sets or removes the given targets; yields the path of the change."""
    if group:
        log_delivery.file.CopyFrom(FileLogDelivery(enabled=True, group=group))
    if bucket:
        name, _, prefix = bucket.partition("/")
        log_delivery.s3.CopyFrom(S3LogDelivery(enabled=True, bucket=name, prefix=prefix))
    if topic:
        log_delivery.kafka.CopyFrom(KafkaLogDelivery(enabled=True, topic=topic))
    if group == NONE:
        log_delivery.ClearField("file")
    if bucket == NONE:
        log_delivery.ClearField("s3")
    if topic == NONE:
        log_delivery.ClearField("kafka")
    if group or bucket or topic:
        yield "log_delivery"


def edit_routes(texts: Sequence[str], routes: MutableMapping[str, str]) -> None:
    """Replaces the routes by the given ones. Raises InvalidArgument."""
    changes = {} if texts == [NONE] else pairs("--route", texts)
    routes.clear()
    routes.update(changes)


def split_names(text: str) -> list[str]:
    """Splits names at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def edit_nodes(text: str, change: GivenChange | None, present: Sequence[str]) -> list[str]:
    """Returns the nodes in their order, the new ones last. Raises InvalidArgument."""
    names = split_names(text) if text else list(present)
    for name in (change.remove_nodes or ()) if change else ():
        if name not in names:
            raise InvalidArgument.of("--remove-node", name, "one of its nodes: " + ", ".join(names))
        names.remove(name)
    names += (change.add_nodes or ()) if change else ()
    if not names:
        raise InvalidArgument("--remove-node: it needs at least one node; `keelman stop` stops it, `delete` ends it")
    return names
