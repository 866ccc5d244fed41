"""Transforms, predicates and converters compared with Apache Kafka Connect's recorded results (tests/recorded)."""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable
from typing import Any

import pytest

from keelman.connect.converters.configured import find_converter
from keelman.connect.converters.header_converter import SimpleHeaderConverter
from keelman.connect.converters.json_data import parse_schema, schema_json
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.java.numbers import INTEGERS, Float32, java_class
from keelman.connect.java.text import java_text, json_text
from keelman.connect.record import Header, Record
from keelman.connect.records import Column
from keelman.connect.schema import Schema, Struct
from keelman.connect.times import TIMES, moment, ms_of
from keelman.connect.transforms import PREDICATES, TRANSFORMS
from support.places import RECORDED_FOLDER

RECORDED = RECORDED_FOLDER / "data" / "data.json"
NOTES = {
    "java.lang.Boolean": "bool",
    "java.lang.Byte": "int8",
    "java.lang.Short": "int16",
    "java.lang.Integer": "int32",
    "java.lang.Long": "int64",
    "java.lang.Float": "float",
    "java.lang.Double": "double",
    "java.lang.String": "string",
}
CASES = json.loads(RECORDED.read_text())
DIFFERENT = {
    "bytes as a text": "Java shows an object's address, ours the bytes as UTF-8",
    "a text of its own": "names the field or the topic, where Connect shows an object or the whole record",
    "detail": "the parser's own words are behind Connect's, which has them in the cause",
    "null pointer": "what Connect stumbles over is told as what it is",
    "digits": "fewest digits, as Java has them since version 19 (JDK-4511638)",
    "place": "where a pattern is wrong is told by our own reader",
    "a message of ours": "StringConverter names the key and the value",
    "schema.content": "the key and its value are named, and it is refused with the configuration",
}


def differs(case: dict[str, Any], ours_is: Any, theirs: Any) -> str:  # noqa: PLR0911  one line a kind
    """The accepted difference that applies, empty for none."""
    text = theirs.get("error", {}).get("message", "")
    ours_text = ours_is.get("error", {}).get("message", "")
    if text and ours_text.startswith(text) and text.endswith("serialization error: "):
        return "detail"
    if " near index " in text:
        return "place" if ours_text.startswith(text.partition(" near index ")[0]) else ""
    if "schema.content" in case.get("config", {}) and theirs.get("error", {}).get("where") == "config":
        return "schema.content" if f" for configuration schema.content: {text}" in ours_text else ""
    if text == "Unsupported encoding none":
        return "a message of ours"
    if "InsertionSpec@" in text or text.startswith("Timestamp missing on record"):
        return "a text of its own" if ours_text[:20] == text[:20] else ""
    if theirs.get("error", {}).get("class") == "java.lang.NullPointerException":
        return "null pointer"
    if "[B@" in bytes.fromhex(theirs.get("bytes") or "").decode("utf-8", "replace"):
        return "bytes as a text"
    return "digits" if "-2.14748365E9" in json.dumps(theirs) else ""


