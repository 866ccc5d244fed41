"""Sinks of files that read bad records: the cases that `record_errors` plays on Kafka Connect, and tests on ours."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PACKAGE = "org.apache.kafka.connect.transforms."
PLAIN = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
ENVELOPE = {"value.converter": JSON}
ALL = {
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}
GOOD = b'{"a":1}'
TRACE = "__connect.errors.exception.stacktrace"


@dataclass(frozen=True, slots=True)
class Sent:
    """One record of a topic."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Case:
    """A connector's configuration besides its class, and the records of its topic."""

    name: str
    config: dict[str, str]
    sent: list[Sent]


def step(kind: str, **own: str) -> dict[str, str]:
    """One transform, under the alias `x`."""
    keys = {f"transforms.x.{key.replace('_', '.')}": value for key, value in own.items()}
    return {"transforms": "x", "transforms.x.type": f"{PACKAGE}{kind}", **keys}


def nested(depth: int) -> bytes:
    """So many nested arrays."""
    return b"[" * depth + b"]" * depth


def struct(kind: str, payload: str) -> bytes:
    """A struct of one field in its envelope."""
    schema = f'{{"type":"struct","fields":[{{"type":"{kind}","optional":false,"field":"f"}}],"optional":false}}'
    return f'{{"schema":{schema},"payload":{{"f":{payload}}}}}'.encode()


def shown(key: bytes | None, value: bytes | None, headers: Any) -> dict[str, Any]:
    """A dead letter as the record has it: of traces the first line."""
    first = [(name, raw.split(b"\n")[0] if name == TRACE and raw is not None else raw) for name, raw in headers]
    return {"key": _text(key), "value": _text(value), "headers": [[name, _text(raw)] for name, raw in first]}


def _text(raw: bytes | None) -> str | None:
    """Bytes as a text; for long or undecodable bytes the base64 of their end."""
    if raw is None:
        return None
    try:
        return raw.decode() if len(raw) < 2000 else f"...{base64.b64encode(raw[-30:]).decode()}"
    except UnicodeDecodeError:
        return f"base64 {base64.b64encode(raw).decode()}"


BETWEEN = [Sent(GOOD, b"k1"), Sent(b'{"a":', b"k2", [("own", b"1"), ("none", None)]), Sent(GOOD, b"k3")]
WORDS = [Sent(b"12"), Sent(b"abc", b"k"), Sent(b"13")]

CASES = [
    Case("value", {**PLAIN, **ALL}, BETWEEN),
    Case("value-bare", {**PLAIN, **ALL, "errors.deadletterqueue.context.headers.enable": "false"}, BETWEEN),
    Case("value-none", PLAIN, BETWEEN),
    Case("value-none-dead", {**PLAIN, **ALL, "errors.tolerance": "none"}, BETWEEN),
    Case(
        "key",
        {**ALL, "key.converter": JSON, "key.converter.schemas.enable": "false"},
        [Sent(b"v", b"1"), Sent(b"v", b"{"), Sent(None, None)],
    ),
    Case("key-none", {"key.converter": JSON}, [Sent(b"v", b"{")]),
    Case("key-and-value", {**PLAIN, **ALL, "key.converter": JSON}, [Sent(b"{", b"{")]),
    Case("envelope", {**ENVELOPE, **ALL}, [Sent(GOOD), Sent(None, b"k"), Sent(struct("int32", "1"))]),
    Case("envelope-type", {**ENVELOPE, **ALL}, [Sent(struct("wrong", "1")), Sent(struct("int32", "null"))]),
    Case("header", {**ALL, "header.converter": JSON, "transforms": ""}, [Sent(b"v", None, [("h", b"{")]), Sent(b"w")]),
    Case("cast", {**ALL, **step("Cast$Value", spec="int32")}, WORDS),
    Case("cast-none", step("Cast$Value", spec="int32"), WORDS),
    Case("replace", {**ALL, **step("ReplaceField$Value", exclude="a")}, [Sent(b"no map")]),
    Case("extract", {**ENVELOPE, **ALL, **step("ExtractField$Value", field="g")}, [Sent(struct("int32", "1"))]),
    Case("mask", {**PLAIN, **ALL, **step("MaskField$Value", fields="a", replacement="x")}, [Sent(b'{"a":[1]}')]),
    Case(
        "time",
        {**ALL, **step("TimestampConverter$Value", target_type="unix", format="yyyy-MM-dd")},
        [Sent(b"2020-01-01"), Sent(b"soon")],
    ),
    Case("utf8", {**PLAIN, **ALL}, [Sent(b'{"a":"\xff"}'), Sent(GOOD)]),
    Case("nan", {**PLAIN, **ALL}, [Sent(b'{"a":NaN}'), Sent(GOOD)]),
    Case("nesting", {**PLAIN, **ALL}, [Sent(nested(400)), Sent(nested(10_000)), Sent(GOOD)]),
    Case(
        "number",
        {**ALL, "value.converter": "org.apache.kafka.connect.converters.IntegerConverter"},
        [Sent(b"\x00\x00\x00\x07"), Sent(b"\x01"), Sent(None)],
    ),
]
