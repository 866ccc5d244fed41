"""Connect's data in Java, across the border and back; a program that prints its results as one JSON object."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

from keelman.connect.converters.json_converter import JsonConverter
from keelman.connectors.java import jvm
from keelman.connectors.java.border.python_data import CONNECT, FromJava, ToJava
from keelman.connectors.java.jvm import java_class, jpype

FIELDS: dict[str, tuple[dict[str, Any], Any]] = {
    "int8": ({"type": "int8"}, -128),
    "int16": ({"type": "int16"}, 32767),
    "int32": ({"type": "int32", "doc": "a number", "version": 3}, -(1 << 31)),
    "int64": ({"type": "int64"}, (1 << 63) - 1),
    "float": ({"type": "float"}, 0.5),
    "double": ({"type": "double"}, -1.25e300),
    "boolean": ({"type": "boolean"}, True),
    "string": ({"type": "string", "parameters": {"length": "9"}, "default": "zoë"}, 'a "ß" \u2028 \U0001f600'),
    "bytes": ({"type": "bytes"}, "AP8B"),
    "none": ({"type": "string", "optional": True}, None),
    "defaulted": ({"type": "int32", "optional": True, "default": 7}, None),
    "array": ({"type": "array", "items": {"type": "int16", "optional": True}}, [1, None, 3]),
    "map": ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int64"}}, {"a": 1, "b": 2}),
    "numbered": ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}}, [[1, "x"], [2, "y"]]),
    "struct": (
        {"type": "struct", "name": "acme.Inner", "optional": True, "fields": [{"type": "string", "field": "x"}]},
        {"x": "y"},
    ),
    "decimal": (
        {"type": "bytes", "name": f"{CONNECT}.Decimal", "version": 1, "parameters": {"scale": "2"}},
        "Dak=",
    ),
    "date": ({"type": "int32", "name": f"{CONNECT}.Date", "version": 1}, -3),
    "time": ({"type": "int32", "name": f"{CONNECT}.Time", "version": 1}, 86_399_999),
    "timestamp": ({"type": "int64", "name": f"{CONNECT}.Timestamp", "version": 1}, 1_700_000_000_123),
    "far": ({"type": "int64", "name": f"{CONNECT}.Timestamp", "version": 1}, -62_135_769_600_000),
}
"""By name: the schema as JsonConverter writes it, and a value under it."""
DOCUMENT = {
    "schema": {
        "type": "struct",
        "name": "acme.All",
        "fields": [{"optional": False, **schema, "field": name} for name, (schema, _) in FIELDS.items()],
    },
    "payload": {name: value for name, (_, value) in FIELDS.items()},
}


def crossed() -> dict[str, Any]:
    """The comparisons of values that crossed the border to Java and back."""
    data = json.dumps(DOCUMENT).encode()
    there, back = FromJava(), ToJava()
    converter = java_class("org.apache.kafka.connect.json.JsonConverter")()
    options = java_class("java.util.HashMap")()
    options.put("schemas.enable", "true")
    options.put("replace.null.with.default", "false")
    converter.configure(options, False)
    result = converter.toConnectData("t", jpype().JArray(jpype().JByte)(data))
    schema, value = there.taken(result.schema(), result.value())
    ours = JsonConverter({"replace.null.with.default": "false"}).to_connect([data]).texts()
    java_schema, java_value = back.given(schema, value)
    return {
        "schema as ours reads it": schema == ours.schema_of(0),
        "value as ours reads it": value == ours.values[0],
        "schema comes back": bool(result.schema().equals(java_schema)),
        "value comes back": bool(result.value().equals(java_value)) or str(java_value.toString()),
        "not a number": math.isnan(round_trip(there, back, "Double", math.nan)[1]),
        "infinite": round_trip(there, back, "Float", math.inf)[1] == math.inf,
        "plain": plain(there, back),
        "nothing": there.taken(None, None) == (None, None) == back.given(None, None),
    }


def round_trip(there: FromJava, back: ToJava, box: str, value: float) -> tuple[Any, Any]:
    """A value of one of Java's classes without a schema: both ways, and to Python again."""
    once = there.taken(None, java_class(f"java.lang.{box}")(value))
    return there.taken(None, back.given(*once)[1])


def plain(there: FromJava, back: ToJava) -> bool:
    """Whether data without a schema keeps its classes."""
    result = java_class("java.util.HashMap")()
    inner = java_class("java.util.ArrayList")()
    for box, kind in (("Byte", jpype().JByte), ("Short", jpype().JShort), ("Integer", jpype().JInt)):
        inner.add(java_class(f"java.lang.{box}").valueOf(kind(1)))  # type: ignore[attr-defined]
    inner.add(java_class("java.math.BigDecimal")("1.50"))
    inner.add(java_class("java.util.Date")(jpype().JLong(-1)))
    result.put("k", inner)
    return bool(result.equals(back.given(*there.taken(None, result))[1]))


if __name__ == "__main__":
    jvm.start(jvm.JvmOptions(heap_bytes=64 << 20, quick=True))
    print(json.dumps(crossed()))
    sys.stdout.flush()
    os._exit(0)  # otherwise it would wait for the machine
