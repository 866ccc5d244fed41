"""How a connection handles messages with unknown recipients and late ends of streams that it left."""

import asyncio
import struct
from typing import Any, cast

import pytest

from keelman.couchbase import connection as connection_module
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import COLLECTION_DROPPED, Connection
from keelman.couchbase.frames import HEADER, RESPONSE, Opcode, ResponseStatus, encoded
from keelman.couchbase.manifest import Collection, CollectionManifest, Selection
from keelman.couchbase.messages import Decoder
from keelman.couchbase.vbucket import Event, Vbucket


class Wire(asyncio.Transport):
    """A transport to a server that sends nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: object) -> None:
        """Records the data and sends nothing."""
        self.written.append(cast("bytes", data))

    def abort(self) -> None:
        """Has nothing to close."""


class Heard:
    """Records a connection's events."""

    def __init__(self) -> None:
        self.seqnos: list[int] = []
        self.ended: list[tuple[int, int]] = []
        self.losses: list[str] = []

    def events(self, connection: Connection, events: list[Event]) -> None:
        self.seqnos += [event.seqno for event in events]

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Ignores the map; none is sent."""

    def stream_ended(self, connection: Connection, vbucket: int, reason: int) -> None:
        self.ended.append((vbucket, reason))

    def lost(self, connection: Connection, reason: str) -> None:
        self.losses.append(reason)


async def open_stream() -> tuple[Heard, Connection, Vbucket]:
    """A stream of a vbucket, opened for collection 8."""
    heard, vbucket = Heard(), Vbucket(1, asked=frozenset((8,)))
    connection = Connection(NodeAddress("one", 11210), heard, 120.0)
    collections = {8: Collection("s", "c"), 9: Collection("s", "d")}
    manifest = CollectionManifest(1, {8: "s"}, collections, Selection("", tuple(collections.values())))
    connection.connection_made(Wire())
    connection.stream(Decoder(manifest, collections=True), 0)
    connection.follow(vbucket)
    return heard, connection, vbucket


def ended(opaque: int, reason: int) -> bytes:
    return encoded(Opcode.STREAM_END, status=1, opaque=opaque, extras=struct.pack(">I", reason))


def mutation(seqno: int) -> bytes:
    return encoded(Opcode.MUTATION, status=1, extras=struct.pack(">QQIIIHB", seqno, 1, 0, 0, 0, 0, 0), key=b"\x09doc")


async def test_an_unknown_opcode_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[dict[str, Any]] = []
    log = type("Log", (), {"warning": lambda _, name, **value: warned.append({"name": name, **value})})
    monkeypatch.setattr(connection_module, "_log", log())
    heard, connection, _ = await open_stream()
    connection.data_received(encoded(0x77, status=1) * 3 + mutation(1))
    assert warned == [{"name": "couchbase_unknown_opcode", "node": "one:11210", "opcode": "0x77"}]
    assert heard.seqnos == [1]
    connection.close()
    assert heard.losses == []


async def test_the_end_of_a_stream_that_was_left_is_not_that_of_the_next() -> None:
    heard, connection, vbucket = await open_stream()
    extras, value = struct.pack(">QIB", 2, 1, 0), struct.pack(">QII", 2, 8, 8)
    drop = encoded(Opcode.SYSTEM_EVENT, status=1, opaque=5, extras=extras, value=value)
    connection.data_received(mutation(1) + drop + mutation(3))
    assert heard.seqnos == [1, 2]
    assert heard.ended == [(1, COLLECTION_DROPPED)]
    connection.follow(vbucket)
    connection.data_received(ended(5, 1) + mutation(3) + ended(6, 2))
    assert heard.seqnos == [1, 2, 3]
    assert heard.ended == [(1, COLLECTION_DROPPED), (1, 2)]
    connection.close()


@pytest.mark.parametrize(
    ("status", "losses"),
    [
        (ResponseStatus.SUCCESS, []),
        (ResponseStatus.KEY_NOT_FOUND, []),
        (ResponseStatus.TEMPORARY_FAILURE, ["the stream of vbucket 1 was not closed: status 0x86"]),
        (None, ["the stream of vbucket 1 was not closed: one:11210 does not answer within 0 s"]),
    ],
)
async def test_a_connection_that_does_not_close_a_stream_is_left(
    monkeypatch: pytest.MonkeyPatch, status: ResponseStatus | None, losses: list[str]
) -> None:
    heard, connection, _ = await open_stream()
    if status is None:
        monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.0)
    closing = asyncio.ensure_future(connection.close_stream(1))
    await asyncio.sleep(0)
    _, opcode, _, _, _, vbucket, _, opaque, _ = HEADER.unpack(cast("Wire", connection._transport).written[-1])
    assert (opcode, vbucket) == (Opcode.CLOSE_STREAM, 1)
    if status is not None:
        connection.data_received(encoded(opcode, magic=RESPONSE, status=status, opaque=opaque))
    await closing
    assert heard.losses == losses
    connection.close()
