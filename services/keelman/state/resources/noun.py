"""The interface of a noun to the rest of the state service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar, cast

from google.protobuf.message import Message

from keelman.api.event.v1 import event_pb2
from keelman.rpc.actors import actor
from keelman.rpc.times import to_timestamp
from keelman.state.resources.rows import Packed, payload_of, resource_of

R = TypeVar("R")
CREATED = event_pb2.EVENT_TYPE_CREATED
UPDATED = event_pb2.EVENT_TYPE_UPDATED
DELETED = event_pb2.EVENT_TYPE_DELETED


@dataclass(frozen=True, slots=True)
class Noun(Generic[R]):
    """A kind of resource. Its name, in rows, topics and events, is its class's NOUN.

    `message` makes the message that users and events see. The payload of a row has the resource's fields by name,
    except those that are `packed` or `left_out`; `more` gives the rest of a resource's payload, and `fields`, from the
    name and the payload, the fields that the payload does not have by name.
    """

    kind: type[R]
    message: Callable[[R], Message]
    packed: Packed = field(default_factory=dict)
    left_out: Collection[str] = ()
    more: Callable[[R], dict[str, Any]] = lambda resource: {}
    fields: Callable[[str, Mapping[str, Any]], dict[str, Any]] = lambda name, payload: {}

    @property
    def name(self) -> str:
        """As in "worker_cluster"."""
        name: str = self.kind.NOUN  # type: ignore[attr-defined]
        return name

    @property
    def has_etag(self) -> bool:
        """True when a resource has an etag, the mark of its last change."""
        return "etag" in self.kind.__dataclass_fields__  # type: ignore[attr-defined]

    def to_row(self, resource: R) -> dict[str, Any]:
        """Returns the values of the resource's row, with its secrets as they are."""
        any_resource = cast(Any, resource)
        payload = payload_of(resource, self.packed, self.left_out) | self.more(resource)
        revision = int(any_resource.etag or 0) if self.has_etag else 0
        return {"noun": self.name, "name": any_resource.name, "revision": revision, "payload": payload}

    def from_row(self, name: str, revision: int, payload: Mapping[str, Any]) -> R:
        """Returns the resource of a row."""
        return resource_of(self.kind, name, revision, payload, self.packed, **self.fields(name, payload))

    def event(self, kind: event_pb2.EventType.ValueType, resource: R, revision: int, time: datetime) -> event_pb2.Event:
        """Returns an event, with the resource as users see it."""
        name: str = cast(Any, resource).name
        event = event_pb2.Event(revision=revision, time=to_timestamp(time), type=kind, name=name, actor=actor())
        getattr(event, self.name).CopyFrom(self.message(resource))
        return event

    def event_bytes(self, kind: event_pb2.EventType.ValueType, resource: R, revision: int, time: datetime) -> bytes:
        """Returns an event as the bytes in the outbox and in its topic."""
        return self.event(kind, resource, revision, time).SerializeToString(deterministic=True)


Nouns: TypeAlias = Mapping[str, Noun[Any]]
"""The nouns by name."""
