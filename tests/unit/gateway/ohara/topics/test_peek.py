"""Records in answers."""

import struct
from typing import Any

import pytest

from keelman.api.connect.v1.topic_pb2 import PeekedHeader, PeekedRecord
from keelman.gateway.ohara.topics.peek import message

ROW = b"\0" + struct.pack(">i", 1) + struct.pack(">i", 9) + b"\0\0\1a\0\x08\0\1b" + b"\0\0"


def record(key: bytes | None, value: bytes | None, **headers: bytes) -> PeekedRecord:
    """A record in partition 1 at offset 7."""
    sent = [PeekedHeader(key=name, value=header) for name, header in headers.items()]
    return PeekedRecord(partition=1, offset=7, key=key, value=value, headers=sent)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (ROW, b"", {"a": "b", "tags": []}),
        (None, b'{"schema":{"type":"string"},"payload":{"x":1,"y":null,"z":""}}', {"x": 1}),
        (None, b'{"schema":null,"payload":"line"}', "line"),
        (None, b'{"x":[1,"",null]}', {"x": [1]}),
        (b"k", b"plain text", "plain text"),
        (None, b"12", 12),
    ],
)
def test_rows_json_and_texts_are_shown(key: bytes | None, value: bytes, shown: Any) -> None:
    assert message(record(key, value)) == {"partition": 1, "offset": 7, "value": shown}


def test_records_of_oharas_sources_tell_where_they_are_from() -> None:
    shown = message(record(ROW, None, SOURCE_CLASS=b"a.B", SOURCE_KEY=b'{"group":"g","name":"n"}'))
    assert (shown["sourceClass"], shown["sourceKey"]) == ("a.B", {"group": "g", "name": "n"})
    assert "cannot be read" in message(record(ROW, None, SOURCE_KEY=b"{"))["error"]


def test_records_with_a_time_tell_it() -> None:
    assert message(PeekedRecord(partition=0, offset=1, timestamp_ms=5, value=b"1"))["timestamp"] == 5


def test_what_cannot_be_shown_says_why() -> None:
    assert message(record(None, b"\xff\xfe")) == {"partition": 1, "offset": 7, "error": "the value is binary, 2 bytes"}
    assert message(record(b"k", None)) == {"partition": 1, "offset": 7}
    assert "no row" in message(record(b"\0\1", None))["error"]
