"""Records messages as protobuf for Java, Go and Python write them, in Confluent's framing: protobuf_writers.txt.

`python -m recorded.data.record_protobuf_writers`; it needs a JDK and Go, and fetches jars and a module. A line has the
schema for reading the message, which may differ from the schema it was written with. The expected values are in
test_protobuf_recorded.py, since Confluent's converter, which could compute them, is not on Maven Central.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find

HERE = Path(__file__).resolve().parent
SCALARS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32"),
    *("sfixed64", "bool", "string", "bytes"),
)
THREE, TWO = 'syntax = "proto3"; package a; ', 'syntax = "proto2"; package a; '
LEAST = {
    "f_double": -1.5,
    "f_float": 0.25,
    "f_int32": -(2**31),
    "f_int64": str(-(2**63)),
    "f_uint32": 2**32 - 1,
    "f_uint64": str(2**63 - 1),
    "f_sint32": -(2**31),
    "f_sint64": str(-(2**63)),
    "f_fixed32": 2**32 - 1,
    "f_fixed64": "1",
    "f_sfixed32": -1,
    "f_sfixed64": "-1",
    "f_bool": True,
    "f_string": "é€😀",
    "f_bytes": "AP8=",
}


def fields(label: str = "", first: int = 1) -> str:
    """A field of each type."""
    return " ".join(f"{label} {kind} f_{kind} = {first + n};" for n, kind in enumerate(SCALARS))


@dataclass(frozen=True)
class Written:
    """A message that each writer writes with this schema; `read` is the schema for reading, if it differs."""

    proto: str
    value: dict[str, Any]
    message: str = "a.M"
    read: str = ""
    indexes: str = "00"


NUMBERS = "repeated int32 n = 1{}; repeated sint64 s = 2{}; repeated double d = 3{}; repeated bool b = 4{};"
NUMBER_LISTS = {"n": [0, -1, 300], "s": ["-5", "0", "9"], "d": [0.5, 1e300], "b": [True, False]}
UNPACKED, PACKED = NUMBERS.replace("{}", " [packed = false]"), NUMBERS.replace("{}", " [packed = true]")
CASES = {
    "scalars": Written(f"{THREE} message M {{ {fields()} }}", LEAST),
    "nothing set": Written(f"{THREE} message M {{ {fields()} }}", {}),
    "optional zeros": Written(
        f"{THREE} message M {{ optional int32 z = 1; optional string e = 2; optional int32 n = 3; int32 p = 4; }}",
        {"z": 0, "e": ""},
    ),
    "packed": Written(f"{THREE} message M {{ {PACKED} }}", NUMBER_LISTS),
    "packed, read as unpacked": Written(
        f"{THREE} message M {{ {PACKED} }}", NUMBER_LISTS, read=f"{TWO} message M {{ {UNPACKED} }}"
    ),
    "unpacked, read as packed": Written(
        f"{TWO} message M {{ {UNPACKED} }}", NUMBER_LISTS, read=f"{THREE} message M {{ {PACKED} }}"
    ),
    "maps": Written(
        f"{THREE} message M {{ map<string, int64> m = 1; map<int32, N> k = 2; message N {{ string s = 1; }} }}",
        {"m": {"": "-1", "é": "2"}, "k": {"-7": {"s": "x"}, "0": {}}},
    ),
    "enums": Written(
        f"{THREE} enum E {{ ZERO = 0; ONE = 1; LESS = -1; }} message M {{ E e = 1; repeated E more = 2; }}",
        {"e": "LESS", "more": ["ONE", "ZERO", "LESS"]},
    ),
    "unions": Written(
        f"{THREE} message M {{ oneof o {{ int32 i = 1; string s = 2; N n = 3; }} message N {{ int32 x = 1; }} }}",
        {"n": {"x": 0}},
    ),
    "itself": Written(
        f"{THREE} message M {{ N n = 1; repeated N more = 2; message N {{ int32 x = 1; bytes b = 2; }} }}",
        {"n": {"x": 1}, "more": [{}, {"x": -1, "b": "AQ=="}]},
    ),
    "the second message": Written(
        f"{THREE} message L {{ int32 x = 1; }} message M {{ string s = 1; }}", {"s": "second"}, indexes="0202"
    ),
    "an inner message": Written(
        f"{THREE} message L {{ int32 x = 1; message M {{ string s = 1; }} }}", {"s": "in"}, "a.L.M", indexes="040000"
    ),
    "unknown fields": Written(
        f"{THREE} message M {{ int32 kept = 50; {fields(first=100)} repeated string many = 200; N n = 201; "
        "message N { int32 x = 1; } }",
        {"kept": 7, **LEAST, "many": ["a", "b"], "n": {"x": 5}},
        read=f"{THREE} message M {{ int32 kept = 50; }}",
    ),
    "proto2": Written(
        f'{TWO} message M {{ required int32 r = 1; optional string s = 2 [default = "d"]; optional int32 z = 3; '
        "repeated int32 n = 4; }",
        {"r": -1, "z": 0, "n": [1, 2]},
    ),
    "groups": Written(
        f"{TWO} message M {{ optional group Item = 1 {{ required int32 x = 1; optional string s = 2; }} "
        "repeated group Line = 3 { optional int32 y = 1; } optional int32 after = 4; }",
        {"item": {"x": 1, "s": "t"}, "line": [{"y": 1}, {}, {"y": -3}], "after": 9},
    ),
    "groups, unknown": Written(
        f"{TWO} message M {{ optional group Item = 1 {{ required int32 x = 1; optional group Deep = 2 "
        "{ optional string s = 1; } } optional int32 after = 4; }",
        {"item": {"x": 1, "deep": {"s": "t"}}, "after": 9},
        read=f"{THREE} message M {{ int32 after = 4; }}",
    ),
    "timestamps": Written(
        f'{THREE} import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; message M '
        "{ google.protobuf.Timestamp at = 1; google.protobuf.Int64Value w = 2; google.protobuf.StringValue no = 3; }",
        {"at": "1969-12-31T23:59:59.001Z", "w": "0"},
    ),
}


def compiled(proto: str) -> bytes:
    """Compiles the file and its imports to a descriptor set."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "m.proto").write_text(proto)
        path = Path(folder, "set")
        words = ["-I", folder, "--include_imports", f"--descriptor_set_out={path}", "m.proto"]
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words], check=True)
        return path.read_bytes()


