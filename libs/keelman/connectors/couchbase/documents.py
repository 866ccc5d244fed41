"""Documents as records: what each of the official connector's handlers makes of a change, and its headers. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from keelman.connectors.couchbase.partitions import signed, signed_32
from keelman.couchbase.frames import JSON_TYPE, Opcode
from keelman.couchbase.manifest import Collection
from keelman.couchbase.messages import document
from keelman.couchbase.vbucket import Event

HANDLERS = "com.couchbase.connect.kafka.handler.source."
_INT32 = Schema("int32", optional=True)
_INT64 = Schema("int64")
_TEXT = Schema("string")
MESSAGE = Schema(
    "struct",
    name="com.couchbase.DcpMessage",
    fields=(
        Field("event", _TEXT),
        Field("partition", Schema("int16")),
        Field("key", _TEXT),
        Field("cas", _INT64),
        Field("bySeqno", _INT64),
        Field("revSeqno", _INT64),
        Field("expiration", _INT32),
        Field("flags", _INT32),
        Field("lockTime", _INT32),
        Field("content", Schema("bytes", optional=True)),
        Field("bucket", Schema("string", optional=True)),
        Field("vBucketUuid", Schema("int64", optional=True)),
    ),
)
_MUTATION = int(Opcode.MUTATION)
_EVENTS: dict[int, str] = {_MUTATION: "mutation", Opcode.DELETION: "deletion", Opcode.EXPIRATION: "expiration"}
_HEADERS: dict[str, tuple[Schema, Callable[[Event, str], Any]]] = {
    "bucket": (_TEXT, lambda _, bucket: bucket),
    "scope": (_TEXT, lambda event, _: _collection(event).scope),
    "collection": (_TEXT, lambda event, _: _collection(event).name),
    "key": (_TEXT, lambda event, _: _key(event)),
    "qualifiedKey": (_TEXT, lambda event, _: f"{_collection(event)}.{_key(event)}"),
    "cas": (_INT64, lambda event, _: signed(event.cas)),
    "partition": (Schema("int32"), lambda event, _: event.vbucket),
    "partitionUuid": (_INT64, lambda event, _: signed(event.place.vbuuid)),
    "seqno": (_INT64, lambda event, _: signed(event.seqno)),
    "rev": (_INT64, lambda event, _: signed(event.revision)),
}
HEADERS = (*_HEADERS, "expiry")
"""What headers there are."""


SKIPPED = object()
"""In place of a value: there is to be no record."""


class Handler(NamedTuple):
    """Makes a record of a change in a bucket. `value` is given the change, the bucket and `no.value`, and gives SKIPPED
    for no record; `schema` is that of all values."""

    value: Callable[[Event, str, bool], Any]
    schema: Schema | None = None


def _key(event: Event) -> str:
    return event.key.decode("utf-8", "replace")


def _collection(event: Event) -> Collection:
    return event.collection or Collection("", "")


def raw_json(event: Event, bucket: str, no_value: bool) -> bytes | object | None:
    """The document as it is; null where it is deleted."""
    if event.kind != _MUTATION or no_value:
        return None
    content = event.value if event.datatype <= JSON_TYPE else document(event)
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return content if is_json(content) else SKIPPED
    return content


def with_metadata(event: Event, bucket: str, no_value: bool) -> bytes | object:
    """Returns a JSON object of the change's metadata, with the document last."""
    is_mutation = event.kind == _MUTATION
    about: dict[str, Any] = {
        "bucket": bucket,
        "partition": event.vbucket,
        "cas": signed(event.cas),
        "revSeqno": signed(event.revision),
    }
    if is_mutation:
        about["lockTime"] = signed_32(event.lock_time)
    about["bySeqno"] = signed(event.seqno)
    about["vBucketUuid"] = signed(event.place.vbuuid)
    if is_mutation:
        about |= {"flags": signed_32(event.flags), "expiration": signed_32(event.expiry)}
    about |= {"event": _EVENTS[event.kind], "key": _key(event)}
    head = orjson.dumps(about)
    if not is_mutation or no_value:
        return head
    content = document(event)
    return b'%b,"content":%b}' % (head[:-1], content) if is_json(content) else SKIPPED


def message(event: Event, bucket: str, no_value: bool) -> Struct:
    """A struct of all that is known, documents that are no JSON too."""
    is_mutation = event.kind == _MUTATION
    content = (b"" if no_value else document(event)) if is_mutation else None
    values = {
        "event": _EVENTS[event.kind],
        "partition": event.vbucket,
        "key": _key(event),
        "cas": signed(event.cas),
        "bySeqno": signed(event.seqno),
        "revSeqno": signed(event.revision),
        "expiration": signed_32(event.expiry) if is_mutation else None,
        "flags": signed_32(event.flags) if is_mutation else None,
        "lockTime": signed_32(event.lock_time) if is_mutation else None,
        "content": content,
        "bucket": bucket,
        "vBucketUuid": signed(event.place.vbuuid),
    }
    return Struct(MESSAGE, values)


SERVED: dict[str, Handler] = {
    f"{HANDLERS}RawJsonSourceHandler": Handler(raw_json),
    f"{HANDLERS}RawJsonWithMetadataSourceHandler": Handler(with_metadata),
    f"{HANDLERS}DefaultSchemaSourceHandler": Handler(message, MESSAGE),
}


def is_json(content: bytes) -> bool:
    """Returns whether bytes are exactly one JSON value, a number or a text too."""
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        try:  # half a surrogate pair is a character for Java
            json.loads(content, parse_constant=_refused)
        except (ValueError, RecursionError):
            return False
    return True


def _refused(constant: str) -> None:
    """NaN and infinities, which Python would take."""
    raise ValueError(constant)


def headers(events: Sequence[Event], bucket: str, names: Sequence[str], prefix: str) -> list[tuple[str, Column]]:
    """The headers of some records, each with its values and their schemas."""
    return [(prefix + name, _header(name, events, bucket)) for name in names]


def _header(name: str, events: Sequence[Event], bucket: str) -> Column:
    if name == "expiry":
        values = [event.expiry or None for event in events]
        return Column.of_each(values, [None if value is None else _INT64 for value in values])
    schema, value = _HEADERS[name]
    return Column([value(event, bucket) for event in events], schema)
