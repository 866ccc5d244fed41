"""A server's side of TLS under asyncio that reports to its clients why their handshake failed."""

from __future__ import annotations

import asyncio
import ssl
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


class OutspokenObject(ssl.SSLObject):
    """Says first that it waits for more when its handshake has failed, so that what it has written is sent."""

    outgoing: ssl.MemoryBIO
    greeting: asyncio.Task[Any] | None
    _failure: ssl.SSLError | None = None

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
