"""A server's side of TLS under asyncio: clients whose handshake fails are told why, and those that have said all are
answered."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

READ_SECONDS = 1.0  # for a client to read why, before its connection ends
_BODY = b'{"error_code":400,"message":"HTTP 400 Bad Request: this port speaks https"}'
_HEAD = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


class OutspokenContext(ssl.SSLContext):
    """A context whose connections send the alert of a failed handshake, which asyncio by itself drops with the
    connection; a client that speaks http is refused in http. For servers of asyncio's, where a task greets each
    connection and ends with its handshake."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        """The TLS side of one connection."""
        made = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(made, OutspokenObject)
        made.outgoing = outgoing
        made.greeting = asyncio.current_task()
        return made


class HalfOpen(SSLProtocol):
    """The TLS side of a connection whose client may close its own side and is answered, as one of plain HTTP is.

    asyncio by itself closes both sides as soon as it sees the end of one.
    """

    def __init__(self, protocol: asyncio.Protocol, context: ssl.SSLContext, *, handshake_seconds: float) -> None:
        """`protocol` is the connection's own. `greeted` is done, or fails, with the handshake."""
        loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[None] = loop.create_future()
        self._protocol = protocol
        super().__init__(
            loop,
            protocol,
            context,
            self.greeted,
            server_side=True,
            ssl_handshake_timeout=handshake_seconds,  # type: ignore[arg-type]  # a float will do
        )

    def eof_received(self) -> bool:  # type: ignore[override]
        """The connection's other side has ended."""
        return bool(self._protocol.eof_received()) or bool(super().eof_received())


class OutspokenObject(ssl.SSLObject):
    """Says first that it waits for more when its handshake has failed, so that what it has written is sent.

    So it does, when it is told to call `all_said`, at the end of what its client says: what asyncio reads as an end it
    answers by closing. Once `alone` it waits for no word of its client's.
    """

    outgoing: ssl.MemoryBIO
    greeting: asyncio.Task[Any] | None
    all_said: Callable[[], None] | None = None
    alone = False
    _failure: ssl.SSLError | None = None

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        """Some of what the client says."""
        read = super().read(len, buffer)
        if read or self.all_said is None:
            return read
        asyncio.get_running_loop().call_soon(self.all_said)  # first it hears what came before
        raise ssl.SSLWantReadError

    def unwrap(self) -> Any:
        """Says that this is the end, and that the client said so."""
        try:
            return super().unwrap()
        except ssl.SSLWantReadError:
            if not self.alone:
                raise
            return None

    def do_handshake(self) -> None:
        """A step of the handshake."""
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._failure = error
            if error.reason == "HTTP_REQUEST":
                self.outgoing.write(_HEAD % len(_BODY) + _BODY)
            if self.greeting is not None:
                self.greeting.get_loop().call_later(READ_SECONDS, self.greeting.cancel)
            raise ssl.SSLWantReadError from error


OutspokenContext.sslobject_class = OutspokenObject
