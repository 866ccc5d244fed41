"""Cases for transforms, predicates and converters: what goes in. The notation is described in record_data.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

T = "org.apache.kafka.connect.transforms."
P = T + "predicates."
DATA = "org.apache.kafka.connect.data."
Case = dict[str, Any]
NOW = 1_700_000_000_123

INTS = ("int8", "int16", "int32", "int64")
NUMBERS = (*INTS, "float", "double")
SAMPLES: dict[str, list[Any]] = {
    "int8": [0, 1, -1, 127, -128],
    "int16": [300, -32768],
    "int32": [70000, -2147483648],
    "int64": [5_000_000_000, -9223372036854775808],
    "float": ["1.5", "-0.0", "3.4028235E38", "NaN", "0.1"],
    "double": ["1.5", "1e10", "1.0E-5", "Infinity", "300.7"],
    "bool": [True, False],
    "string": ["12", "-7", " 5 ", "1.5", "true", "abc", "", "300", "1e3", "TRUE", "NaN", "+4"],
    "bytes": ["", "00ff10"],
}
TYPE_OF = {"bool": "boolean", "date": "int64", "decimal": "bytes", "list": "array"}


def schema(kind: str, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """A schema in JsonConverter's own JSON."""
    return {"type": kind, "optional": optional, **more}


