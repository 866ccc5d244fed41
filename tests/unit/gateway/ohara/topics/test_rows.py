"""Rows as Ohara's connectors write them, byte by byte."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.gateway.ohara.topics.rows import NoRow, row_json

ORDER = {"bytes": 0, "boolean": 1, "byte": 2, "short": 3, "int": 4, "long": 5, "float": 6, "double": 7, "string": 8}


def cell(name: str, kind: int, value: bytes) -> bytes:
    """A cell as Ohara's serializer writes it."""
    text = name.encode()
    return b"\0" + struct.pack(">h", len(text)) + text + struct.pack(">hh", kind, len(value)) + value


def row(*cells: bytes, tags: tuple[str, ...] = ()) -> bytes:
    """A row as Ohara's serializer writes it."""
    body = b"".join(struct.pack(">i", len(cell)) + cell for cell in cells)
    tagged = b"".join(struct.pack(">h", len(tag)) + tag.encode() for tag in tags)
    return b"\0" + struct.pack(">i", len(cells)) + body + struct.pack(">h", len(tags)) + tagged


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("bytes", b"\1\2", "binary data"),
        ("boolean", b"\xff", True),
        ("boolean", b"\0", False),
        ("byte", b"\xfe", -2),
        ("short", struct.pack(">h", -3), -3),
        ("int", struct.pack(">i", 1 << 20), 1 << 20),
        ("long", struct.pack(">q", 1 << 40), 1 << 40),
        ("float", struct.pack(">f", 1.5), 1.5),
        ("double", struct.pack(">d", 2.25), 2.25),
        ("double", struct.pack(">d", float("nan")), "NaN"),
        ("string", "ä".encode(), "ä"),
    ],
)
def test_cells_are_shown_by_their_types(kind: str, value: bytes, shown: Any) -> None:
    assert row_json(row(cell("a", ORDER[kind], value))) == {"a": shown, "tags": []}


def test_rows_and_cells_stand_in_cells() -> None:
    inner = row(cell("x", 4, struct.pack(">i", 1)), tags=("t",))
    data = row(cell("r", 10, inner), cell("c", 11, cell("y", 8, b"z")), tags=("one", "two"))
    assert row_json(data) == {"r": {"x": 1, "tags": ["t"]}, "c": {"y": "z"}, "tags": ["one", "two"]}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no row"),
        (b"hello", "no row"),
        (b"\1" + bytes(6), "version 1"),
        (row(cell("o", 9, b"\xac\xed")), "serialized Java object"),
        (row(cell("u", 99, b"")), "type 99"),
        (row(cell("a", 4, b"\0")), "no row"),
    ],
)
def test_what_is_no_row_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(NoRow, match=reason):
        row_json(data)


def test_a_row_within_rows_without_end_is_refused() -> None:
    data = row(cell("a", 8, b""))
    for _ in range(60):
        data = row(cell("r", 10, data))
    with pytest.raises(NoRow, match="deeper"):
        row_json(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_row_or_refused(data: bytes) -> None:
    try:
        row_json(b"\0" + data)
    except NoRow:
        return
