"""Records values as Avro's C library, Apache's Python library and fastavro write them: avro_writers.txt, a case a line.

`python -m recorded.data.record_avro_writers`; it needs a C compiler, Debian's libavro-dev and libjansson-dev (or their
place in AVRO_C_FLAGS) and the package avro. `record_avro` then has Avro for Java read them.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import fastavro

HERE = Path(__file__).resolve().parent
INNER = {"type": "record", "name": "a.I", "fields": [{"name": "x", "type": "int"}, {"name": "s", "type": "string"}]}
ENUM = {"type": "enum", "name": "a.E", "symbols": ["A", "B", "C"]}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}


def record(**types: Any) -> dict[str, Any]:
    """The schema of a record with these fields."""
    return {"type": "record", "name": "a.R", "fields": [{"name": n, "type": t} for n, t in types.items()]}


def logical(kind: str, name: str) -> dict[str, str]:
    """A type with a logical type."""
    return {"type": kind, "logicalType": name}


CASES: dict[str, tuple[Any, Any]] = {
    "numbers": (record(b="boolean", i="int", j="int", k="long", m="long", f="float", d="double"),
                {"b": True, "i": -(2**31), "j": 2**31 - 1, "k": -(2**63), "m": 2**63 - 1, "f": -0.5, "d": 5e-324}),
    "texts": (record(s="string", e="string", w="string", b="bytes"),
              {"s": "é€😀", "e": "", "w": "a\nb", "b": "\x00\xff\x80a"}),
    "nulls": (record(a=["null", "int"], b=["null", "int"], c=["string", "null"], d=["string", "null"]),
              {"a": [0, None], "b": [1, -1], "c": [1, None], "d": [0, "x"]}),
    "unions": ({"type": "array", "items": ["null", "long", "string", "boolean", INNER, ENUM]},
               [[0, None], [1, 64], [2, "a"], [3, False], [4, {"x": 5, "s": "t"}], [5, "C"]]),
    "arrays": (record(a={"type": "array", "items": "int"}, e={"type": "array", "items": INNER},
                      n={"type": "array", "items": {"type": "array", "items": "string"}}),
               {"a": list(range(-150, 150)), "e": [], "n": [["a", ""], [], ["b"]]}),
    "maps": (record(m={"type": "map", "values": "long"}, e={"type": "map", "values": INNER}),
             {"m": {"a": 1, "é": -2, "": 3}, "e": {"k": {"x": 1, "s": "v"}}}),
    "named": (record(e=ENUM, again="a.E", f={"type": "fixed", "name": "a.F", "size": 3}, i=INNER, j="a.I"),
              {"e": "B", "again": "A", "f": "\x01\xfe\x00", "i": {"x": 1, "s": ""}, "j": {"x": -1, "s": "j"}}),
    "decimals": (record(m=MONEY), {"m": "\xff\x85\xee"}),
    "times": (record(d=logical("int", "date"), t=logical("int", "time-millis"), u=logical("long", "time-micros"),
                     at=logical("long", "timestamp-millis"), au=logical("long", "timestamp-micros")),
              {"d": -719162, "t": 86399999, "u": 86399999999, "at": -62135596800000, "au": 1700000000123456}),
    "text alone": ("string", "whole"),
    "long alone": ("long", -65),
}  # fmt: skip
"""By name: schema and value. A union's value is [place, value]; characters of bytes and fixed are bytes."""


def plain(schema: Any, value: Any, names: dict[str, Any], *, tagged: bool) -> Any:
    """The value for Python's libraries: bytes unchanged, of a union the value or, `tagged`, with its member's name."""
    if isinstance(schema, str):
        schema = names.get(schema, {"type": schema})
    if isinstance(schema, list):
        place, inner = value
        member = schema[place]
        new_plain = plain(member, inner, names, tagged=tagged)
        named = member if isinstance(member, str) else member["name"]
        return (named, new_plain) if tagged and inner is not None else new_plain
    kind = schema["type"]
    if "name" in schema:
        names[schema["name"]] = schema
    if kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if kind == "array":
        return [plain(schema["items"], item, names, tagged=tagged) for item in value]
    if kind == "map":
        return {key: plain(schema["values"], value, names, tagged=tagged) for key, value in value.items()}
    if kind == "record":
        return {f["name"]: plain(f["type"], value[f["name"]], names, tagged=tagged) for f in schema["fields"]}
    return value


def unlogical(schema: Any) -> Any:
    """The schema without logical types, for the underlying values."""
    if isinstance(schema, list):
        return [unlogical(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    new_unlogical = {
        key: unlogical(value) if key in ("type", "items", "values") else value for key, value in schema.items()
    }
    if "fields" in new_unlogical:
        new_unlogical["fields"] = [{**field, "type": unlogical(field["type"])} for field in new_unlogical["fields"]]
    new_unlogical.pop("logicalType", None)
    return new_unlogical


def by_fastavro(schema: Any, value: Any) -> bytes:
    """Writes the value with fastavro."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(unlogical(schema)), plain(schema, value, {}, tagged=True))
    return stream.getvalue()


def by_apache(schema: Any, value: Any) -> bytes:
    """Writes the value with the package avro."""
    stream = io.BytesIO()
    parsed = avro.schema.parse(json.dumps(unlogical(schema)))
    avro.io.DatumWriter(parsed).write(plain(schema, value, {}, tagged=False), avro.io.BinaryEncoder(stream))
    return stream.getvalue()


def by_c() -> list[bytes]:
    """Writes all cases with Avro's C library."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/writer"
        flags = shlex.split(os.environ.get("AVRO_C_FLAGS", ""))
        command = ["cc", "-O1", "-o", program, str(HERE / "avro_c" / "main.c"), *flags, "-lavro", "-ljansson"]
        subprocess.run(command, check=True)
        lines = "".join(json.dumps({"avro": avro, "value": value}) + "\n" for avro, value in CASES.values())
        done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [bytes.fromhex(line) for line in done.stdout.split("\n")[:-1]]


def main() -> None:
    """Writes the record."""
    lines = []
    for (name, (schema, value)), of_c in zip(CASES.items(), by_c(), strict=True):
        written = {"C": of_c, "avro": by_apache(schema, value), "fastavro": by_fastavro(schema, value)}
        text = json.dumps(schema)
        lines += [
            json.dumps({"name": f"{name}, by {who}", "avro": text, "bytes": b.hex()}) for who, b in written.items()
        ]
    (HERE / "avro_writers.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} values")


if __name__ == "__main__":
    main()