def logical(name: str, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """The schema of a logical type."""
    kind = {"Decimal": "bytes", "Date": "int32", "Time": "int32", "Timestamp": "int64"}[name]
    parameters = {"parameters": {"scale": "2"}} if name == "Decimal" else {}
    return schema(kind, optional=optional, name=DATA + name, version=1, **parameters, **more)


def struct(*fields: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A struct's schema."""
    return {"type": "struct", "optional": False, **more, "fields": [{**s, "field": n} for n, s in fields]}


def of(kind: str, value: Any) -> Any:
    """A value in the notation."""
    return None if value is None else {kind: value}


def pairs(**values: Any) -> list[list[Any]]:
    """The pairs of a struct, of values in the notation."""
    return [[name, value] for name, value in values.items()]


def a_map(**values: Any) -> Any:
    """A map with string keys, of values in the notation."""
    return {"map": [[of("string", name), value] for name, value in values.items()]}


def data(value: Any, of_schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """A value with its schema."""
    return {"schema": of_schema, "value": value}


def record(value: Any = None, of_schema: Any = None, key: Any = None, key_schema: Any = None, **more: Any) -> Case:
    """A source's record; a sink's where `offset` is given."""
    base = {"topic": "t", "partition": None, "timestamp": NOW, "headers": []}
    return {**base, "key": data(key, key_schema), "value": data(value, of_schema), **more}


def step(name: str, config: dict[str, str], given: Case) -> Case:
    """A transform's case."""
    return {"transform": T + name, "config": config, "record": given}


FLAT = struct(
    ("id", schema("int32")),
    ("name", schema("string", optional=True)),
    ("price", schema("double", optional=True, default=2.5)),
    ("ok", schema("boolean")),
    ("raw", schema("bytes", optional=True)),
    name="flat",
    version=3,
    doc="a doc",
    parameters={"p": "q"},
)
FLAT_VALUE = {
    "struct": pairs(
        id=of("int32", 7),
        name=of("string", "böx"),
        price=of("double", "1.25"),
        ok=of("bool", True),
        raw=of("bytes", "0102"),
    )
}
FLAT_NULLS = {"struct": pairs(id=of("int32", 7), name=None, price=None, ok=of("bool", False), raw=None)}
FLAT_MAP = a_map(
    id=of("int32", 7),
    name=of("string", "böx"),
    price=of("double", "1.25"),
    ok=of("bool", True),
    raw=of("bytes", "0102"),
    no=None,
)
INNER = struct(("x", schema("int64")), ("y", schema("string", optional=True, default="d")), optional=True, name="inner")
NESTED = struct(
    ("id", schema("int32")),
    ("in", INNER),
    ("list", schema("array", items=schema("string"))),
    (
        "more",
        struct(("deep", struct(("z", schema("float", optional=True))))),
    ),
)
NESTED_VALUE = {
    "struct": pairs(
        **{
            "id": of("int32", 1),
            "in": {"struct": pairs(x=of("int64", 5), y=None)},
            "list": {"list": [of("string", "a"), of("string", "b")]},
            "more": {"struct": pairs(deep={"struct": pairs(z=of("float", "0.1"))})},
        }
    )
}
NESTED_NULL = {
    "struct": pairs(
        **{
            "id": of("int32", 1),
            "in": None,
            "list": {"list": []},
            "more": {"struct": pairs(deep={"struct": pairs(z=None)})},
        }
    )
}
NESTED_MAP = a_map(
    **{
        "id": of("int64", 1),
        "in": a_map(x=of("int64", 5), y=None),
        "list": {"list": [of("string", "a"), of("int64", 2)]},
        "more": a_map(deep=a_map(z=of("double", "0.1"), **{"a.b": of("string", "dotted")})),
        "dot.ted": of("string", "d"),
    }
)
DATED = struct(
    ("d", logical("Date")),
    ("t", logical("Time", optional=True)),
    ("ts", logical("Timestamp")),
    ("dec", logical("Decimal")),
)
DATED_VALUE = {
    "struct": pairs(
        d=of("date", 86_400_000 * 19_000),
        t=of("date", 3_600_123),
        ts=of("date", NOW),
        dec=of("decimal", "12.30"),
    )
}
BOTH = (("struct", FLAT_VALUE, FLAT), ("nulls", FLAT_NULLS, FLAT), ("map", FLAT_MAP, None))


def everything() -> list[Case]:
    """All cases, each with a name of its own."""
    found: list[Case] = []
    for kind, make in sorted(_MAKERS.items()):
        found += [{"name": f"{kind}-{number}", **case} for number, case in enumerate(make())]
    return found


def cast() -> Iterator[Case]:
    """Cast."""
    targets = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
    for target in targets:
        for kind, samples in SAMPLES.items():
            for value in samples if kind in ("string", "int64", "double", "bool") else samples[:3]:
                yield step("Cast$Value", {"spec": target}, record(of(kind, value), schema(TYPE_OF.get(kind, kind))))
        for kind, samples in SAMPLES.items():
            yield step("Cast$Value", {"spec": target}, record(of(kind, samples[0])))
        for name in ("Date", "Time", "Timestamp"):
            yield step("Cast$Value", {"spec": target}, record(of("date", 86_400_000), logical(name)))
        yield step("Cast$Value", {"spec": target}, record(of("decimal", "12.30"), logical("Decimal")))
        yield step("Cast$Value", {"spec": target}, record(None, schema("int32", optional=True)))
    for _, value, of_schema in BOTH:
        yield step("Cast$Value", {"spec": "id:string,price:float32"}, record(value, of_schema))
        yield step("Cast$Value", {"spec": "id:int8,ok:int32,none:int8"}, record(value, of_schema))
        yield step("Cast$Value", {"spec": "name:int32"}, record(value, of_schema))
        yield step("Cast$Value", {"spec": "raw:string"}, record(value, of_schema))
        yield step(
            "Cast$Value", {"spec": "price:string", "replace.null.with.default": "false"}, record(value, of_schema)
        )
    for spec in (
        "",
        "int128",
        "a:b:c",
        "a:int8,int16",
        "a:bytes",
        "int8,int16",
        " int8 ",
        "a:int8, b:string",
        "a:",
        ":int8",
    ):
        yield step("Cast$Value", {"spec": spec}, record(FLAT_VALUE, FLAT))
    yield step("Cast$Value", {}, record(FLAT_VALUE, FLAT))
    yield step(
        "Cast$Key", {"spec": "string"}, record(key=of("int32", 5), key_schema=schema("int32", optional=True, default=9))
    )
    yield step("Cast$Value", {"spec": "d:string,ts:string,t:int64"}, record(DATED_VALUE, DATED))
    yield step("Cast$Value", {"spec": "string"}, record({"list": [of("int32", 1)]}))
    yield step("Cast$Value", {"spec": "string"}, record(a_map(a=of("int32", 1))))


def headers() -> Iterator[Case]:
    """DropHeaders, HeaderFrom, InsertHeader."""
    given = [["a", data(of("string", "1"), schema("string"))], ["b", data(of("int32", 2), schema("int32"))]]
    given += [["a", data(None)]]
    for names in ("a", "b", "a,b", "c", "a, b", ""):
        yield step("DropHeaders", {"headers": names}, record(headers=given))
    yield step("DropHeaders", {}, record(headers=given))
    for text in (
        "12",
        "x",
        "true",
        "null",
        "1.5",
        "[1,2]",
        '{"a":1}',
        '"q"',
        "2019-08-23T14:34:54.346Z",
        "2019-08-23",
        "128",
        "1e5",
        "",
    ):
        yield step("InsertHeader", {"header": "h", "value.literal": text}, record(headers=given))
    yield step("InsertHeader", {"header": "h"}, record())
    yield step("InsertHeader", {"header": "", "value.literal": "x"}, record())
    for operation in ("move", "copy", "MOVE", "steal"):
        for _, value, of_schema in BOTH:
            config = {"fields": "id,name", "headers": "h1,h2", "operation": operation}
            yield step("HeaderFrom$Value", config, record(value, of_schema, headers=given))
    for config in (
        {"fields": "id", "headers": "a,b", "operation": "move"},
        {"fields": "", "headers": "", "operation": "move"},
        {"fields": "none", "headers": "h", "operation": "copy"},
        {"fields": "price", "headers": "h", "operation": "copy", "replace.null.with.default": "false"},
        {"fields": "price", "headers": "h", "operation": "move"},
        {"fields": "id", "headers": "h"},
    ):
        for _, value, of_schema in BOTH:
            yield step("HeaderFrom$Value", config, record(value, of_schema))
    yield step(
        "HeaderFrom$Key", {"fields": "id", "headers": "h", "operation": "move"}, record(None, None, FLAT_VALUE, FLAT)
    )
    yield step("HeaderFrom$Value", {"fields": "id", "headers": "h", "operation": "move"}, record(of("string", "x")))
    yield step("HeaderFrom$Value", {"fields": "id", "headers": "h", "operation": "move"}, record())


def extract() -> Iterator[Case]:
    """ExtractField."""
    for _, value, of_schema in BOTH:
        for field in ("id", "name", "price", "none"):
            yield step("ExtractField$Value", {"field": field}, record(value, of_schema))
        yield step(
            "ExtractField$Value", {"field": "price", "replace.null.with.default": "false"}, record(value, of_schema)
        )
    for value, of_schema in ((NESTED_VALUE, NESTED), (NESTED_NULL, NESTED), (NESTED_MAP, None)):
        for field in (
            "in.x",
            "in.y",
            "more.deep.z",
            "in",
            "in.none",
            "none.x",
            "`dot.ted`",
            "more.deep.`a.b`",
            "dot.ted",
            "id.x",
        ):
            for version in ("V1", "V2"):
                yield step(
                    "ExtractField$Value", {"field": field, "field.syntax.version": version}, record(value, of_schema)
                )
    yield step("ExtractField$Value", {"field": "a`b.c", "field.syntax.version": "V2"}, record(NESTED_MAP))
    yield step("ExtractField$Value", {"field": "`a", "field.syntax.version": "V2"}, record(NESTED_MAP))
    yield step("ExtractField$Value", {"field": "a", "field.syntax.version": "V3"}, record(NESTED_MAP))
    yield step("ExtractField$Value", {}, record(NESTED_MAP))
    yield step("ExtractField$Value", {"field": "a"}, record())
    yield step("ExtractField$Value", {"field": "a"}, record(of("string", "x"), schema("string")))
    yield step("ExtractField$Value", {"field": "a"}, record(of("string", "x")))
    yield step("ExtractField$Key", {"field": "id"}, record(None, None, FLAT_VALUE, FLAT))


def flatten() -> Iterator[Case]:
    """Flatten."""
    for delimiter in (".", "_", "", "--"):
        for value, of_schema in ((NESTED_VALUE, NESTED), (NESTED_NULL, NESTED), (NESTED_MAP, None), (FLAT_VALUE, FLAT)):
            yield step("Flatten$Value", {"delimiter": delimiter}, record(value, of_schema))
    yield step("Flatten$Value", {}, record())
    yield step("Flatten$Value", {}, record(None, NESTED))
    with_map = struct(("m", schema("map", keys=schema("string"), values=schema("int32"))))
    yield step("Flatten$Value", {}, record({"struct": pairs(m=a_map(a=of("int32", 1)))}, with_map))
    yield step("Flatten$Value", {}, record(of("string", "x"), schema("string")))
    yield step("Flatten$Value", {}, record({"map": [[of("int32", 1), of("int32", 2)]]}))
    yield step("Flatten$Value", {}, record(a_map(a={"map": []}, b={"list": []})))
    yield step("Flatten$Key", {}, record(None, None, NESTED_VALUE, NESTED))
    inner_default = struct(
        ("in", struct(("x", schema("int32", default=4)), optional=True)), ("d", logical("Date", optional=True))
    )
    yield step("Flatten$Value", {}, record({"struct": [["in", None], ["d", None]]}, inner_default))


def hoist() -> Iterator[Case]:
    """HoistField and Filter."""
    for value, of_schema in ((FLAT_VALUE, FLAT), (FLAT_MAP, None), (of("string", "x"), schema("string")), (None, None)):
        yield step("HoistField$Value", {"field": "line"}, record(value, of_schema))
        yield step("HoistField$Key", {"field": "k"}, record(None, None, value, of_schema))
    yield step("HoistField$Value", {"field": "line"}, record(None, schema("string", optional=True)))
    yield step("HoistField$Value", {}, record(of("string", "x")))
    yield step("Filter", {}, record(of("string", "x")))


def insert() -> Iterator[Case]:
    """InsertField."""
    sink = {"partition": 3, "offset": 42}
    for _, value, of_schema in BOTH:
        for config in (
            {"topic.field": "top"},
            {"topic.field": "top!"},
            {"topic.field": "top?"},
            {"partition.field": "part"},
            {"partition.field": "part!"},
            {"timestamp.field": "ts"},
            {"timestamp.field": "ts!", "static.field": "s?", "static.value": "v"},
            {"static.field": "s", "static.value": "v"},
            {"static.field": "id", "static.value": "v"},
            {"static.field": "s"},
            {"offset.field": "off"},
        ):
            yield step("InsertField$Value", config, record(value, of_schema))
            yield step("InsertField$Value", config, record(value, of_schema, **sink))
        yield step("InsertField$Value", {"timestamp.field": "ts"}, record(value, of_schema, timestamp=None))
        yield step("InsertField$Value", {"timestamp.field": "ts!"}, record(value, of_schema, timestamp=None))
        yield step(
            "InsertField$Value", {"topic.field": "top", "replace.null.with.default": "false"}, record(value, of_schema)
        )
    yield step("InsertField$Value", {}, record(FLAT_VALUE, FLAT))
    yield step("InsertField$Value", {"topic.field": "x"}, record())
    yield step("InsertField$Value", {"topic.field": "x"}, record(None, FLAT))
    yield step("InsertField$Value", {"topic.field": "x"}, record(of("string", "x")))
    yield step("InsertField$Value", {"topic.field": "x"}, record(of("string", "x"), schema("string")))
    yield step("InsertField$Key", {"topic.field": "x"}, record(None, None, FLAT_MAP))


def mask() -> Iterator[Case]:
    """MaskField."""
    for _, value, of_schema in BOTH:
        for fields in ("id", "name", "price,ok", "raw", "none"):
            yield step("MaskField$Value", {"fields": fields}, record(value, of_schema))
        for fields, text in (
            ("id", "9"),
            ("id", "x"),
            ("name", "***"),
            ("price", "1.5"),
            ("ok", "true"),
            ("raw", "x"),
            ("id,name", "5"),
        ):
            yield step("MaskField$Value", {"fields": fields, "replacement": text}, record(value, of_schema))
        yield step(
            "MaskField$Value", {"fields": "price", "replace.null.with.default": "false"}, record(value, of_schema)
        )
    yield step("MaskField$Value", {"fields": "d,t,ts,dec"}, record(DATED_VALUE, DATED))
    yield step("MaskField$Value", {"fields": "in,list"}, record(NESTED_MAP))
    yield step("MaskField$Value", {"fields": "in,list"}, record(NESTED_VALUE, NESTED))
    yield step("MaskField$Value", {"fields": "list"}, record(NESTED_VALUE, NESTED))
    kinds = {k: v[0] for k, v in SAMPLES.items()}
    mixed = a_map(**{k: of(k, v) for k, v in kinds.items()}, date=of("date", NOW), dec=of("decimal", "1.5"))
    for field in (*kinds, "date", "dec"):
        yield step("MaskField$Value", {"fields": field}, record(mixed))
        yield step("MaskField$Value", {"fields": field, "replacement": "7"}, record(mixed))
    yield step("MaskField$Value", {"fields": ""}, record(FLAT_VALUE, FLAT))
    yield step("MaskField$Value", {"fields": "id", "replacement": ""}, record(FLAT_VALUE, FLAT))
    yield step("MaskField$Value", {}, record(FLAT_VALUE, FLAT))
    yield step("MaskField$Value", {"fields": "id"}, record())
    yield step("MaskField$Value", {"fields": "id"}, record(of("string", "x")))


def route() -> Iterator[Case]:
    """RegexRouter and TimestampRouter."""
    for regex, replacement in (
        ("(.*)", "x-$1"),
        ("t", "u"),
        ("T", "u"),
        ("a(.)c", "$1$1"),
        ("(?<n>.*)", "${n}-x"),
        ("(.*)-(.*)", "$2-$1"),
        ("[", "x"),
        ("(.*)", "$3"),
        ("(.*)", "\\$1"),
        ("x*", "y"),
        (".*", "b"),
    ):
        for topic in ("t", "abc", "a-b", ""):
            yield step(
                "RegexRouter", {"regex": regex, "replacement": replacement}, record(of("string", "x"), topic=topic)
            )
    yield step("RegexRouter", {"regex": "a"}, record())
    yield step("RegexRouter", {"replacement": "a"}, record())
    for config in (
        {},
        {"topic.format": "${topic}", "timestamp.format": "yyyy"},
        {"topic.format": "p-${topic}-${timestamp}-${topic}", "timestamp.format": "yyyy-MM-dd'T'HH:mm:ss.SSS"},
        {"timestamp.format": "EEE, d MMM yyyy HH:mm:ss Z"},
        {"timestamp.format": "yyyy'year'DDD"},
        {"timestamp.format": "w W F a K k h X z"},
        {"timestamp.format": "YYYY-'W'ww-u"},
        {"timestamp.format": "yy.M.d.H.m.s.S"},
        {"timestamp.format": "MMMM G"},
        {"timestamp.format": "bad q"},
        {"topic.format": "fixed"},
    ):
        for when in (NOW, 0, -1, 253_402_300_799_999, None):
            yield step("TimestampRouter", config, record(of("string", "x"), timestamp=when))


def replace() -> Iterator[Case]:
    """ReplaceField."""
    for _, value, of_schema in BOTH:
        for config in (
            {"exclude": "id"},
            {"include": "id,name"},
            {"include": "none"},
            {"renames": "id:key,name:title"},
            {"exclude": "id", "include": "id,name"},
            {"include": "id", "renames": "id:x"},
            {"renames": "id:x:y"},
            {"renames": "id"},
            {"exclude": "none"},
            {},
            {"exclude": "id", "replace.null.with.default": "false"},
            {"whitelist": "id"},
            {"renames": "id:name"},
        ):
            yield step("ReplaceField$Value", config, record(value, of_schema))
    yield step("ReplaceField$Value", {"exclude": "a"}, record())
    yield step("ReplaceField$Value", {"exclude": "a"}, record(of("string", "x")))
    yield step("ReplaceField$Key", {"exclude": "id"}, record(None, None, FLAT_VALUE, FLAT))


def metadata() -> Iterator[Case]:
    """SetSchemaMetadata."""
    for config in (
        {"schema.name": "n"},
        {"schema.version": "7"},
        {"schema.name": "n", "schema.version": "7"},
        {},
        {"schema.version": "x"},
    ):
        for value, of_schema in (
            (FLAT_VALUE, FLAT),
            (FLAT_NULLS, FLAT),
            (of("string", "x"), schema("string")),
            (None, None),
            (FLAT_MAP, None),
        ):
            yield step("SetSchemaMetadata$Value", config, record(value, of_schema))
    yield step("SetSchemaMetadata$Value", {"schema.name": "n"}, record(None, FLAT))
    yield step("SetSchemaMetadata$Key", {"schema.name": "n"}, record(None, None, of("int32", 1), schema("int32")))
    yield step(
        "SetSchemaMetadata$Value", {"schema.name": "n"}, record({"list": []}, schema("array", items=schema("int32")))
    )


def timestamps() -> Iterator[Case]:
    """TimestampConverter."""
    text = "2023-11-14 22:13:20.123"
    pattern = "yyyy-MM-dd HH:mm:ss.SSS"
    sources = [
        (of("string", text), schema("string")),
        (of("int64", NOW), schema("int64")),
        (of("date", NOW), logical("Timestamp")),
        (of("date", 86_400_000 * 19_000), logical("Date")),
        (of("date", 3_600_123), logical("Time")),
        (None, logical("Timestamp", optional=True)),
        (None, schema("int64", optional=True)),
        (of("int32", 5), schema("int32")),
    ]
    for target in ("string", "unix", "Date", "Time", "Timestamp", "bad"):
        for value, of_schema in sources:
            config = {"target.type": target, "format": pattern}
            yield step("TimestampConverter$Value", config, record(value, of_schema))
            yield step("TimestampConverter$Value", config, record(value))
    for precision in ("seconds", "milliseconds", "microseconds", "nanoseconds", "minutes"):
        config = {"target.type": "Timestamp", "unix.precision": precision}
        yield step("TimestampConverter$Value", config, record(of("int64", 1_700_000_000), schema("int64")))
        yield step("TimestampConverter$Value", config, record(of("int64", -1_500_000_001), schema("int64")))
        config = {"target.type": "unix", "unix.precision": precision}
        yield step("TimestampConverter$Value", config, record(of("date", NOW), logical("Timestamp")))
        yield step("TimestampConverter$Value", config, record(of("date", -1), logical("Timestamp")))
    for form, given in (
        ("yyyy-MM-dd", "2023-11-14"),
        ("yyyy-MM-dd", "2023-13-45"),
        ("yyyy-MM-dd", "nonsense"),
        ("yyyy-MM-dd", "2023-11-14 trailing"),
        ("yyyyMMdd", "20231114"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "14/Nov/2023:22:13:20 +0100"),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2023-11-14T22:13:20Z"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2023-11-14T22:13:20+05:30"),
        ("EEE MMM dd HH:mm:ss zzz yyyy", "Tue Nov 14 22:13:20 UTC 2023"),
        ("h:mm a", "3:05 PM"),
        ("yy-MM-dd", "69-01-02"),
        ("yyyy", "2023"),
        ("HH:mm", "25:61"),
        ("q", "1"),
        ("", "1"),
    ):
        config = {"target.type": "Timestamp", "format": form}
        yield step("TimestampConverter$Value", config, record(of("string", given), schema("string")))
        config = {"target.type": "string", "format": form}
        yield step("TimestampConverter$Value", config, record(of("date", NOW), logical("Timestamp")))
    for field in ("d", "t", "ts", "dec", "none", "d,ts"):
        for target in ("string", "unix", "Timestamp"):
            config = {"target.type": target, "format": pattern, "field": field}
            yield step("TimestampConverter$Value", config, record(DATED_VALUE, DATED))
    yield step(
        "TimestampConverter$Value",
        {"target.type": "unix", "field": "a"},
        record(a_map(a=of("date", NOW), b=of("int32", 1))),
    )
    yield step("TimestampConverter$Value", {"target.type": "string"}, record(of("int64", 1)))
    yield step("TimestampConverter$Value", {}, record(of("int64", 1)))
    yield step("TimestampConverter$Value", {"target.type": "unix", "field": "a"}, record(of("int64", 1)))
    yield step(
        "TimestampConverter$Key", {"target.type": "unix"}, record(key=of("date", NOW), key_schema=logical("Timestamp"))
    )
    yield step("TimestampConverter$Value", {"target.type": "unix", "field": "a"}, record())


def to_key() -> Iterator[Case]:
    """ValueToKey."""
    for _, value, of_schema in BOTH:
        for fields in ("id", "name,id", "none", "price", ""):
            yield step("ValueToKey", {"fields": fields}, record(value, of_schema))
        yield step("ValueToKey", {"fields": "price", "replace.null.with.default": "false"}, record(value, of_schema))
    yield step("ValueToKey", {"fields": "id"}, record())
    yield step("ValueToKey", {"fields": "id"}, record(of("string", "x"), schema("string")))
    yield step("ValueToKey", {}, record(FLAT_MAP))


def predicates() -> Iterator[Case]:
    """The three predicates."""
    given = [["a", data(of("string", "1"))]]
    for name in ("a", "b", ""):
        yield {"predicate": P + "HasHeaderKey", "config": {"name": name}, "record": record(headers=given)}
    yield {"predicate": P + "HasHeaderKey", "config": {}, "record": record()}
    for value in (None, of("string", "x")):
        yield {"predicate": P + "RecordIsTombstone", "config": {}, "record": record(value)}
        yield {
            "predicate": P + "RecordIsTombstone",
            "config": {},
            "record": record(value, schema("string", optional=True)),
        }
    for pattern in ("t", ".*", "T", "(?i)T", "tt", "[", "a|t", ""):
        yield {"predicate": P + "TopicNameMatches", "config": {"pattern": pattern}, "record": record()}
    yield {"predicate": P + "TopicNameMatches", "config": {}, "record": record()}


def _values() -> Iterator[tuple[Any, Any]]:
    for kind, samples in SAMPLES.items():
        for value in samples:
            yield of(kind, value), schema(TYPE_OF.get(kind, kind))
        yield (
            of(kind, samples[0]),
            schema(TYPE_OF.get(kind, kind), optional=True, default=_default(kind), name="n", version=2, doc="d"),
        )
        yield of(kind, samples[0]), None
        yield None, schema(TYPE_OF.get(kind, kind), optional=True)
        yield None, schema(TYPE_OF.get(kind, kind))
    yield FLAT_VALUE, FLAT
    yield FLAT_NULLS, FLAT
    yield FLAT_MAP, None
    yield NESTED_VALUE, NESTED
    yield NESTED_NULL, NESTED
    yield NESTED_MAP, None
    yield DATED_VALUE, DATED
    yield None, None
    yield of("date", NOW), None
    yield of("decimal", "1.50"), None
    yield of("decimal", "-0.01"), logical("Decimal")
    yield of("decimal", "1.5"), logical("Decimal")
    yield of("decimal", "123456789012345678901234567890.12"), logical("Decimal")
    yield {"map": [[of("int32", 1), of("string", "a")]]}, schema("map", keys=schema("int32"), values=schema("string"))
    yield {"map": [[of("int32", 1), of("string", "a")]]}, None
    yield {"list": [of("int32", 1), None]}, schema("array", items=schema("int32", optional=True))
    yield {"list": [of("int32", 1), of("string", "a")]}, None
    yield of("string", 'q"\\\n\x01\x7fé€😀/'), schema("string")


def _default(kind: str) -> Any:
    return {"bool": True, "string": "d", "bytes": "AQI=", "float": 0.5, "double": 0.25}.get(kind, 3)


CONNECT = "org.apache.kafka.connect."
NUMBERED = ("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray")


def converters() -> Iterator[Case]:
    """From data to bytes."""
    for value, of_schema in _values():
        for config in ({"schemas.enable": "true"}, {"schemas.enable": "false"}):
            yield {"converter": CONNECT + "json.JsonConverter", "config": config, "data": data(value, of_schema)}
        yield {"converter": CONNECT + "storage.StringConverter", "config": {}, "data": data(value, of_schema)}
    for more in ({"decimal.format": "NUMERIC"}, {"decimal.format": "numeric"}, {"replace.null.with.default": "false"}):
        for value, of_schema in ((DATED_VALUE, DATED), (FLAT_NULLS, FLAT), (of("decimal", "1.50"), None)):
            yield {
                "converter": CONNECT + "json.JsonConverter",
                "config": {"schemas.enable": "false", **more},
                "data": data(value, of_schema),
            }
    yield {"converter": CONNECT + "json.JsonConverter", "config": {"decimal.format": "x"}, "data": data(None)}
    yield {
        "converter": CONNECT + "storage.StringConverter",
        "config": {"converter.encoding": "UTF-16"},
        "data": data(of("string", "é")),
    }
    yield {
        "converter": CONNECT + "storage.StringConverter",
        "config": {"converter.encoding": "none"},
        "data": data(of("string", "é")),
    }
    for name in NUMBERED:
        for kind, samples in SAMPLES.items():
            one = schema(TYPE_OF.get(kind, kind))
            yield {
                "converter": f"{CONNECT}converters.{name}Converter",
                "config": {},
                "data": data(of(kind, samples[0]), one),
            }
            yield {
                "converter": f"{CONNECT}converters.{name}Converter",
                "config": {},
                "data": data(of(kind, samples[-1])),
            }
        yield {"converter": f"{CONNECT}converters.{name}Converter", "config": {}, "data": data(None)}


def readers() -> Iterator[Case]:
    """From bytes to data."""
    texts = [
        "null",
        "true",
        "1",
        "-1",
        "1.0",
        "1e2",
        "12345678901234567890",
        '"x"',
        "[]",
        "[1,2.5,null]",
        "{}",
        '{"a":{"b":[1]}}',
        "",
        " ",
        "{",
        "[1,",
        "nul",
        "'x'",
        '{"a":1,"a":2}',
        "01",
        "1 2",
        "NaN",
        '"\\u00e9\\ud83d\\ude00"',
        "1.10",
        '{"schema":null,"payload":null}',
        '{"schema":null,"payload":5}',
        '{"payload":5}',
        '{"schema":null,"payload":5,"x":1}',
        '{"schema":{"type":"int32"},"payload":5}',
        '{"schema":{"type":"int32"},"payload":"5"}',
        '{"schema":{"type":"int8"},"payload":300}',
        '{"schema":{"type":"int32","optional":true},"payload":null}',
        '{"schema":{"type":"int32"},"payload":null}',
        '{"schema":{"type":"int32","optional":true,"default":7},"payload":null}',
        '{"schema":{"type":"float"},"payload":1}',
        '{"schema":{"type":"double"},"payload":1}',
        '{"schema":{"type":"string"},"payload":5}',
        '{"schema":{"type":"boolean"},"payload":"true"}',
        '{"schema":{"type":"bytes"},"payload":"AQI="}',
        '{"schema":{"type":"bytes"},"payload":"***"}',
        '{"schema":{"type":"array","items":{"type":"int32"}},"payload":[1,2]}',
        '{"schema":{"type":"array"},"payload":[1,2]}',
        '{"schema":{"type":"array","items":{"type":"int32"}},"payload":{}}',
        '{"schema":{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}},"payload":{"a":1}}',
        '{"schema":{"type":"map","keys":{"type":"int32"},"values":{"type":"int32"}},"payload":[[1,2]]}',
        '{"schema":{"type":"map","keys":{"type":"int32"},"values":{"type":"int32"}},"payload":{"a":1}}',
        '{"schema":{"type":"map","keys":{"type":"int32"}},"payload":[]}',
        '{"schema":{"type":"nothing"},"payload":1}',
        '{"schema":{},"payload":1}',
        '{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"},{"field":"b","type":"string","optional":true,"default":"d"}]},"payload":{"a":1,"c":2}}',
        '{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"}]},"payload":{}}',
        '{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"}]},"payload":[]}',
        '{"schema":{"type":"struct","fields":[{"type":"int32"}]},"payload":{}}',
        '{"schema":{"type":"struct"},"payload":{}}',
        '{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}},"payload":"BM4="}',
        '{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}},"payload":12.30}',
        '{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Date","version":1},"payload":19000}',
        '{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Time","version":1},"payload":3600123}',
        '{"schema":{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1},"payload":1700000000123}',
        '{"schema":{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1,"optional":true,"default":5},"payload":null}',
        '{"schema":{"type":"int32","version":"x"},"payload":1}',
        '{"schema":5,"payload":1}',
        "[1]",
        '{"schema":{"type":"int32","doc":"d","parameters":{"a":"b"}},"payload":1}',
    ]
    for text in texts:
        for config in ({"schemas.enable": "true"}, {"schemas.enable": "false"}):
            yield {"converter": CONNECT + "json.JsonConverter", "config": config, "bytes": text.encode().hex()}
    for raw in (None, "", "fffe", "c3a9", "00", "7b22613a"):
        for name in ("json.JsonConverter", "storage.StringConverter", *(f"converters.{n}Converter" for n in NUMBERED)):
            yield {"converter": CONNECT + name, "config": {}, "bytes": raw}
    for raw in (
        "01",
        "02",
        "0001",
        "00000001",
        "0000000000000001",
        "7fc00000",
        "3fc00000",
        "3ff8000000000000",
        "ffffffffffffffff",
    ):
        for name in NUMBERED:
            yield {"converter": f"{CONNECT}converters.{name}Converter", "config": {}, "bytes": raw}


def header_converters() -> Iterator[Case]:
    """SimpleHeaderConverter, both ways."""
    name = CONNECT + "storage.SimpleHeaderConverter"
    for value, of_schema in _values():
        yield {"header_converter": name, "config": {}, "data": data(value, of_schema)}
    for text in (
        "",
        " ",
        "null",
        "NULL",
        "true",
        "FALSE",
        "True",
        "0",
        "1",
        "127",
        "128",
        "-129",
        "32768",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "1.0",
        "1.5",
        "0.1",
        "1e5",
        "1E400",
        "-1.5e-10",
        "NaN",
        "Infinity",
        "abc",
        "a b",
        " 12 ",
        '"12"',
        '"a\\"b"',
        "[]",
        "[1,2,3]",
        "[1,300,70000]",
        '["a",1]',
        "[1,2",
        "[[1],[2]]",
        "{}",
        '{"a":1}',
        '{"a":1,"b":"x"}',
        '{"a":1',
        "{1:2}",
        "[1,,2]",
        "{a:b}",
        "2019-08-23",
        "14:34:54.346Z",
        "2019-08-23T14:34:54.346Z",
        "2019-13-45",
        "[true,false]",
        "[null,1]",
        '{"a":null}',
        "12abc",
        "+5",
        "0x10",
        "1_000",
        "true,false",
        "\\n",
        "é",
        '{"a":[1,{"b":2}]}',
        '["2019-08-23"]',
        "007",
        ".5",
        "5.",
        "-",
        "--1",
    ):
        yield {"header_converter": name, "config": {}, "bytes": text.encode().hex()}
    for raw in (None, "fffe", "00"):
        yield {"header_converter": name, "config": {}, "bytes": raw}


_MAKERS = {
    "cast": cast,
    "converter": converters,
    "extract": extract,
    "flatten": flatten,
    "header-converter": header_converters,
    "headers": headers,
    "hoist": hoist,
    "insert": insert,
    "mask": mask,
    "metadata": metadata,
    "predicate": predicates,
    "reader": readers,
    "replace": replace,
    "route": route,
    "timestamp": timestamps,
    "to-key": to_key,
}
