"""The interface of a noun to the rest of the state service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar, cast

from google.protobuf.message import Message
from sqlmodel import SQLModel

from keelman.api.event.v1 import event_pb2
from keelman.rpc.times import to_timestamp
from keelman.state.resources.rows import Packed, resource_of, row_of

R = TypeVar("R")
CREATED = event_pb2.EVENT_TYPE_CREATED
UPDATED = event_pb2.EVENT_TYPE_UPDATED
DELETED = event_pb2.EVENT_TYPE_DELETED


@dataclass(frozen=True, slots=True)
class Noun(Generic[R]):
    """A kind of resource. Its name, in tables, topics and events, is its class's NOUN.

    `message` makes the message that users and events see. The row has the resource's fields by name, except those that
    are `packed`; `columns` gives the rest of a resource's row, and `fields` the fields that no column holds.
    """

    kind: type[R]
    table: type[SQLModel]
    message: Callable[[R], Message]
    packed: Packed = field(default_factory=dict)
    columns: Callable[[R], dict[str, Any]] = lambda resource: {}
    fields: Callable[[Any], dict[str, Any]] = lambda row: {}

    @property
    def name(self) -> str:
        """As in "worker_cluster"."""
        found: str = self.kind.NOUN  # type: ignore[attr-defined]
        return found

    @property
    def has_etag(self) -> bool:
        """True when a resource has an etag, the mark of its last change."""
        return "etag" in self.kind.__dataclass_fields__  # type: ignore[attr-defined]

    def to_row(self, resource: R) -> dict[str, Any]:
        """Returns the values of the resource's row."""
        return row_of(self.table, resource, self.packed) | self.columns(resource)

    def from_row(self, row: Any) -> R:
        """Returns the resource of a row."""
        return resource_of(self.kind, row, self.packed, **self.fields(row))

    def event(self, kind: event_pb2.EventType.ValueType, resource: R, revision: int, time: datetime) -> event_pb2.Event:
        """Returns an event, with the resource as users see it."""
        event = event_pb2.Event(revision=revision, time=to_timestamp(time), type=kind, name=cast(Any, resource).name)
        getattr(event, self.name).CopyFrom(self.message(resource))
        return event

    def event_bytes(self, kind: event_pb2.EventType.ValueType, resource: R, revision: int, time: datetime) -> bytes:
        """Returns an event as the bytes in the outbox and in its topic."""
        return self.event(kind, resource, revision, time).SerializeToString(deterministic=True)


Nouns: TypeAlias = Mapping[str, Noun[Any]]
"""The nouns by name."""
