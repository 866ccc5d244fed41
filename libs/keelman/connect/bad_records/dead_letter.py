"""Dead letters: records that could not be copied, in the form in which the dead letter topic keeps them.

The record is unchanged; after its own headers come those that tell its origin and the cause of the failure, in a fixed
order, so that they can be told from those of an earlier dead letter that was read and failed again.
The names that begin with `__connect.` and their order are Connect's (KIP-298,
https://cwiki.apache.org/confluence/display/KAFKA/KIP-298%3A+Error+Handling+in+Connect), their values UTF-8 texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from keelman.connect.failed_record import Format
from keelman.connect.offsets import in_json
from keelman.connect.records import Headers, Offset, Partition, SourceBatch

_CONNECT, _OURS = "__connect.errors.", "keelman.errors."

TOPIC = _CONNECT + "topic"
PARTITION = _CONNECT + "partition"
OFFSET = _CONNECT + "offset"
CONNECTOR = _CONNECT + "connector.name"
TASK = _CONNECT + "task.id"
STAGE = _CONNECT + "stage"
CLASS = _CONNECT + "class.name"
EXCEPTION = _CONNECT + "exception.class.name"
MESSAGE = _CONNECT + "exception.message"
TRACE = _CONNECT + "exception.stacktrace"
SOURCE_PARTITION = _OURS + "source.partition"
SOURCE_OFFSET = _OURS + "source.offset"
TARGET_PARTITION = _OURS + "source.target.partition"
KEY_FORMAT = _OURS + "key.format"
VALUE_FORMAT = _OURS + "value.format"
RECORD_BYTES = _OURS + "record.bytes"

CONNECTS = (TOPIC, PARTITION, OFFSET, CONNECTOR, TASK, STAGE, CLASS, EXCEPTION, MESSAGE, TRACE)
OURS = (SOURCE_PARTITION, SOURCE_OFFSET, TARGET_PARTITION, KEY_FORMAT, VALUE_FORMAT, RECORD_BYTES)
_PLACES = {name: place for place, name in enumerate(CONNECTS + OURS)}


class LetterProducer(Protocol):
    """A producer with the methods that dead letters need; used by its run's thread alone."""

    @property
    def request_bytes(self) -> int:
        """The size limit of a single record, before compression."""

    def partitions(self, topic: str) -> int:
        """Returns a topic's number of partitions; 0 for a missing topic."""

    def send(self, batch: SourceBatch, values: list[bytes | None], keys: list[bytes | None] | None) -> int:
        """Takes a batch; returns the bytes of its values and keys."""


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """A record's origin.

    For a sink's record: its topic, partition and offset. For a source's: the topic that it was meant for, and its
    source partition and source offset if the source gives them; its partition and offset are None.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    source_partition: Partition | None = None
    source_offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """The cause of a dead letter: the stage in Connect's name, the full class name of the Java step, the error's Java
    class, its message (None as in Java) and its trace."""

    stage: str
    class_name: str
    exception: str
    message: str | None
    trace: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter, read back. `headers` are the record's own; other fields are None without a header for them."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    whence: RecordOrigin | None = None
    connector: str | None = None
    task: int | None = None
    why: Why | None = None
    key_format: Format = "bytes"
    value_format: Format = "bytes"
    record_bytes: int | None = None
    """The record's size if it was too large and its value is therefore null."""
    target_partition: int | None = None
    """For a source's record that named a partition of its target topic, this partition."""


def context_headers(
    whence: RecordOrigin,
    reason: Why,
    *,
    connector: str,
    task: int,
    key_format: Format = "bytes",
    value_format: Format = "bytes",
    record_bytes: int | None = None,
    target_partition: int | None = None,
) -> list[tuple[str, bytes | None]]:
    """Returns the headers of a dead letter, which follow the record's own.

    The formats and the target partition are given for a source's records only, which are not records of Kafka yet.
    """
    sourced = whence.offset is None
    texts: list[tuple[str, str | None]] = [(TOPIC, whence.topic)]
    if not sourced:
        texts += [(PARTITION, str(whence.partition)), (OFFSET, str(whence.offset))]
    texts += [
        (CONNECTOR, connector),
        (TASK, str(task)),
        (STAGE, reason.stage),
        (CLASS, reason.class_name),
        (EXCEPTION, reason.exception),
        (MESSAGE, reason.message),
        (TRACE, reason.trace),
    ]
    if sourced and whence.source_partition is not None:
        texts.append((SOURCE_PARTITION, in_json(whence.source_partition)))
    if sourced and whence.source_offset is not None:
        texts.append((SOURCE_OFFSET, in_json(whence.source_offset)))
    if sourced and target_partition is not None:
        texts.append((TARGET_PARTITION, str(target_partition)))
    if sourced:
        texts += [(KEY_FORMAT, key_format), (VALUE_FORMAT, value_format)]
    if record_bytes is not None:
        texts.append((RECORD_BYTES, str(record_bytes)))
    return [(name, None if text is None else text.encode("utf-8", "replace")) for name, text in texts]


def read_letter(key: bytes | None, value: bytes | None, headers: Headers | None) -> DeadLetter:
    """Reads a record of a dead letter topic, ours or Connect's, with or without headers that describe it.

    A header with an invalid value counts as missing.
    """
    own, added = _parted(headers or ())
    texts = {name: None if raw is None else raw.decode("utf-8", "replace") for name, raw in added}
    topic, stage = texts.get(TOPIC), texts.get(STAGE)
    whence = None
    if topic is not None:
        partition, offset = _number(texts.get(PARTITION)), _number(texts.get(OFFSET))
        whence = RecordOrigin(
            topic, partition, offset, _tree(texts.get(SOURCE_PARTITION)), _tree(texts.get(SOURCE_OFFSET))
        )
    reason = None
    if stage is not None:
        reason = Why(
            stage,
            texts.get(CLASS) or "",
            texts.get(EXCEPTION) or "",
            texts.get(MESSAGE),
            texts.get(TRACE) or "",
        )
    return DeadLetter(
        key,
        value,
        own,
        whence,
        texts.get(CONNECTOR),
        _number(texts.get(TASK)),
        reason,
        _format(texts.get(KEY_FORMAT)),
        _format(texts.get(VALUE_FORMAT)),
        _number(texts.get(RECORD_BYTES)),
        _number(texts.get(TARGET_PARTITION)),
    )


def _parted(headers: Headers) -> tuple[Headers, Headers]:
    """Returns the record's own headers, and those of the last failure: at the end, each once, in their order."""
    at, before = len(headers), len(_PLACES)
    while at and _PLACES.get(headers[at - 1][0], before) < before:
        at -= 1
        before = _PLACES[headers[at][0]]
    return list(headers[:at]), list(headers[at:])


def _tree(text: str | None) -> Mapping[str, Any] | None:
    try:
        tree = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None


def _format(text: str | None) -> Format:
    return "json" if text == "json" else "text" if text == "text" else "bytes"
