"""`use.latest.version`: how long a version is taken to be the newest (`latest.cache.ttl.sec`)."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.records import Column
from keelman.connect.registry.interface import SchemaKind, SchemaText
from keelman.connect.schema import Schema
from keelman.engine.records import registries
from keelman.engine.records.registries import CachedRegistry
from support.connectors.memory_registry import MemoryRegistry

NEWEST = {"auto.register.schemas": "false", "use.latest.version": "true"}
INT = Schema("int32")


class Answers:
    """Replaces HTTP: returns the newest version of any subject."""

    def __init__(self) -> None:
        self.version = 1

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        assert path.endswith("/versions/latest")
        return {"schema": '"int"', "id": self.version, "version": self.version}


def test_the_newest_is_that_for_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, http = 100.0, Answers()
    registry = CachedRegistry(http)  # type: ignore[arg-type]
    monkeypatch.setattr(registries.time, "monotonic", lambda: now)
    assert registry.latest("s", 60).version == 1
    http.version = 2
    now += 59
    assert registry.latest("s", 60).version == 1
    assert registry.latest("s", 30).version == 2, "another converter sends requests more often"
    now += 59
    assert registry.latest("s", 60).version == 2
    http.version = 3
    assert registry.latest("s", 0).version == 3


@pytest.mark.parametrize(("seconds", "then"), [("-1", 1), ("0", 2)])
def test_a_converter_looks_again_as_it_is_told(seconds: str, then: int) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", SchemaText(SchemaKind.AVRO, '"int"'))
    converter = registry.converter(AvroConverter, **NEWEST, **{"latest.cache.ttl.sec": seconds})
    documented = Schema("int32", doc="more")
    for schema, expected in ((INT, 1), (INT, then), (documented, then)):
        (payload,) = converter.from_connect(Column([7], schema))
        assert payload is not None
        assert payload[4] == expected
        registry.register("t-value", SchemaText(SchemaKind.AVRO, '{"type":"int"}'))
    fresh = registry.converter(AvroConverter, **NEWEST, **{"latest.cache.ttl.sec": seconds})
    assert (fresh.from_connect(Column([7], INT))[0] or b"")[4] == 2
