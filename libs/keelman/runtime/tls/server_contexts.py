"""A server's side of TLS under asyncio that reports to its clients why their handshake failed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from keelman.runtime.tls.pairs import load_pair

READ_SECONDS = 1.0  # for a client to read the alert, before its connection ends
_BODY = b'{"error_code":400,"message":"HTTP 400 Bad Request: this port speaks https"}'
_HEAD = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


class OutspokenContext(ssl.SSLContext):
    """A context whose connections send the alert of a failed handshake, which asyncio by itself drops with the
    connection; a client that speaks http is refused in http. For servers of asyncio's, where a task greets each
    connection and ends with its handshake."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        """Returns the TLS side of one connection."""
        wrapped = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(wrapped, OutspokenObject)
        wrapped.outgoing = outgoing
        wrapped.greeting = asyncio.current_task()
        return wrapped


class OutspokenObject(ssl.SSLObject):
    """After a failed handshake, first reports that it waits for more, so that its alert is sent."""

    outgoing: ssl.MemoryBIO
    greeting: asyncio.Task[Any] | None
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Does a step of the handshake."""
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


def renewed_context(newest: Callable[[], tuple[bytes, bytes]]) -> ssl.SSLContext:
    """Returns the context of an https server. `newest` returns its current certificate chain and key, PEM: each new
    connection uses them, so that a renewal needs no restart. It must not raise, and must return a usable pair."""
    fresh = _Fresh(newest)
    context = OutspokenContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, *newest())

    def greet(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = fresh.context()

    context.sni_callback = greet
    return context


class _Fresh:
    """The context of the newest certificate, created again when the certificate changes."""

    def __init__(self, newest: Callable[[], tuple[bytes, bytes]]) -> None:
        self._newest = newest
        self._pems = b"", b""
        self._made = OutspokenContext(ssl.PROTOCOL_TLS_SERVER)

    def context(self) -> ssl.SSLContext:
        pems = self._newest()
        if pems != self._pems:
            context = OutspokenContext(ssl.PROTOCOL_TLS_SERVER)
            load_pair(context, *pems)
            self._pems, self._made = pems, context
        return self._made
