"""Cases for times in which Java's calendar and Python's differ: the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from recorded.data.data_notation import Case, T, data, logical, of, record, schema, step

CONNECT = "org.apache.kafka.connect."
EDGES = (
    0,
    -1,
    951_782_400_000,
    -12_219_292_800_000,  # 1582-10-15, the first day of the Gregorian calendar
    -12_219_292_800_001,
    -12_219_379_200_000,
    -12_219_379_200_001,
    -14_831_769_600_000,
    -62_135_596_800_000,  # 0001-01-01 in ISO's calendar, and the first that Python has
    -62_135_596_800_001,
    -62_135_769_600_000,  # 0001-01-01 in Java's
    -62_135_769_600_001,
    -62_167_219_200_000,
    -67_409_011_064_775,
    253_402_300_799_999,
    253_402_300_800_000,
    9_007_199_254_740_992,
    -9_223_372_036_854_775_808,
    9_223_372_036_854_775_807,
)
PATTERNS = (
    "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "yyyyMMdd",
    "yy-M-d",
    "G yyyy MMM d EEE",
    "yyyy DDD",
    "YYYY-'W'ww-u",
    "F W",
    "hh:mm a",
    "d MMMM yyyy HH:mm:ss z",
)
_DAYS = """
    0001-01-01 0000-01-01 0000-00-00 -0001-01-01 1500-02-29 1500-02-28 1700-02-29 1900-02-29 0004-02-29 1000-02-29
    1582-10-04 1582-10-05 1582-10-10 1582-10-14 1582-10-15 1582-10-16 1582-9-40 1582-11--5 1583--2-1 1581-25-1
    9999-12-31 10000-01-01 99999-12-31 123456789-01-01 292278994-08-17 292278995-01-01 99999999999-1-1 -5-1-1 1-1-1
    2020-02-30 2020-00-00 2020-13-32 2020-01 2020-01-01x x2020-01-01 2020-01-99999 2020-1-999999999 2020-1-2147483648
    +2020-01-01 1004-11-27 312-6--22 1377-14-51 641--1-13 27-3-60 -99-12-1
"""
_TEXTS = (
    ("yyyyMMdd", "15000229"),
    ("yyyyMMdd", "15821010"),
    ("yyyyMMdd", "1582101"),
    ("yyyyMMdd", "00010101"),
    ("yy-M-d", "1582-10-10"),
    ("G yyyy", "BC 44"),
    ("G yyyy", "AD 44"),
    ("yyyy DDD", "1582 300"),
    ("yyyy DDD", "1582 278"),
    ("yyyy DDD", "1582 -5"),
    ("yyyy DDD", "2020 400"),
    ("YYYY-'W'ww-u", "1582-W41-5"),
    ("YYYY-'W'ww-u", "2020-W53-7"),
    ("YYYY-'W'ww-u", "1500-W01-1"),
    ("yyyy-MM W F u", "2020-01 2 3 4"),
    ("yyyy-MM W u", "2020-01 2 4"),
    ("yyyy-MM F u", "2020-01 2 4"),
    ("yyyy-MM F u", "1582-10 2 4"),
    ("kk:mm", "24:30"),
    ("HH:mm", "99:99"),
    ("HH:mm:ss.SSS", "1:2:3.4567"),
    ("EEE", "Mon"),
    ("EEE d MMM yyyy", "Tue 3 Mar 1520"),
    ("MMM yyyy", "Feb 1500"),
    ("yyyy-MM-dd HH:mm:ss Z", "1582-10-10 10:00:00 +0230"),
    ("yyyy-MM-dd HH:mm z", "1500-01-01 10:00 PST"),
    ("yyyy-MM-dd HH:mm z", "2020-07-01 10:00 America/New_York"),
    ("yyyy-MM-dd HH:mm z", "2020-07-01 10:00 CEST"),
    *(("HH z", f"10 {zone}") for zone in ("UTC+3", "Z", "UT", "utc", "GMT-1", "GMT+3", "GMT+1:30", "GMT+0130")),
    *(("HH z", f"10 {zone}") for zone in ("+01:30", "+0130", "+1", "GMT+03:30")),
    ("yyyy-MM-dd'T'HHX", "2020-07-01T10+03"),
    ("y", "292278994"),
    ("y", "292278995"),
    ("y", "2147483648"),
    ("S", "99999999999"),
    ("SSS", "9223372036854775807"),
    ("D", "-1"),
    ("w u yyyy", "10 3 2020"),
)
_TIME, _DAY, _MOMENT = logical("Time"), logical("Date"), logical("Timestamp")


def far_times() -> Iterator[Case]:
    """Times before 1582, before the year 1 and after 9999, in all forms."""
    for pattern in PATTERNS:
        for ms in EDGES:
            yield step("TimestampConverter$Value", {"target.type": "string", "format": pattern}, _record(ms, _MOMENT))
    for day in _DAYS.split():
        config = {"target.type": "unix", "format": "yyyy-MM-dd"}
        yield step("TimestampConverter$Value", config, record(of("string", day), schema("string")))
    for pattern, text in _TEXTS:
        config = {"target.type": "unix", "format": pattern}
        yield step("TimestampConverter$Value", config, record(of("string", text), schema("string")))
    for ms in EDGES:
        yield from _of_edge(ms)


def _of_edge(ms: int) -> Iterator[Case]:
    for target in ("unix", "Date", "Time", "Timestamp"):
        yield step("TimestampConverter$Value", {"target.type": target}, _record(ms, _MOMENT))
    for precision in ("seconds", "microseconds", "nanoseconds"):
        into = {"target.type": "Timestamp", "unix.precision": precision}
        yield step("TimestampConverter$Value", into, record(of("int64", ms), schema("int64")))
        out = {"target.type": "unix", "unix.precision": precision}
        yield step("TimestampConverter$Value", out, _record(ms, _MOMENT))
    for kind in (_TIME, _DAY, _MOMENT):
        data_given = data(of("date", ms), kind)
        yield {"converter": CONNECT + "json.JsonConverter", "config": {"schemas.enable": "false"}, "data": data_given}
        yield {"converter": CONNECT + "storage.StringConverter", "config": {}, "data": data_given}
        yield {"header_converter": CONNECT + "storage.SimpleHeaderConverter", "config": {}, "data": data_given}
        for target in ("string", "int64"):
            yield {"transform": T + "Cast$Value", "config": {"spec": target}, "record": _record(ms, kind)}
    yield step("TimestampRouter", {}, record(None, None, timestamp=ms % (1 << 63)))


def _record(ms: int, kind: dict[str, object]) -> Case:
    return record(of("date", ms), kind)
