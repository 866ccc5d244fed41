"""Cases for record_avro.py: values to be written as Avro, and Avro to be read, with the converter's configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recorded.data.data_notation import (
    FLAT,
    FLAT_MAP,
    FLAT_NULLS,
    FLAT_VALUE,
    NESTED,
    NESTED_MAP,
    NESTED_NULL,
    NESTED_VALUE,
    SAMPLES,
    TYPE_OF,
    Case,
    data,
    logical,
    of,
    pairs,
    schema,
    struct,
)

WRITERS = Path(__file__).with_name("avro_writers.txt")
A = "io.confluent.connect.avro."
PLAIN: dict[str, str] = {}
ENHANCED = {"enhanced.avro.schema.support": "true"}
BARE = {"connect.meta.data": "false"}
NOW = 1_700_000_000_123
DAY = 86_400_000


def everything() -> list[Case]:
    """All cases, each with a name of its own."""
    cases = [*_plain(), *_logical(), *_containers(), *_structs(), *_named(), *_bare(), *_bad(), *_read()]
    return [
        {"name": f"{n}: {case['name']}", **{k: v for k, v in case.items() if k != "name"}}
        for n, case in enumerate(cases)
    ]


def _write(name: str, value: Any, of_schema: Any = None, config: dict[str, str] = PLAIN) -> Case:
    return {"name": name, "config": config, "data": data(value, of_schema)}


def _plain() -> list[Case]:
    plain = []
    for kind, samples in SAMPLES.items():
        named = TYPE_OF.get(kind, kind)
        plain += [
            _write(f"{kind} {sample!r}", of(kind, sample), schema(named)) for sample in samples[:3] if kind != "bytes"
        ]
        plain.append(_write(f"optional {kind}", of(kind, samples[0]), schema(named, optional=True)))
        plain.append(_write(f"null of optional {kind}", None, schema(named, optional=True)))
    plain += [
        _write("a default", of("int32", 1), schema("int32", default=5)),
        _write("an optional default", of("string", "x"), schema("string", optional=True, default="d")),
        _write("about", of("int64", 1), schema("int64", doc="d", version=4, name="n.m", parameters={"a": "b"})),
        _write("beyond the first plane", of("string", "\U0001f600 ü \n\u0000"), schema("string")),
    ]
    return plain


def _logical() -> list[Case]:
    wide = {**logical("Decimal"), "parameters": {"scale": "2", "connect.decimal.precision": "9"}}
    odd = {**logical("Decimal"), "parameters": {"scale": "-1"}}
    optional = [("Decimal", of("decimal", "-1.23")), ("Date", of("date", -DAY)), ("Timestamp", of("date", NOW))]
    in_fields = struct(*((name, logical(name, optional=True)) for name, _ in optional), name="l")
    new_logical = [
        _write("date", of("date", 3 * DAY), logical("Date")),
        _write("time", of("date", 1234), logical("Time")),
        _write("timestamp", of("date", NOW), logical("Timestamp")),
        _write("timestamp before 1970", of("date", -1), logical("Timestamp")),
        _write("fields", {"struct": [[n, v] for n, v in optional]}, in_fields),
        _write("null fields", {"struct": [[n, None] for n, _ in optional]}, in_fields),
    ]
    for name, kind in (("scale", logical("Decimal")), ("precision", wide), ("negative scale", odd)):
        holder = struct(("d", kind), name="h")
        text = "120" if kind is odd else "1.20"
        if kind is not odd:
            new_logical.append(_write(f"decimal, {name}", {"struct": pairs(d=of("decimal", text))}, holder))
    default = logical("Date", default=7)
    new_logical.append(
        _write("default of a date", {"struct": pairs(d=of("date", 0))}, struct(("d", default), name="h"))
    )
    new_logical.append(_write("time in a date", of("date", 5), logical("Date")))
    new_logical.append(_write("date in a time", of("date", DAY), logical("Time")))
    return new_logical


def _containers() -> list[Case]:
    texts, numbers = schema("string"), schema("int32", optional=True)
    a_list = {"list": [of("int32", 1), None, of("int32", -3)]}
    by_text = {"map": [[of("string", "a"), of("int32", 1)]]}
    by_number = {"map": [[of("int32", 7), of("string", "x")]]}
    by_optional = {"map": [[of("string", "a"), of("int32", 1)]]}
    keyed = schema("map", keys=schema("int32"), values=texts)
    return [
        _write("array", a_list, schema("array", items=numbers)),
        _write("empty array", {"list": []}, schema("array", items=texts)),
        _write("array of arrays", {"list": [a_list]}, schema("array", items=schema("array", items=numbers))),
        _write("optional array", a_list, schema("array", items=numbers, optional=True)),
        _write("map", by_text, schema("map", keys=texts, values=numbers)),
        _write("map by numbers", by_number, keyed),
        _write("optional map by numbers", by_number, {**keyed, "optional": True}),
        _write("named map by numbers", by_number, {**keyed, "name": "a.b.M"}),
        _write(
            "map by optional texts", by_optional, schema("map", keys=schema("string", optional=True), values=numbers)
        ),
        _write("an array's default", a_list, schema("array", items=schema("int32", optional=True), default=[1, 2])),
        _write("without a schema: list", {"list": [of("int32", 1), of("string", "x"), None]}),
        _write("without a schema: map", {"map": [[of("string", "a"), of("double", "1.5")]]}),
        _write("without a schema: null", None),
        *(_write(f"without a schema: {k}", of(k, s[0])) for k, s in SAMPLES.items() if k not in ("int8", "int16")),
    ]


def _structs() -> list[Case]:
    inner = struct(("x", schema("int32")), name="a.In")
    pair = {"struct": pairs(x=of("int32", 1))}
    twice = struct(("a", inner), ("b", {**inner, "optional": True}), ("c", inner), name="a.Twice")
    lists = struct(("a", schema("array", items=inner)), ("b", schema("array", items=inner)), name="a.Lists")
    unnamed = struct(("a", struct(("x", schema("int32")))), ("b", struct(("y", schema("int32")))))
    docs = struct(
        ("f", schema("string", doc="of the field's schema")),
        name="a.D",
        doc="d",
        parameters={A + "record.doc": "r", A + "field.doc.f": "f of the record"},
    )
    defaults = struct(
        ("i", schema("int8", default=1)),
        ("f", schema("float", default=1.5)),
        ("b", schema("boolean", default=True)),
        ("s", schema("string", optional=True, default="x")),
        ("o", schema("int64", optional=True)),
        name="a.Defaults",
    )
    nothing = {"struct": []}
    return [
        _write("flat", FLAT_VALUE, FLAT),
        _write("flat with nulls", FLAT_NULLS, FLAT),
        _write("nested", NESTED_VALUE, NESTED),
        _write("nested with nulls", NESTED_NULL, NESTED),
        _write("optional", pair, {**inner, "optional": True}),
        _write("null", None, {**inner, "optional": True}),
        _write("one struct thrice", {"struct": pairs(a=pair, b=None, c=pair)}, twice),
        _write("one struct in two lists", {"struct": pairs(a={"list": [pair]}, b={"list": []})}, lists),
        _write(
            "two without names",
            {"struct": pairs(a=pair, b={"struct": pairs(y=of("int32", 2))})},
            unnamed,
        ),
        _write("docs", {"struct": pairs(f=of("string", "x"))}, docs),
        _write("defaults", nothing, defaults),
        _write("map in a struct's place", FLAT_MAP),
        _write("maps within maps", NESTED_MAP),
        _write(
            "namespaces", {"struct": pairs(a={"struct": pairs(x=of("int32", 1))})}, struct(("a", inner), name="b.Out")
        ),
        _write("no namespace", {"struct": pairs(a=pair)}, struct(("a", inner), name="Out")),
        _write(
            "properties that are Avro's", of("string", "x"), schema("string", parameters={"avro.java.string": "String"})
        ),
    ]


def _named() -> list[Case]:
    enum = schema("string", name="a.E", parameters={A + "Enum": "a.E", A + "Enum.X": "X", A + "Enum.Y": "Y"})
    fixed = schema("bytes", name="a.F", parameters={"connect.fixed.size": "2"})
    union = struct(
        ("string", schema("string", optional=True)),
        ("int", schema("int32", optional=True)),
        ("In", struct(("x", schema("int32")), name="a.In", optional=True)),
        name=A + "Union",
    )
    holder = struct(("u", union), name="a.H")
    maybe = struct(("u", {**union, "optional": True}), name="a.H")
    text, number = {"struct": pairs(string=of("string", "x"))}, {"struct": pairs(int=of("int32", 3))}
    inner = {"struct": pairs(In={"struct": pairs(x=of("int32", 4))})}
    return [
        _write("enum", of("string", "Y"), enum),
        _write("enum, kept", of("string", "Y"), enum, ENHANCED),
        _write("enum, kept, optional", of("string", "Y"), {**enum, "optional": True}, ENHANCED),
        _write("fixed", {"struct": pairs(f=of("bytes", "0102"))}, struct(("f", fixed), name="a.H")),
        *(_write(f"union {n}", {"struct": pairs(u=item)}, holder) for n, item in enumerate((text, number, inner))),
        _write("union, optional", {"struct": pairs(u=None)}, maybe),
        _write("union, optional, set", {"struct": pairs(u=number)}, maybe),
    ]


def _bare() -> list[Case]:
    return [
        _write("bare: flat", FLAT_VALUE, FLAT, BARE),
        _write("bare: int8", of("int8", 1), schema("int8"), BARE),
        _write("bare: date", of("date", DAY), logical("Date"), BARE),
        _write("bare: default", of("int32", 1), schema("int32", default=5), BARE),
    ]


def _bad() -> list[Case]:
    return [
        _write(
            "a name that is none", {"struct": [["a-b", of("int32", 1)]]}, struct(("a-b", schema("int32")), name="n")
        ),
        _write(
            "a field's name with a digit",
            {"struct": [["1a", of("int32", 1)]]},
            struct(("1a", schema("int32")), name="n"),
        ),
    ]


def _avro(name: str, avro: Any, hexes: str, config: dict[str, str] = PLAIN) -> Case:
    return {"name": name, "config": config, "avro": json.dumps(avro), "bytes": hexes}


def _record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "a.b", "fields": list(fields), **more}


def _field(kind: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _of_others() -> list[Case]:
    """Forms that Avro's specification allows, which other libraries write."""
    numbers, ages = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    coins = {"type": "fixed", "name": "C", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    time = {"type": "int", "logicalType": "time-millis"}
    return [
        _avro("a block with its size", _record(_field(numbers)), "0304020400"),
        _avro("blocks with and without", _record(_field(numbers)), "020201020400"),
        _avro("a map's block with its size", _record(_field(ages)), "010602610e00"),
        _avro("a key in two blocks", _record(_field(ages)), "0202610e0202611000"),
        _avro("a number with needless bytes", _record(_field("int")), "828000"),
        _avro(
            "longs at their ends",
            _record(_field("long"), _field("long", "g")),
            "feffffffffffffffff01ffffffffffffffffff01",
        ),
        _avro("a text that is none of UTF-8", _record(_field("string")), "0661ff62"),
        _avro("a key that is none of UTF-8", _record(_field(ages)), "0202ff0e00"),
        _avro("a text with NUL", _record(_field("string")), "0200"),
        _avro("decimal with needless bytes", _record(_field(money)), "0800000001"),
        _avro("decimal of no bytes", _record(_field(money)), "00"),
        _avro("decimal beyond its precision", _record(_field(money)), "107f7f7f7f7f7f7f7f"),
        _avro("decimal of fixed size", _record(_field(coins)), "fffffffe"),
        _avro("a time before its day", _record(_field(time)), "01"),
        _avro("a float that is none", _record(_field("float"), _field("double", "g")), "0000c07f000000000000f87f"),
        _avro("bytes behind the value", _record(_field("int")), "02ffff"),
    ]


def _read() -> list[Case]:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"], "doc": "of E", "default": "A"}
    fixed = {"type": "fixed", "name": "F", "size": 2}
    two = [
        {"type": "record", "name": "X", "fields": [_field("int", "x")]},
        {"type": "record", "name": "Y", "fields": []},
    ]
    return [
        *_of_others(),
        _avro("int", "int", "0e"),
        _avro("enum", _record(_field(enum)), "02"),
        _avro("enum, kept", _record(_field(enum)), "02", ENHANCED),
        _avro("fixed", _record(_field(fixed)), "0102"),
        _avro("docs", _record(_field("int", doc="of f"), doc="of R"), "02"),
        _avro("defaults", _record(_field("int", default=7), _field("string", "s", default="x")), "020261"),
        _avro("default null", _record(_field(["null", "int"], default=None)), "0202"),
        _avro("default first", _record(_field(["int", "null"], default=3)), "0004"),
        _avro("null last", _record(_field(["string", "null"])), "02"),
        _avro("union of plain types", _record(_field(["null", "int", "string"])), "040261"),
        _avro("union of plain types: null", _record(_field(["null", "int", "string"])), "00"),
        _avro("union of int and long: int", _record(_field(["int", "long"])), "0006"),
        _avro("union of int and long: long", _record(_field(["int", "long"])), "0206"),
        _avro("union of float and double", _record(_field(["float", "double"])), "000000c03f"),
        _avro("union of records", _record(_field(two)), "0006"),
        _avro("union of records: the other", _record(_field(two)), "02"),
        _avro("union of records, kept", _record(_field(two)), "0006", ENHANCED),
        _avro("union at the top", ["int", "string"], "020261"),
        _avro("union of one", _record(_field(["int"])), "0006"),
        _avro("union with an enum", _record(_field(["string", enum])), "0202"),
        _avro(
            "decimal without precision",
            _record(_field({"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 4})),
            "040084",
        ),
        _avro("date", {"type": "int", "logicalType": "date"}, "06"),
        _avro("time in microseconds", {"type": "long", "logicalType": "time-micros"}, "06"),
        _avro("timestamp in microseconds", {"type": "long", "logicalType": "timestamp-micros"}, "06"),
        _avro("uuid", {"type": "string", "logicalType": "uuid"}, "0261"),
        _avro("local timestamp", {"type": "long", "logicalType": "local-timestamp-millis"}, "06"),
        _avro("a prop of Avro for Java", {"type": "string", "avro.java.string": "String"}, "0261"),
        _avro("map of records", {"type": "map", "values": _record(_field("int"))}, "02026b0600"),
        _avro("array of unions", {"type": "array", "items": ["null", "int", "string"]}, "04020404026100"),
        _avro("a known name again", _record(_field(fixed, "a"), _field("F", "b")), "01020304"),
        _avro("null alone", _record(_field("null")), ""),
        _avro("default of a record", _record(_field(two[0], default={"x": 5})), "02"),
        _avro("default of an array", _record(_field({"type": "array", "items": "int"}, default=[1])), "00"),
        _avro("default of bytes", _record(_field("bytes", default="\u00ff")), "0261"),
        _avro("default of an enum", _record(_field(enum, default="B")), "00"),
        *_beyond(enum),
        *_of_writers(),
    ]


def _of_writers() -> list[Case]:
    """The cases that record_avro_writers.py has recorded."""
    lines = WRITERS.read_text(encoding="utf-8").split("\n")[:-1]
    return [{"config": PLAIN, **json.loads(line)} for line in lines]


def _beyond(enum: dict[str, Any]) -> list[Case]:
    """Numbers of more bits than their type, places that are not there, lengths below 0."""
    nullable = _record(_field(["null", "string"]))
    return [
        *(_avro(f"int {name}", "int", number) for name, number in _NUMBERS.items()),
        *(_avro(f"long {name}", "long", number) for name, number in _NUMBERS.items()),
        *(_avro(f"union at {place}", nullable, f"{place}0261") for place in ("01", "03", "04", "0f", "ffffffff0f")),
        *(_avro(f"enum at {place}", _record(_field(enum)), place) for place in ("01", "03", "04", "0f", "ffffffff0f")),
        *(_avro(f"{kind} of -1", kind, "01616263") for kind in ("string", "bytes")),
        _avro("string beyond the end", "string", "12616263"),
        _avro("array with sizes", {"type": "array", "items": "int"}, "01020a00"),
        _avro("array without an end", {"type": "array", "items": "int"}, "020a"),
        _avro("map with sizes", {"type": "map", "values": "int"}, "010602610a00"),
        _avro("nothing", "int", ""),
        _avro("more than a value", "int", "027a7a"),
        _avro("a boolean of 2", "boolean", "02"),
        _avro("a string that is none of UTF-8", "string", "04fffe"),
    ]


_NUMBERS = {
    "of 31 bits": "feffffff0f",
    "of 32 bits": "8080808010",
    "of 33 bits": "8080808020",
    "of 6 bytes": "808080808040",
    "of 10 bytes": "ffffffffffffffffff01",
    "of 10 bytes with bits to spare": "ffffffffffffffffff7f",
    "of 11 bytes": "ffffffffffffffffffff01",
}
"""In Avro's encoding of integers; by the bits or bytes that they take."""
