"""The notation for cases of data, as record_data.py describes it, and values that many cases share."""

from __future__ import annotations

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


def step(name: str, config: dict[str, str], case: Case) -> Case:
    """A transform's case."""
    return {"transform": T + name, "config": config, "record": case}


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
