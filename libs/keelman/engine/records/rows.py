"""Puts records that were converted one by one into columns again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from keelman.connect.record import Record
from keelman.connect.records import Headers
from keelman.connect.schema import Schema


@dataclass(slots=True)
class Rows:
    """Records in order, with their headers as bytes. `origins` are their indices in the batch they come from."""

    values: list[Any] = field(default_factory=list)
    schemas: list[Schema | None] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    key_schemas: list[Schema | None] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    def add(self, record: Record, headers: Headers, origin: int) -> None:
        """Puts a record behind; its own headers are not looked at."""
        self.values.append(record.value)
        self.schemas.append(record.value_schema)
        self.keys.append(record.key)
        self.key_schemas.append(record.key_schema)
        self.topics.append(record.topic)
        self.partitions.append(record.partition)
        self.times.append(record.timestamp_ms)
        self.headers.append(headers)
        self.origins.append(origin)
