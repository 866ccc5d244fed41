"""AvroConverter's schemas, bytes and values compared with Apicurio's converter (tests/recorded)."""

from __future__ import annotations

import json
from typing import Any

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.errors import DataError
from keelman.connect.records import Column
from keelman.connect.registry.interface import SchemaKind, SchemaText, header
from support.connectors.memory_registry import MemoryRegistry
from support.places import RECORDED_FOLDER
from unit.connect.test_data import data_note, data_of, unordered

CASES: list[dict[str, Any]] = json.loads((RECORDED_FOLDER / "data" / "avro.json").read_text())
DIFFERENT = {
    "an array's default": "theirs takes the array's schema for its items', Confluent's no longer does",
    "without a schema: bytes": "theirs does not write bytes without a schema",
    "map in a struct's place": "there are bytes in the map: the same",
    "union of one": "flatten.singleton.unions is Confluent's, and on",
    "default of a record": "the record's own notation has none for it",
    "decimal of fixed size": "theirs stumbles over its name, Confluent's does not",
    "decimal of no bytes": "told as what it is",
    "bytes of -1": "bytes by themselves have no length in Confluent's format",
    "int of 32 bits": "Avro for Java drops the bits that are too many and reads 0: refused",
    "int of 33 bits": "the same",
    "long of 11 bytes": "the library drops what is too much",
    "a boolean of 2": "the library takes all but 0 for true, Avro for Java all but 1 for false",
}

REFUSED_BYTES = {
    "java.io.EOFException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "org.apache.avro.AvroRuntimeException",
    "org.apache.avro.InvalidNumberEncodingException",
}


def made(case: dict[str, Any]) -> dict[str, Any]:
    """Our result for a case, in the record's shape."""
    registry = MemoryRegistry(versions=False)
    converter = registry.converter(AvroConverter, **case["config"])
    try:
        if "avro" in case:
            number = registry.register("s", SchemaText(SchemaKind.AVRO, case["avro"]))
            return {"back": back(converter, header(number) + bytes.fromhex(case["bytes"]))}
        schema, value = data_of(case["data"])
        (payload,) = converter.from_connect(Column([value], schema))
        if payload is None:
            return {"bytes": None}
        text = registry.schemas[-1].text
        return {"schema": text, "bytes": payload[5:].hex(), "back": back(converter, payload)}
    except DataError as error:
        return {"error": str(error).partition(" topic t: ")[2] or str(error).partition(" to Avro: ")[2]}


def back(converter: AvroConverter, payload: bytes) -> Any:
    column = converter.to_connect([payload])
    return data_note(column.schema_of(0), column.values[0])


def wanted(case: dict[str, Any]) -> dict[str, Any]:
    answer = case["answer"]
    if "error" in answer:
        return {"error": answer["error"]["message"]}
    if answer.get("bytes", "") is None:
        return {"bytes": None}
    return unordered(answer)


def test_the_same_comes_out() -> None:
    """Shows all differences at once."""
    different = []
    for case in CASES:
        ours, theirs = made(case), wanted(case)
        if "error" in theirs and "error" in ours:  # our message also names place and remedy
            ours["error"] = ours["error"].partition("; ")[0].partition(" (")[0]
            if case["answer"]["error"]["class"] in REFUSED_BYTES:  # the libraries' messages differ
                theirs["error"] = ours["error"]
        if (ours == theirs) == (case["name"].partition(": ")[2] in DIFFERENT):
            different.append(f"{case['name']}\n  {theirs}\n  {ours}")
    assert not different, f"{len(different)} differ, or do no longer\n" + "\n".join(different)
