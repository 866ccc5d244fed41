"""Java's serialised maps of offsets: files of a real standalone worker, byte for byte, and invalid files."""

import base64
import json
import struct

import pytest

from keelman.connect.errors import DataError
from keelman.connect.java.maps import BYTE_ARRAY, HASH_MAP, MAGIC, dump_map, load_map
from support.places import RECORDED_FOLDER

RECORDED = RECORDED_FOLDER / "data" / "java_map.json"
JAVA = {name: base64.b64decode(text) for name, text in json.loads(RECORDED.read_text()).items()}


def test_what_java_wrote_is_read() -> None:
    ((key, value),) = load_map(JAVA["one"]).items()
    assert key.startswith(b'["src",{"filename":"')
    assert value == b'{"position":13}'
    many = load_map(JAVA["many"])
    assert many['["src",{"filename":"/é/39"}]'.encode()] == b'{"position":39}'
    assert many['["src",{"filename":"/é/0"}]'.encode()] is None, "a deleted offset stays as a null"
    assert len(many) == 41


@pytest.mark.parametrize("name", sorted(JAVA))
def test_what_java_wrote_is_written_alike(name: str) -> None:
    assert dump_map(load_map(JAVA[name])) == JAVA[name]


@pytest.mark.parametrize("count", [0, 1, 12, 13, 24, 25, 1000])
def test_what_was_written_is_read(count: int) -> None:
    entries = {f"k{n}".encode(): None if n % 7 == 3 else bytes(n % 300) for n in range(count)}
    assert load_map(dump_map(entries)) == entries


def test_an_array_that_java_wrote_once_and_named_twice_is_read() -> None:
    array = b"\x75" + BYTE_ARRAY + struct.pack(">i", 2) + b"kv"
    head = MAGIC + b"\x73" + HASH_MAP + struct.pack(">fi", 0.75, 12) + b"\x77\x08" + struct.pack(">ii", 16, 1)
    assert load_map(head + array + b"\x71\x00\x7e\x00\x03" + b"\x78") == {b"kv": b"kv"}
    with pytest.raises(DataError, match="names an array that is not there"):
        load_map(head + array + b"\x71\x00\x7e\x00\x09" + b"\x78")


@pytest.mark.parametrize("name", sorted(JAVA))
def test_a_file_that_is_cut_short_is_refused(name: str) -> None:
    whole = JAVA[name]
    assert load_map(b"") == {}, "an empty one has no offsets, as for Connect"
    for size in range(1, len(whole), max(1, len(whole) // 300)):
        with pytest.raises(DataError, match="not a Java-serialised HashMap of byte arrays"):
            load_map(whole[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        MAGIC + b"\x73" + HASH_MAP.replace(b"HashMap", b"TreeMap"),
        MAGIC + b"\x73" + HASH_MAP + struct.pack(">fi", 0.75, 12) + b"\x77\x08" + struct.pack(">ii", 16, -1) + b"\x78",
        MAGIC + b"\x73" + HASH_MAP + struct.pack(">fi", 0.75, 12) + b"\x77\x08" + struct.pack(">ii", 16, 2**31 - 1),
        MAGIC
        + b"\x73"
        + HASH_MAP
        + struct.pack(">fi", 0.75, 12)
        + b"\x77\x08"
        + struct.pack(">ii", 16, 1)
        + b"\x74\x00\x01a",
    ],
)
def test_what_is_no_such_map_is_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        load_map(data)
