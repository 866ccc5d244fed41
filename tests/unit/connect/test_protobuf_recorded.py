"""ProtobufConverter reads what protobuf for Java, Go and Python have written (tests/recorded)."""

from __future__ import annotations

import datetime
import json
from typing import Any

from keelman.connect.protobuf.converter import ProtobufConverter
from keelman.connect.registry.interface import SchemaKind, SchemaText, header
from support.connectors.memory_registry import MemoryRegistry, plain
from support.places import RECORDED_FOLDER

LINES = (RECORDED_FOLDER / "data" / "protobuf_writers.txt").read_text(encoding="utf-8").split("\n")[:-1]
LEAST = {
    "f_double": -1.5,
    "f_float": 0.25,
    "f_int32": -(2**31),
    "f_int64": -(2**63),
    "f_uint32": 2**32 - 1,
    "f_uint64": 2**63 - 1,
    "f_sint32": -(2**31),
    "f_sint64": -(2**63),
    "f_fixed32": 2**32 - 1,
    "f_fixed64": 1,
    "f_sfixed32": -1,
    "f_sfixed64": -1,
    "f_bool": True,
    "f_string": "é€😀",
    "f_bytes": b"\0\xff",
}
NUMBERS = {"n": [0, -1, 300], "s": [-5, 0, 9], "d": [0.5, 1e300], "b": [True, False]}
VALUES: dict[str, Any] = {
    "scalars": LEAST,
    "nothing set": {name: type(value)() for name, value in LEAST.items()},
    "optional zeros": {"z": 0, "e": "", "p": 0},
    "packed": NUMBERS,
    "packed, read as unpacked": NUMBERS,
    "unpacked, read as packed": NUMBERS,
    "maps": {"m": {"": -1, "é": 2}, "k": {-7: {"s": "x"}, 0: {"s": ""}}},
    "enums": {"e": "LESS", "more": ["ONE", "ZERO", "LESS"]},
    "unions": {"o_0": {"n": {"x": 0}}},
    "itself": {"n": {"x": 1, "b": b""}, "more": [{"x": 0, "b": b""}, {"x": -1, "b": b"\x01"}]},
    "the second message": {"s": "second"},
    "an inner message": {"s": "in"},
    "unknown fields": {"kept": 7},
    "proto2": {"r": -1, "z": 0, "n": [1, 2]},
    "groups": {"item": {"x": 1, "s": "t"}, "line": [{"y": 1}, {}, {"y": -3}], "after": 9},
    "groups, unknown": {"after": 9},
    "timestamps": {
        "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 1000, tzinfo=datetime.UTC),
        "w": {"value": 0},
    },
}
WRITERS = {"Java", "Go", "Python"}


def test_messages_of_all_writers_are_read() -> None:
    read, different = set(), []
    for case in map(json.loads, LINES):
        name, _, writer = case["name"].rpartition(", by ")
        registry = MemoryRegistry()
        number = registry.register("t-value", SchemaText(SchemaKind.PROTOBUF, case["proto"]))
        payload = header(number) + bytes.fromhex(case["bytes"])
        (value,) = registry.converter(ProtobufConverter).to_connect([payload]).values
        read.add((name, writer))
        if plain(value) != VALUES[name]:
            different.append(f"{case['name']}\n  {VALUES[name]}\n  {plain(value)}")
    assert not different, "\n".join(different)
    assert read == {(name, writer) for name in VALUES for writer in WRITERS}
