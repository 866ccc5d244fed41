"""One connection to a node: requests with their answers, and the events of the streams that are open on it."""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
import struct
from collections.abc import Callable
from typing import Protocol

from keelman.couchbase import frames
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.errors import AwayError, ProtocolError
from keelman.couchbase.messages import Decoder
from keelman.couchbase.seeds import BucketAccess
from keelman.couchbase.vbucket import Event, Vbucket
from keelman.runtime.logs.logging import get_logger

REQUEST_SECONDS = 20.0
SILENT_INTERVALS, ASK_INTERVALS = 2.0, 1.2
"""Multiples of the no-op interval: the connection to a server that is silent this long is ended; before, a no-op is
sent."""
ACK_SHARE = 0.5
"""The share of the flow control's buffer that is taken before an acknowledgement is sent."""
_FIRST_OPAQUE = 0x1000
COLLECTION_DROPPED = -2
"""The reason when the client leaves a stream because a requested collection was dropped; no server sends this
number."""
_KNOWN = frozenset(frames.Opcode)

_log = get_logger()


class ConnectionListener(Protocol):
    """Gets the messages that a server sends without a request."""

    def events(self, connection: Connection, events: list[Event]) -> None:
        """Gets changes. The listener acknowledges their sizes once they are taken."""

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Gets another cluster map of the server; `value` is empty if the server only announces it."""

    def stream_ended(self, connection: Connection, vbucket: int, reason: int) -> None:
        """Gets the end of a stream: by the server, or by this client with COLLECTION_DROPPED."""

    def lost(self, connection: Connection, reason: str) -> None:
        """Gets the end of the connection, and with it of its streams."""


class Connection(asyncio.Protocol):
    """A connection to one node, created by `connect` and used in one event loop."""

    def __init__(self, address: NodeAddress, listener: ConnectionListener, noop_seconds: float) -> None:
        self.address, self.where = address, str(address)
        self.id = f"{secrets.token_hex(8)}/{secrets.token_hex(8)}".upper()
        self.features: frozenset[int] = frozenset()
        self._listener = listener
        self._noop_seconds = noop_seconds
        self._buffer = frames.FrameBuffer()
        self._waiting: dict[int, tuple[asyncio.Future[frames.Frame], Callable[[frames.Frame], None] | None]] = {}
        self._next = _FIRST_OPAQUE
        self._left: set[int] = set()
        """Opaques of streams that the client has left: their ends are not reported."""
        self._unknown: set[int] = set()
        self._transport: asyncio.Transport | None = None
        self._why = ""
        self._heard = 0.0
        self._decoder: Decoder | None = None
        self._window = 0
        self._unacknowledged = 0
        self._watching: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, address: NodeAddress, access: BucketAccess, listener: ConnectionListener) -> Connection:
        """Opens a connection without a login. Raises AwayError."""
        loop = asyncio.get_running_loop()
        name = access.tls and address.host
        try:
            async with asyncio.timeout(access.bootstrap_seconds):
                _, connection = await loop.create_connection(
                    lambda: cls(address, listener, access.noop_seconds),
                    address.host,
                    address.port,
                    ssl=access.tls,
                    server_hostname=name or None,
                )
        except (OSError, TimeoutError) as error:
            raise AwayError(f"{address}: {_why_not(error, access)}") from None
        return connection

    async def request(
        self,
        opcode: int,
        *,
        key: bytes = b"",
        value: bytes = b"",
        extras: bytes = b"",
        vbucket: int = 0,
        at_once: Callable[[frames.Frame], None] | None = None,
    ) -> frames.Frame:
        """Returns the answer to a request, whatever its status. `at_once` gets the answer before any later frame is
        handled. Raises AwayError."""
        if self._transport is None or self._why:
            raise AwayError(f"{self.where}: {self._why or 'not connected'}")
        opaque, self._next = self._next, (self._next + 1) & 0x7FFF_FFFF
        answer: asyncio.Future[frames.Frame] = self._loop.create_future()
        self._waiting[opaque] = answer, at_once
        self._transport.write(
            frames.encoded(opcode, status=vbucket, opaque=opaque, key=key, value=value, extras=extras)
        )
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await answer
        except TimeoutError:
            raise AwayError(f"{self.where} does not answer within {REQUEST_SECONDS:g} s") from None
        finally:
            self._waiting.pop(opaque, None)

    def stream(self, decoder: Decoder, window: int) -> None:
        """Decodes received frames from now on. `window` is the size of the flow control's buffer in bytes; 0 for
        none."""
        self._decoder, self._window = decoder, window
        self._watch()

    def follow(self, vbucket: Vbucket) -> None:
        """Takes the events of this vbucket from now on."""
        if self._decoder is not None:
            self._decoder.vbuckets[vbucket.number] = vbucket

    def forget(self, vbucket: int) -> None:
        """Ignores the events of this vbucket from now on."""
        if self._decoder is not None:
            self._decoder.vbuckets.pop(vbucket, None)

    async def close_stream(self, vbucket: int) -> None:
        """Has the server end a stream that was left. If the server does not confirm that the stream is gone, the
        connection is left too: the answer to another request would be the old stream, whose events were dropped
        here."""
        try:
            status = (await self.request(frames.Opcode.CLOSE_STREAM, vbucket=vbucket)).status
        except AwayError as error:
            self.leave(f"the stream of vbucket {vbucket} was not closed: {error}")
            return
        if status not in (frames.ResponseStatus.SUCCESS, frames.ResponseStatus.KEY_NOT_FOUND):
            self.leave(f"the stream of vbucket {vbucket} was not closed: status {status:#04x}")

    def acknowledge(self, size: int) -> None:
        """Records the size of events that were taken or dropped: the server may send as many bytes again."""
        self._unacknowledged += size
        if self._window and self._unacknowledged >= self._window * ACK_SHARE and self._transport and not self._why:
            extras = struct.pack(">I", self._unacknowledged)
            self._transport.write(frames.encoded(frames.Opcode.BUFFER_ACK, extras=extras))
            self._unacknowledged = 0

    def close(self, reason: str = "closed") -> None:
        """Ends the connection; the listener is not notified."""
        if not self._why:
            self._end(reason)
        if self._transport is not None:
            self._transport.abort()

    def leave(self, reason: str) -> None:
        """Ends the connection as if the server had: the listener is notified."""
        if not self._why:
            self._fail(reason)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._heard = self._loop.time()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        if not self._why:
            self._end(str(error) if error else "the server ended the connection")
            self._listener.lost(self, self._why)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._why:
            return
        self._heard = self._loop.time()
        try:
            self._receive(data)
        except ProtocolError as error:
            self._fail(str(error))

    def _receive(self, data: bytes) -> None:
        decoder = self._decoder
        events: list[Event] = []
        skim = None if decoder is None else lambda buffer, at: decoder.skim(buffer, at, events)
        uncounted = 0
        try:
            for frame in self._buffer.feed(data, skim):
                if frame.opcode == frames.Opcode.STREAM_END and frame.magic == frames.REQUEST and events:
                    self._listener.events(self, events.copy())
                    events.clear()
                if decoder is None or frame.magic != frames.REQUEST or not decoder.decode(frame, events):
                    uncounted += self._other(frame)
                elif decoder.left:
                    self._left.add(frame.opaque)
                    self._leave_streams(decoder, events)
        finally:  # events before an invalid frame have advanced their vbuckets
            if events:
                self._listener.events(self, events)
        if uncounted:
            self.acknowledge(uncounted)

    def _leave_streams(self, decoder: Decoder, events: list[Event]) -> None:
        self._listener.events(self, events.copy())
        events.clear()
        while decoder.left:
            self._listener.stream_ended(self, decoder.left.pop(), COLLECTION_DROPPED)

    def _other(self, frame: frames.Frame) -> int:
        """Handles a frame that is not a change event. Returns its size if flow control counts it, else 0."""
        if frame.magic == frames.RESPONSE:
            self._answered(frame)
        elif frame.magic == frames.SERVER_REQUEST and frame.opcode == frames.Opcode.CLUSTER_MAP_CHANGE:
            self._listener.map_pushed(self, frame.value)
        elif frame.magic == frames.REQUEST and frame.opcode == frames.Opcode.DCP_NOOP:
            self._reply(frame)
        elif frame.magic == frames.REQUEST:
            if frame.opcode == frames.Opcode.STREAM_END:
                self._stream_ended(frame)
            elif frame.opcode not in _KNOWN and frame.opcode not in self._unknown:
                self._unknown.add(frame.opcode)
                _log.warning("couchbase_unknown_opcode", node=self.where, opcode=f"{frame.opcode:#04x}")
            return frame.size
        return 0

    def _stream_ended(self, frame: frames.Frame) -> None:
        if frame.opaque in self._left:
            self._left.discard(frame.opaque)
        elif self._decoder is not None and frame.vbucket in self._decoder.vbuckets:
            reason = struct.unpack(">I", frame.extras)[0] if len(frame.extras) == 4 else 0xFFFF
            self._listener.stream_ended(self, frame.vbucket, reason)

    def _answered(self, frame: frames.Frame) -> None:
        answer, at_once = self._waiting.get(frame.opaque, (None, None))
        if answer is not None and not answer.done():
            if at_once is not None:
                at_once(frame)
            answer.set_result(frame)

    def _reply(self, frame: frames.Frame) -> None:
        if self._transport is not None:
            self._transport.write(frames.encoded(frame.opcode, magic=frames.RESPONSE, opaque=frame.opaque))

    def _watch(self) -> None:
        """Sends a no-op to a silent server, and ends the connection if the server stays silent."""
        silent = self._loop.time() - self._heard
        if self._why:
            return
        if silent >= SILENT_INTERVALS * self._noop_seconds:
            self._fail(f"no message for {silent:.0f} s")
            return
        if silent >= ASK_INTERVALS * self._noop_seconds and self._transport is not None:
            self._transport.write(frames.encoded(frames.Opcode.NOOP))
        self._watching = self._loop.call_later(self._noop_seconds / 10, self._watch)

    def _fail(self, reason: str) -> None:
        self._end(reason)
        if self._transport is not None:
            self._transport.abort()
        self._listener.lost(self, reason)

    def _end(self, reason: str) -> None:
        self._why = reason
        if self._watching is not None:
            self._watching.cancel()
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(AwayError(f"{self.where}: {reason}"))
        self._waiting.clear()


def _of_certificates(error: OSError) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError | ConnectionRefusedError)


def _why_not(error: Exception, access: BucketAccess) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {access.bootstrap_seconds:g} s"
    if isinstance(error, ssl.SSLError | ConnectionError) and access.tls is not None and not _of_certificates(error):
        return f"no TLS there, which couchbase.enable.tls requires: {getattr(error, 'reason', None) or error}"
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    text = getattr(error, "reason", None) or error.strerror if isinstance(error, OSError) else None
    return str(text or error or type(error).__name__)