def by_python(files: bytes, case: Written) -> bytes:
    """Writes the message with protobuf for Python."""
    pool = DescriptorPool()
    for item in descriptor_pb2.FileDescriptorSet.FromString(files).file:
        pool.Add(item)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(case.message))()
    json_format.ParseDict(case.value, message)
    return message.SerializeToString(deterministic=True)


def by_program(command: list[str], lines: str, folder: Path) -> list[bytes]:
    """Writes all messages with a program."""
    done = subprocess.run(command, cwd=folder, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [bytes.fromhex(line) for line in done.stdout.split("\n")[:-1]]


async def main() -> None:
    """Writes the record."""
    files = {name: compiled(case.proto) for name, case in CASES.items()}
    lines = "".join(
        json.dumps({"files": base64.b64encode(files[name]).decode(), "message": case.message, "value": case.value})
        + "\n"
        for name, case in CASES.items()
    )
    jars = await maven.jars(maven.Lock.read(HERE / "protobuf.lock"))
    java = [str(find().program), "-cp", ":".join(map(str, jars)), str(HERE / "ProtobufRecords.java")]
    written = {
        "Java": by_program(java, lines, HERE),
        "Go": by_program(["go", "run", "."], lines, HERE / "go_protobuf"),
        "Python": [by_python(files[name], case) for name, case in CASES.items()],
    }
    told = []
    for number, (name, case) in enumerate(CASES.items()):
        for who, value in written.items():
            raw = f"{case.indexes}{value[number].hex()}"
            told.append(json.dumps({"name": f"{name}, by {who}", "proto": case.read or case.proto, "bytes": raw}))
    (HERE / "protobuf_writers.txt").write_text("\n".join(told) + "\n", encoding="utf-8")
    print(f"{len(told)} messages")


if __name__ == "__main__":
    asyncio.run(main())
