"""Cases for bytes that do not fit their character set or type, and for texts that are hard to write: the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recorded.data.data_notation import DATA, Case, data, of, schema

CONNECT = "org.apache.kafka.connect."
STRING, JSON = CONNECT + "storage.StringConverter", CONNECT + "json.JsonConverter"
HEADERS = CONNECT + "storage.SimpleHeaderConverter"
CHARACTER_SETS = (
    *("UTF-8", "utf8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE", "ISO-8859-1", "latin1"),
    *("US-ASCII", "windows-1252", "KOI8-R", "ISO-8859-15"),
)
MALFORMED = """
    616263 c3a9 fffe feff0061 fffe6100 fffe000061000000 0000feff00000061 8081e9 eda080 eda0bdedb880 f09f98 f09f9880
    c080 e28278 610062 efbbbf78 f888808080 f4908080 e08080 41ff42 c3 e282ac e282 f09f9841 edb08041 c1bf f7bfbfbf
"""
LONE = ("abc", "é€😀", "あ", "\x00", "\ud800", "a\udc00b", "\udc00\ud800", "")
OF_TYPES = """
    01 02 ff 0001 000001 00000001 0000000001 ffffffffffffffff 7ff8000000000000 7ff0000000000000 fff0000000000000
    8000000000000000 7f800000 ff800000 7fc00001 80000000 000000000000000000 7ff0000000000001 0000000000000001
"""
DECIMALS = (
    *(("0", 0), ("-0.00", 2), ("1E+3", -3), ("1E-3", 3), ("1E-6", 6), ("1E-7", 7), ("12E-9", 9), ("1E+400", -400)),
    *(("123456789012345678901234567890.123", 3), ("1E-400", 400), ("-1234E+2", -2), ("1" + "0" * 1100, 0)),
)


def hard_texts() -> Iterator[Case]:
    """Both ways."""
    for name in CHARACTER_SETS:
        for raw in MALFORMED.split():
            yield {"converter": STRING, "config": {"converter.encoding": name}, "bytes": raw}
        for text in LONE:
            data_given = data(of("string", text), schema("string"))
            yield {"converter": STRING, "config": {"converter.encoding": name}, "data": data_given}
    for raw in MALFORMED.split():
        yield {"header_converter": HEADERS, "config": {}, "bytes": raw}
    for raw in OF_TYPES.split():
        for kind in ("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray"):
            yield {"converter": f"{CONNECT}converters.{kind}Converter", "config": {}, "bytes": raw}
    for text in (*LONE, "\x1f\x7f\u2028/<>&'"):
        for data_given in (data(of("string", text)), data({"map": [[of("string", text), of("string", text)]]})):
            yield from _written(data_given)
    for text, scale in DECIMALS:
        decimal = schema("bytes", name=DATA + "Decimal", version=1, parameters={"scale": str(scale)})
        yield from _written(data(of("decimal", text), decimal))


def _written(fields: dict[str, Any]) -> Iterator[Case]:
    for config in ({"schemas.enable": "true"}, {"schemas.enable": "false", "decimal.format": "NUMERIC"}):
        yield {"converter": JSON, "config": config, "data": fields}
    yield {"converter": STRING, "config": {}, "data": fields}
    yield {"header_converter": HEADERS, "config": {}, "data": fields}
