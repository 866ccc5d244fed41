"""One connection of the test server: the handshake, requests, and the streams that are open on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.couchbase.access import ScramExchange, plain_user
from support.couchbase.frames import HEADER, Asked, Sent, failover_log, frame_of
from support.couchbase.streams import Stream, chosen_filter, item_message
from support.couchbase.vbuckets import UNSEEN, History, Item

if TYPE_CHECKING:
    from support.couchbase.nodes import Node
    from support.couchbase.server import CouchbaseServer

FEATURES = {0x01, 0x06, 0x07, 0x08, 0x0A, 0x0B, 0x0C, 0x0D, 0x12}
DRAIN_BYTES = 1 << 18
MAX_KEY_BYTES, MAX_NAME_BYTES = 250, 200


@dataclass(eq=False)
class Session:
    """A client's connection to a node."""

    server: CouchbaseServer
    node: Node
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    features: frozenset[int] = frozenset()
    user: str = ""
    bucket: str = ""
    name: bytes = b""
    flags: int = -1
    controls: dict[str, str] = field(default_factory=dict)
    streams: dict[int, Stream] = field(default_factory=dict)
    unacknowledged: int = 0
    acknowledged: list[int] = field(default_factory=list)
    noop_answered: bool = True
    silent: bool = False
    _tasks: list[asyncio.Future[None]] = field(default_factory=list)
    _scram: ScramExchange | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serves until the connection ends."""
        certificate = self.writer.get_extra_info("peercert") or {}
        names = [value for field in certificate.get("subject", ()) for key, value in field if key == "commonName"]
        if names:
            self.user = names[0]
            self.server.certified.add(self.user)
        tasks = self._tasks
        tasks.append(asyncio.ensure_future(self._send_changes()))
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                header = await self.reader.readexactly(HEADER.size)
                magic, opcode, key_length, extras_length, _, vbucket, body, opaque, _ = HEADER.unpack(header)
                if magic not in (0x80, 0x81):
                    break
                rest = await self.reader.readexactly(body)
                if self.silent:
                    continue
                if magic == 0x81:
                    self.noop_answered = True
                    continue
                key_at, value_at = extras_length, extras_length + key_length
                parts = rest[:key_at], rest[key_at:value_at], rest[value_at:]
                await self._serve(Asked(opcode, vbucket, opaque, *parts))
        for task in tasks:
            task.cancel()
        self.writer.close()

    def wake(self) -> None:
        """Signals that there may be something to send."""
        self._wake.set()

    def cut(self) -> None:
        """Ends the connection."""
        self.writer.transport.abort()

    def answer(
        self, request: Asked, status: int = 0, *, extras: bytes = b"", value: bytes = b"", datatype: int = 0
    ) -> None:
        """Writes a response."""
        sent = Sent(request.opcode, status, request.opaque, extras, value=value, datatype=datatype)
        self._write(0x81, sent)

    def garbled(self, vbucket: int, item: Item) -> None:
        """Sends a snapshot of one change and an invalid frame after it in the same piece."""
        stream, pieces = self.streams[vbucket], list[bytes]()
        write, self.writer.write = self.writer.write, pieces.append  # type: ignore[method-assign]
        self._send(Sent(0x56, vbucket, stream.opaque, struct.pack(">QQI", item.seqno, item.seqno, 1)))
        self._send_item(vbucket, stream, item)
        stream.at = item.seqno
        write(b"".join([*pieces, b"\x16\x03\x01" * 9]))
        self.writer.write = write  # type: ignore[method-assign]

    def push_map(self) -> None:
        """Sends another map to a client that has requested such messages."""
        if 0x0D in self.features and 0x0C in self.features and self.bucket:
            fields = self.server.map(self.node)
            extras = struct.pack(">QQ", fields["revEpoch"], fields["rev"])
            self._write(0x82, Sent(0x01, 0, 0, extras, self.bucket.encode(), json.dumps(fields).encode(), datatype=1))

    def end_stream(self, vbucket: int, reason: int) -> None:
        """Ends a stream if it is open."""
        stream = self.streams.pop(vbucket, None)
        if stream is not None:
            self._send(Sent(0x55, vbucket, stream.opaque, struct.pack(">I", reason)))

    def _write(self, magic: int, sent: Sent) -> int:
        """Writes a frame; returns its length."""
        frame = frame_of(magic, sent, is_framed=self.server.is_framed)
        self.writer.write(frame)
        return len(frame)

    def _send(self, sent: Sent) -> None:
        """Sends a message of a stream, which counts against the window."""
        self.unacknowledged += self._write(0x80, sent)

    @property
    def _window(self) -> int:
        return int(self.controls.get("connection_buffer_size", "0"))

    @property
    def _full(self) -> bool:
        return bool(self._window) and self.unacknowledged >= self._window

    async def _serve(self, request: Asked) -> None:
        refused = self.server.refused(request.opcode, request.vbucket)
        if refused is not None:
            status, text = refused
            self.answer(request, status, value=text, datatype=1 if text else 0)
            return
        present = {
            0x0A: self._empty, 0x0B: self._version, 0x1F: self._hello, 0x20: self._mechanisms, 0x21: self._auth,
            0x22: self._step, 0x48: self._all_seqnos, 0x50: self._open, 0x52: self._close_stream,
            0x53: self._stream, 0x54: self._failover_log, 0x5D: self._acknowledge, 0x5E: self._control,
            0x89: self._select, 0x91: self._observe, 0xB5: self._map, 0xBA: self._manifest,
        }.get(request.opcode)  # fmt: skip
        if present is None:
            self.answer(request, 0x81)
            return
        if request.opcode not in (0x1F, 0x20, 0x21, 0x22, 0x0B, 0x0A) and not self.user:
            self.answer(request, 0x24)
            return
        present(request)
        await self.writer.drain()

    def _empty(self, request: Asked) -> None:
        self.answer(request)

    def _version(self, request: Asked) -> None:
        self.answer(request, value=b"7.6.2-3721-enterprise")

    def _hello(self, request: Asked) -> None:
        if len(request.key) > MAX_KEY_BYTES:
            self.answer(request, 0x04)
            return
        expected = struct.unpack(f">{len(request.value) // 2}H", request.value)
        agreed = [item for item in expected if item in self.server.features]
        self.features = frozenset(agreed)
        self.answer(request, value=struct.pack(f">{len(agreed)}H", *agreed))

    def _mechanisms(self, request: Asked) -> None:
        self.answer(request, value=" ".join(self.server.mechanisms).encode())

    def _auth(self, request: Asked) -> None:
        mechanism = request.key.decode()
        if self.flags >= 0 or mechanism not in self.server.mechanisms:
            self.answer(request, 0x20)
        elif mechanism == "PLAIN":
            self.user = plain_user(self.server.users, request.value.decode())
            self.answer(request, 0 if self.user else 0x20)
        else:
            self._scram = ScramExchange(mechanism, request.value.decode())
            self.answer(request, 0x21, value=self._scram.challenge.encode())

    def _step(self, request: Asked) -> None:
        exchange, self._scram = self._scram, None
        verifier = (
            "" if exchange is None else exchange.verifier(request.value.decode(), self.server.users.get(exchange.user))
        )
        if exchange is None or not verifier:
            self.answer(request, 0x20)
            return
        self.user = exchange.user
        self.answer(request, value=verifier.encode())

    def _select(self, request: Asked) -> None:
        if request.key.decode() != self.server.bucket:
            self.answer(request, 0x24)
            return
        self.bucket = request.key.decode()
        self.answer(request)

    def _open(self, request: Asked) -> None:
        if not self.server.may_read:
            self.answer(request, 0x24)
            return
        if not 0 < len(request.key) <= MAX_NAME_BYTES:
            self.answer(request, 0x04)
            return
        for other in self.node.sessions:
            if other is not self and other.name == request.key and other.flags >= 0:
                other.cut()
        self.name, self.flags = request.key, struct.unpack(">II", request.extras)[1]
        self.answer(request)

    def _control(self, request: Asked) -> None:
        name = request.key.decode()
        present = {
            "change_streams", "connection_buffer_size", "set_noop_interval", "enable_noop", "supports_cursor_dropping",
            "send_stream_end_on_client_close_stream", "enable_expiry_opcode", "force_value_compression", "set_priority",
        }  # fmt: skip
        if name not in present or (name == "force_value_compression" and 0x0A not in self.features):
            self.answer(request, 0x04)
            return
        self.controls[name] = request.value.decode()
        if name == "enable_noop":
            self._tasks.append(asyncio.ensure_future(self._noops()))
        self.answer(request)

    def _acknowledge(self, request: Asked) -> None:
        (size,) = struct.unpack(">I", request.extras)
        self.acknowledged.append(size)
        self.unacknowledged -= size
        self.wake()

    def _map(self, request: Asked) -> None:
        if self.server.is_ready and not self.node.serves:
            self.answer(request, 0x08)
            return
        self.answer(request, value=json.dumps(self.server.map(self.node)).encode(), datatype=1)

    def _manifest(self, request: Asked) -> None:
        self.answer(request, value=json.dumps(self.server.collections.json()).encode(), datatype=1)

    def _here(self, request: Asked) -> History | None:
        """The vbucket, if its active copy is here; otherwise answers that it is not."""
        history = self.server.vbuckets.get(request.vbucket)
        if history is None or history.node != self.node.index:
            text = b"" if self.server.hides_maps else json.dumps(self.server.map(self.node)).encode()
            self.answer(request, 0x07, value=text)
            return None
        return history

    def _all_seqnos(self, request: Asked) -> None:
        here = [vbucket for vbucket in self.server.vbuckets.values() if vbucket.node == self.node.index]
        highs = {item.number: item.high for item in here}
        if len(request.extras) == 8:
            (collection,) = struct.unpack_from(">I", request.extras, 4)
            if collection not in self.server.collections.ids:
                self.answer(request, 0x88)
                return
            highs = {item.number: item.high_of(collection) for item in here}
        self.answer(request, value=b"".join(struct.pack(">HQ", *pair) for pair in highs.items()))

    def _failover_log(self, request: Asked) -> None:
        """Answers with the failover log, of a replica too."""
        history = self.server.vbuckets.get(request.vbucket)
        if history is None or self.node.index != history.replica:
            history = self._here(request)
        if history is not None:
            self.answer(request, value=failover_log(history.branches(self.node.index)))

    def _observe(self, request: Asked) -> None:
        history = self.server.vbuckets.get(request.vbucket)
        if history is None or self.node.index not in (history.node, history.replica):
            self.answer(request, 0x07)
            return
        self.server.observed += 1
        (vbuuid,) = struct.unpack(">Q", request.value)
        log, on_disk = history.branches(self.node.index), history.on_disk(self.node.index)
        now = log[0][0]
        if vbuuid == now:
            self.answer(request, value=struct.pack(">BHQQQ", 0, request.vbucket, now, on_disk, history.high))
        elif any(vbuuid == uuid for uuid, _ in log):
            last = next(log[at - 1][1] for at, (uuid, _) in enumerate(log) if uuid == vbuuid)
            fields = (1, request.vbucket, now, on_disk, history.high, vbuuid, last)
            self.answer(request, value=struct.pack(">BHQQQQQ", *fields))
        else:
            self.answer(request, 0x01)

    def _close_stream(self, request: Asked) -> None:
        self.answer(request, 0 if request.vbucket in self.streams else 0x01)
        if self.controls.get("send_stream_end_on_client_close_stream") == "true":
            self.end_stream(request.vbucket, 1)
        self.streams.pop(request.vbucket, None)

    def _stream(self, request: Asked) -> None:
        history = self._here(request)
        if history is None:
            return
        status, chosen = chosen_filter(
            request.value, self.features, self.server.collections, has_noop=self.controls.get("enable_noop") == "true"
        )
        flags, _, start, _, vbuuid, first, last = struct.unpack(">IIQQQQQ", request.extras)
        if self.flags < 0:
            status = 0x24
        elif request.vbucket in self.streams:
            status = 0x02
        elif not status and not first <= start <= last:
            status = 0x22
        if status:
            self.answer(request, status)
            return
        back = history.rollback(start, vbuuid, (first, last), ignore_purged=bool(flags & 0x80))
        if back is not None:
            self.answer(request, 0x23, value=struct.pack(">Q", back))
            return
        if start > history.high:
            self.answer(request, 0x22)
            return
        self.server.asked.append((request.vbucket, start, vbuuid, first, last))
        self.answer(request, value=failover_log(history.log))
        self.streams[request.vbucket] = Stream(request.opaque, history, start, chosen)
        self.wake()

    async def _send_changes(self) -> None:
        """Sends the pending changes of the streams, as far as the window permits."""
        with contextlib.suppress(OSError):
            while True:
                await self._wake.wait()
                self._wake.clear()
                for vbucket, stream in list(self.streams.items()):
                    await self._send_snapshot(vbucket, stream)

    async def _send_snapshot(self, vbucket: int, stream: Stream) -> None:
        history = stream.history
        high = history.high
        if stream.at >= high or self.silent:
            return
        begin = 0 if stream.at == 0 else stream.at + 1
        await self._room()
        self._marker(vbucket, stream, begin, high)
        sent = stream.at
        for item in history.since(stream.at, self.server.collections.ids):
            if item.seqno > high or self.streams.get(vbucket) is not stream:
                break
            if not stream.filter.passes(item) or item.kind in UNSEEN:
                continue
            await self._room()
            if self.streams.get(vbucket) is not stream:
                return
            self._send_item(vbucket, stream, item)
            sent = stream.at = item.seqno
            if stream.filter.is_gone:
                self.end_stream(vbucket, 7)
                return
            if self.server.delay:
                await asyncio.sleep(self.server.delay)
            if self.writer.transport.get_write_buffer_size() > DRAIN_BYTES:
                await self.writer.drain()
        if sent < high and self.streams.get(vbucket) is stream:
            self._send(Sent(0x64, vbucket, stream.opaque, struct.pack(">Q", high)))
        stream.at = high

    def _marker(self, vbucket: int, stream: Stream, begin: int, end: int) -> None:
        """A snapshot's begin, in the requested form."""
        fields, version = struct.pack(">QQI", begin, end, 1), self.server.marker_version
        if version is None:
            self._send(Sent(0x56, vbucket, stream.opaque, fields))
            return
        more = struct.pack(">QQ", end, 0) if version == 0 else struct.pack(">QQQQ", end, 0, stream.history.purged, 0)
        self._send(Sent(0x56, vbucket, stream.opaque, bytes([version]), value=fields + more))

    async def _room(self) -> None:
        while self._full or self.silent:
            await self._wake.wait()
            self._wake.clear()
        self._wake.set()

    def _send_item(self, vbucket: int, stream: Stream, item: Item) -> None:
        tells_expiry = "enable_expiry_opcode" in self.controls
        self._send(item_message(item, vbucket, stream.opaque, self.features, self.flags, tells_expiry=tells_expiry))

    async def _noops(self) -> None:
        """Sends no-ops to the client, and ends the connection if it does not answer."""
        number = 0x1000_0000
        while True:
            interval = float(self.controls.get("set_noop_interval", "120"))
            await asyncio.sleep(min(interval, self.server.noop_seconds))
            if self.controls.get("enable_noop") != "true" or not self.streams or self.silent:
                continue
            if not self.noop_answered:
                self.cut()
                return
            self.noop_answered = False
            self._write(0x80, Sent(0x5C, 0, number))
            self.server.noops += 1
            number += 1