def ours(schema: Schema | None, note: Any) -> Any:  # noqa: PLR0911  one line a kind
    """Parses the notation of a value."""
    if note is None:
        return None
    ((kind, value),) = note.items()
    if kind in INTEGERS:
        return INTEGERS[kind][0](value)
    if kind == "float":
        return Float32(value)
    if kind == "double":
        return float(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "decimal":
        return decimal.Decimal(value)
    if kind == "date":
        return moment(value)
    if kind == "list":
        return [ours(schema and schema.value, member) for member in value]
    if kind == "map":
        return {ours(schema and schema.key, k): ours(schema and schema.value, v) for k, v in value}
    if kind == "struct":
        assert schema is not None
        by_name = {field.name: field.schema for field in schema.fields}
        return Struct(schema, {name: ours(by_name[name], member) for name, member in value})
    return value


def note_of(schema: Schema | None, value: Any) -> Any:  # noqa: PLR0911  one line a kind
    """The notation of a value."""
    if value is None:
        return None
    if isinstance(value, Struct):
        pairs = [[f.name, note_of(f.schema, value.values.get(f.name))] for f in value.schema.fields]
        return {"struct": pairs}
    if isinstance(value, dict):
        pairs = [[note_of(schema and schema.key, k), note_of(schema and schema.value, v)] for k, v in value.items()]
        return {"map": sorted(pairs, key=json.dumps)}
    if isinstance(value, list | tuple):
        return {"list": [note_of(schema and schema.value, member) for member in value]}
    if isinstance(value, TIMES):
        return {"date": ms_of(value)}
    if isinstance(value, decimal.Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, bool):
        return {"bool": value}
    if schema is not None and schema.type in INTEGERS:
        return {schema.type: int(value)}
    if isinstance(value, float):
        return {"float" if isinstance(value, Float32) else "double": java_text(value)}
    return {NOTES[java_class(value)]: value}


def data_of(entry: Any) -> tuple[Schema | None, Any]:
    """Parses the notation of a schema and a value."""
    schema = parse_schema(entry["schema"])
    return schema, ours(schema, entry["value"])


def data_note(schema: Schema | None, value: Any) -> Any:
    """The notation of a schema and a value."""
    shown = None if schema is None else json.loads(json_text(schema_json(schema)))
    return {"schema": shown, "value": note_of(schema, value)}


def record_of(entry: Any) -> Record:
    """Parses the notation of a record."""
    key, value = data_of(entry["key"]), data_of(entry["value"])
    headers = [Header(name, *data_of(data)) for name, data in entry["headers"]]
    return Record(entry["topic"], entry["partition"], *key, *value, entry["timestamp"], headers, entry.get("offset"))


def record_note(record: Record | None) -> Any:
    """The notation of a record."""
    if record is None:
        return {"record": None}
    told = {
        "topic": record.topic,
        "partition": record.partition,
        "key": data_note(record.key_schema, record.key),
        "value": data_note(record.value_schema, record.value),
        "timestamp": record.timestamp_ms,
        "headers": [[header.name, data_note(header.schema, header.value)] for header in record.headers],
    }
    return {"record": told if record.offset is None else {**told, "offset": record.offset}}


def unordered(note: Any) -> Any:
    """A recorded answer with the pairs of maps in our order."""
    if isinstance(note, dict):
        if note.keys() == {"map"}:
            return {"map": sorted((unordered(pair) for pair in note["map"]), key=json.dumps)}
        return {key: unordered(value) for key, value in note.items()}
    return [unordered(member) for member in note] if isinstance(note, list) else note


def told(case: dict[str, Any]) -> Any:
    """Our result for a case."""
    try:
        converted = _made(case)
    except ConfigValueError as error:
        return {"error": {"class": error.java_name, "message": str(error), "where": "config"}}
    try:
        return converted()
    except ConnectError as error:
        return {"error": {"class": error.java_name, "message": str(error), "where": "step"}}


def _made(case: dict[str, Any]) -> Callable[[], Any]:
    if "transform" in case:
        step = TRANSFORMS[case["transform"]](case["config"])
        return lambda: record_note(step.apply(record_of(case["record"])))
    if "predicate" in case:
        judge = PREDICATES[case["predicate"]](case["config"])
        return lambda: {"result": judge.test(record_of(case["record"]))}
    named = case.get("converter")
    converter = (find_converter("value", named) if named else SimpleHeaderConverter)(case["config"])
    if "bytes" in case:
        raw = None if case["bytes"] is None else bytes.fromhex(case["bytes"])

        def read() -> Any:
            column = converter.to_connect([raw]).texts()
            return {"data": data_note(column.schema_of(0), column.values[0])}

        return read

    def write() -> Any:
        schema, value = data_of(case["data"])
        (raw,) = converter.from_connect(Column([value], schema))
        return {"bytes": None if raw is None else bytes(raw).hex()}

    return write


def wanted(case: dict[str, Any]) -> Any:
    """Connect's result; of an error the fields that a user sees first."""
    answer = case["answer"]
    if "error" in answer:
        return {"error": {name: answer["error"][name] for name in ("class", "message", "where")}}
    return unordered(answer)


@pytest.mark.parametrize("kind", sorted({case["name"].rpartition("-")[0] for case in CASES}))
def test_the_same_comes_out(kind: str) -> None:
    """Shows all differences at once."""
    different = []
    for case in CASES:
        if case["name"].rpartition("-")[0] == kind:
            ours_is, theirs = told(case), wanted(case)
            if ours_is != theirs and differs(case, ours_is, theirs) not in DIFFERENT:
                different.append(
                    f"{json.dumps({k: v for k, v in case.items() if k != 'answer'})}\n  {theirs}\n  {ours_is}"
                )
    assert not different, f"{len(different)} differ\n" + "\n".join(different)
