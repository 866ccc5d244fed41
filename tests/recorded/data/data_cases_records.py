"""Cases for predicates, and for transforms that change times or a record's parts other than the value: the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from recorded.data.data_notation import (
    BOTH,
    DATED,
    DATED_VALUE,
    FLAT,
    FLAT_MAP,
    FLAT_NULLS,
    FLAT_VALUE,
    NOW,
    Case,
    P,
    a_map,
    data,
    logical,
    of,
    record,
    schema,
    step,
)


def headers() -> Iterator[Case]:
    """DropHeaders, HeaderFrom, InsertHeader."""
    values = [["a", data(of("string", "1"), schema("string"))], ["b", data(of("int32", 2), schema("int32"))]]
    values += [["a", data(None)]]
    for names in ("a", "b", "a,b", "c", "a, b", ""):
        yield step("DropHeaders", {"headers": names}, record(headers=values))
    yield step("DropHeaders", {}, record(headers=values))
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
        yield step("InsertHeader", {"header": "h", "value.literal": text}, record(headers=values))
    yield step("InsertHeader", {"header": "h"}, record())
    yield step("InsertHeader", {"header": "", "value.literal": "x"}, record())
    for operation in ("move", "copy", "MOVE", "steal"):
        for _, value, of_schema in BOTH:
            config = {"fields": "id,name", "headers": "h1,h2", "operation": operation}
            yield step("HeaderFrom$Value", config, record(value, of_schema, headers=values))
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
    for form, submitted in (
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
        yield step("TimestampConverter$Value", config, record(of("string", submitted), schema("string")))
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


def predicates() -> Iterator[Case]:
    """The three predicates."""
    values = [["a", data(of("string", "1"))]]
    for name in ("a", "b", ""):
        yield {"predicate": P + "HasHeaderKey", "config": {"name": name}, "record": record(headers=values)}
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
