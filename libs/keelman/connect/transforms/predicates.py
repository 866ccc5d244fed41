"""Predicates, which decide whether a transform applies to a record."""

from __future__ import annotations

from typing import Any

from keelman.connect.columns import ColumnBatch, Nulls
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, non_empty
from keelman.connect.errors import ConfigValueError
from keelman.connect.java.regex import JavaPattern
from keelman.connect.record import Record
from keelman.connect.transforms.base import Predicate
from keelman.connect.transforms.routing import java_pattern


class HasHeaderKey(Predicate):
    """Holds for records with a header of this name."""

    name = "HasHeaderKey"
    of_headers = True

    keys = (ConfigKey("name", Type.STRING, REQUIRED, Importance.MEDIUM, "The header.", non_empty),)

    def test(self, record: Record) -> bool:
        """Whether the record has the header."""
        name: str = self.config["name"]
        return any(header.name == name for header in record.headers)

    def columnar(self, batch: ColumnBatch) -> bool | list[bool]:
        """Whether each record has the header; False for all without headers."""
        name: str = self.config["name"]
        return batch.headers is not None and [
            any(header.name == name for header in headers) for headers in batch.headers
        ]


class RecordIsTombstone(Predicate):
    """Holds for records whose value is null."""

    name = "RecordIsTombstone"

    def test(self, record: Record) -> bool:
        """Whether the record is a tombstone."""
        return record.value is None

    def columnar(self, batch: ColumnBatch) -> bool:
        """Whether all are tombstones: nulls have their own shape."""
        return isinstance(batch.value, Nulls)


def _pattern(name: str, value: Any) -> None:
    if not value:
        raise ConfigValueError(name, value, "String must be non-empty")
    java_pattern(name, value)


class TopicNameMatches(Predicate):
    """Holds for records of topics whose whole name matches."""

    name = "TopicNameMatches"

    keys = (ConfigKey("pattern", Type.STRING, REQUIRED, Importance.MEDIUM, "Java regex.", _pattern),)

    def _set_up(self) -> None:
        self._pattern = JavaPattern(self.config["pattern"])

    def test(self, record: Record) -> bool:
        """Whether the topic matches."""
        return self._pattern.matches(record.topic)

    def columnar(self, batch: ColumnBatch) -> bool:
        """Whether the batch's only topic matches."""
        return self._pattern.matches(batch.topic)
