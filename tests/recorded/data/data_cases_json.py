"""Cases for JSON of other writers, in any encoding and up to Jackson's limits: the inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recorded.data.data_notation import Case, logical, schema, struct

NAME = "org.apache.kafka.connect.json.JsonConverter"
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
MARK = "\ufeff"
WRITERS = Path(__file__).with_name("json_writers.txt")
"""The record of record_json_writers.py."""
SPARK = Path(__file__).with_name("spark_json.txt")
"""The record of record_spark_json.py."""
TEXTS = (
    *("1", "-0", "0", "-0.0", "-0.00", "0e0", "1e400", "-1e400", "1e-400", "1E5", "1e05", "1e99999999999"),
    *("01", "-01", "007", "1.", "1e", "1e+", ".5", "-", "+1", "0x10", "--1", "1-1", "1_000", "1.5.5", "1e5e5", "1a"),
    *("[0,-0,-0.0]", "[1e400]", "[01]", "[1.]", '{"a":1.}', '{"a":-00}'),
    *("1 2", "1,2", "1\t2", "1/*", '1"', "1[", "1]", "1}", "1 é", "1\xa0", "1\x00", "[1]2", "[1] x", "{} {", '"a"b'),
    *("truee", "true1", "true_", "true]", "true,", 'true"', "true{", "true$", "null/", "nulll", "nullnull", "false@"),
    *("[true1]", "[1,]", "[,1]", "{a:1}", "{'a':1}", '{"a":1,}', "/*c*/1", "# c\n1", "NaN", "[NaN]", "-Infinity"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "9" * 30),
    *("9" * 300, "9" * 1000, "9" * 1001, "-" + "9" * 1001, f"[{'9' * 1001}]", "0." + "1" * 999, "0" * 1001 + "5"),
    *("1e" + "0" * 998 + "1", "1e" + "0" * 1000 + "1", "4.9e-324", "0.1234567890123456789012345"),
    *('""', '"\\u0000"', '"a\x00b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\x"', '"\\u12"', '"a\nb"'),
    *('"\x7f"', '"\u2028"', '"é😀"', '{"\\u0061":1,"a":2}', '{"b":1,"a":{"x":1,"x":2},"b":3}', '{"":1}', '{"é":"😀"}'),
    *('"\\/Date(1700000000123+0100)\\/"', '{"Id":1,"At":"2024-01-02T03:04:05.1234567Z","Name":"\\u003Cb\\u003E"}'),
    *("", " ", "\r\n1", MARK + "1", MARK, MARK + MARK + "1", " " + MARK + "1", "[1", '{"a":', '"abc'),
)
"""The last but one line: dates and escapes as Newtonsoft's and Microsoft's serializers are documented to write them."""
IN_ALL = (
    '{"n":3}',
    '"é😀"',
    "1",
    "1.5",
    " [ 1 , null ] ",
    "",
    " ",
    "truee",
    '{"a":"\\u00e9"}',
    "123456789012345678901",
)
RAW = """
    efbb efbbbf fffe feff 0000feff fffe0000 0000fffe feff000000000031 00 0000 3100 0031 310000 31000000 00000031
    310032 00310000 00003100 20002000 20000000 fffe31 fffe3100 22ff22 22c322 22c32822 22eda08022 22edb08022
    22eda0bdedb88022 22c08022 22c18122 22e0808022 22e0818122 22f888808022 22efbbbf6122 5b315dff 7b7dff 31ff 3120ff
    74727565ff 7b22c080223a317d 220061002200 2200610022 22006100220000 220000006100000022000000
    2200000061000000220000 2200000000001100 2200000000d8000022000000 000000220000dc000000006100000022
    22006100ff002200 c3a9 ff
"""
PAYLOADS = (
    *("0", "-0", "-0.0", "1", "-129", "256", "65536", "2147483648", "-2147483649", "4294967296", "1.5", "-1.5", "1e2"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616"),
    *("-9223372036854775808", "-9223372036854775809", "-18446744073709551617", "123456789012345678901234567890"),
    *("1E400", "-1e400", "1e18", "1e19", "9.3e18", "1e63", "1e64", "9007199254740993.0", "1e-400", "0.1"),
    *("true", '"true"', '"1"', '""', '"AQI="', '"AQI"', '"A QI="', '"AQI= AQI="', '" AQIDBA=="', '"AQ-_"', '"AQ\\n=="'),
    *("null", "[]", '[1,null,"x",1.5,18446744073709551616,-0.0]', "{}", '{"a":1,"b":-0.0}', '{"a":1.9,"b":"x"}', "NaN"),
    *('{"a":18446744073709551616,"b":18446744073709551616}', '{"a":1,"a":2,"b":null,"c":3}', "01", "1."),
    *("-62135769600000", "-62135596800001", "253402300800000", "-719528", "2932897", "86399999", "86400000", "-1"),
    *("12.300", "1E-3", "9" * 1001, "0." + "1" * 1000),
)
SCHEMAS: tuple[dict[str, Any], ...] = (
    *(schema(kind, optional=True) for kind in ("int8", "int32", "int64", "double", "boolean", "string")),
    *(schema("bytes", optional=True), logical("Timestamp"), logical("Date"), logical("Time"), logical("Decimal")),
    schema("array", items=schema("int64", optional=True)),
    schema("map", keys=schema("string"), values=schema("double", optional=True)),
    struct(("a", schema("int64", optional=True)), ("b", schema("double", optional=True))),
)


def of_others() -> Iterator[Case]:
    """Texts without a schema, some in every encoding; and texts under schemas."""
    for text in TEXTS:
        yield _bare(text.encode("utf-8", "surrogatepass"))
    for text in WRITERS.read_text(encoding="utf-8").split("\n")[:-1]:
        yield _bare(text.encode())
    for text in IN_ALL:
        for encoding in ENCODINGS:
            yield _bare(text.encode(encoding))
            yield _bare((MARK + text).encode(encoding))
    for raw in RAW.split():
        yield _bare(bytes.fromhex(raw))
    yield _bare(b'{"a":' * 1025 + b"1" + b"}" * 1025)
    for of_schema in SCHEMAS:
        for payload in PAYLOADS:
            text = f'{{"schema":{json.dumps(of_schema)},"payload":{payload}}}'
            yield {"converter": NAME, "config": {"schemas.enable": "true"}, "bytes": text.encode().hex()}
    text = f'{{"schema":{json.dumps(SCHEMAS[-1])},"payload":{{"a":1,"b":2.5}}}}'
    for encoding in ENCODINGS:
        raw = (MARK + text).encode(encoding)
        yield {"converter": NAME, "config": {"schemas.enable": "true"}, "bytes": raw.hex()}
    for levels in (1001, 1024):
        yield _bare(b"[" * levels + b"]" * levels)
        yield _bare(b'{"a":' * levels + b"1" + b"}" * levels)
    for text in SPARK.read_text(encoding="utf-8").split("\n")[:-1]:
        yield _bare(text.encode())


def _bare(raw: bytes) -> Case:
    return {"converter": NAME, "config": {"schemas.enable": "false"}, "bytes": raw.hex()}
