"""The bytes of Kafka's primitive types."""

import pytest

from keelman.kafka.wire.fields import Fields, compact, varint


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31 - 1, "ffffffff07")]
)
def test_unsigned_variable_length_numbers(value: int, data: str) -> None:
    assert varint(value) == bytes.fromhex(data)
    assert Fields(bytes.fromhex(data)).varint() == value


def test_compact_strings() -> None:
    assert compact(None) == b"\0"
    assert compact("") == b"\1"
    assert compact("ä") == b"\3" + "ä".encode()
    assert Fields(compact("x" * 200)).text() == "x" * 200
    assert Fields(compact(None)).text() == ""
