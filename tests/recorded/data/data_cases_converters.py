"""Cases for converters: the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recorded.data.data_notation import (
    DATED,
    DATED_VALUE,
    FLAT,
    FLAT_MAP,
    FLAT_NULLS,
    FLAT_VALUE,
    NESTED,
    NESTED_MAP,
    NESTED_NULL,
    NESTED_VALUE,
    NOW,
    SAMPLES,
    TYPE_OF,
    Case,
    data,
    logical,
    of,
    schema,
)


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
            single_schema = schema(TYPE_OF.get(kind, kind))
            yield {
                "converter": f"{CONNECT}converters.{name}Converter",
                "config": {},
                "data": data(of(kind, samples[0]), single_schema),
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


STRUCT_CONTENT = (
    '{"type":"struct","fields":[{"field":"a","type":"int32"},'
    '{"field":"b","type":"string","optional":true,"default":"d"}]}'
)
DECIMAL_CONTENT = (
    '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}}'
)
TIMESTAMP_CONTENT = '{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1}'
SEVEN_CONTENT = '{"type":"int32","optional":true,"default":7}'
CONTENTS = (
    STRUCT_CONTENT,
    DECIMAL_CONTENT,
    TIMESTAMP_CONTENT,
    '{"type":"int32","name":"org.apache.kafka.connect.data.Date","version":1}',
    '{"type":"int32","name":"org.apache.kafka.connect.data.Time","version":1}',
    '{"type":"int32"}',
    SEVEN_CONTENT,
    '{"type":"bytes"}',
    '{"type":"boolean"}',
    '{"type":"string","optional":true}',
    '{"type":"array","items":{"type":"int32"}}',
    '{"type":"map","keys":{"type":"string"},"values":{"type":"string"}}',
    '{"type":"int32"} more',
    "",
    " ",
    "null",
)
ILLEGAL_CONTENTS = (
    "{}",
    "5",
    "[]",
    '"int32"',
    "{",
    "int32",
    '{"type":"nothing"}',
    '{"type":"array"}',
    '{"schema":{"type":"int32"},"payload":1}',
)


def with_schema_content() -> Iterator[Case]:
    """JSON with a schema from the configuration, both ways."""
    texts = (
        "",
        "null",
        "5",
        "true",
        "12345678901234567890",
        "1.10",
        '"x"',
        '"BM4="',
        "[1,2]",
        '{"a":1}',
        '{"a":"1","c":2}',
        '{"b":"x"}',
        '{"schema":{"type":"string"},"payload":"x"}',
        '{"schema":{"type":"int32"},"payload":5}',
        "{",
    )
    name = CONNECT + "json.JsonConverter"
    for content in CONTENTS:
        config = {"schema.content": content}
        yield {"converter": name, "config": config, "bytes": None}
        for text in texts:
            yield {"converter": name, "config": config, "bytes": text.encode().hex()}
        if content in {STRUCT_CONTENT, TIMESTAMP_CONTENT}:
            for text in texts:
                off = {**config, "schemas.enable": "false"}
                yield {"converter": name, "config": off, "bytes": text.encode().hex()}
        if content in {STRUCT_CONTENT, '{"type":"int32"}', ""}:
            for flag in ("true", "false"):
                both = {**config, "schemas.enable": flag}
                yield {"converter": name, "config": both, "data": data(of("int32", 5), schema("int32"))}
                yield {"converter": name, "config": both, "data": data(of("string", "x"), schema("string"))}
                yield {"converter": name, "config": both, "data": data(of("string", "x"))}
                yield {"converter": name, "config": both, "data": data(FLAT_NULLS, FLAT)}
                yield {"converter": name, "config": both, "data": data(None)}
    for text in ("null", '{"a":1}', "5"):
        config = {"schema.content": SEVEN_CONTENT, "replace.null.with.default": "false"}
        yield {"converter": name, "config": config, "bytes": text.encode().hex()}
    for content in ILLEGAL_CONTENTS:
        for flag in ("true", "false"):
            yield {
                "converter": name,
                "config": {"schema.content": content, "schemas.enable": flag},
                "bytes": "35",
            }


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
