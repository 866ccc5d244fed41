"""One record in a chain of transforms: the rows of a batch, where it has to be split into rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from keelman.connect.schema import Schema


@dataclass(slots=True)
class Header:
    """A header's name, its value, and the value's schema; `raw` are its bytes from Kafka, to be written unchanged.

    Not changed once created.
    """

    name: str
    schema: Schema | None
    value: Any
    raw: bytes | None = None


@dataclass(slots=True)
class Record:
    """`offset` is that of a sink's record in its topic, None for a source's. A timestamp is in ms since the epoch.

    A transform changes a record only by giving its fields other values; the values themselves it leaves alone.
    """

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp_ms: int | None = None
    headers: list[Header] = field(default_factory=list)
    offset: int | None = None
