"""Cases for transforms that change values: the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from recorded.data.data_notation import (
    BOTH,
    DATED,
    DATED_VALUE,
    FLAT,
    FLAT_MAP,
    FLAT_VALUE,
    NESTED,
    NESTED_MAP,
    NESTED_NULL,
    NESTED_VALUE,
    NOW,
    SAMPLES,
    TYPE_OF,
    Case,
    a_map,
    logical,
    of,
    pairs,
    record,
    schema,
    step,
    struct,
)


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


def to_key() -> Iterator[Case]:
    """ValueToKey."""
    for _, value, of_schema in BOTH:
        for fields in ("id", "name,id", "none", "price", ""):
            yield step("ValueToKey", {"fields": fields}, record(value, of_schema))
        yield step("ValueToKey", {"fields": "price", "replace.null.with.default": "false"}, record(value, of_schema))
    yield step("ValueToKey", {"fields": "id"}, record())
    yield step("ValueToKey", {"fields": "id"}, record(of("string", "x"), schema("string")))
    yield step("ValueToKey", {}, record(FLAT_MAP))
