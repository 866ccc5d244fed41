"""One HTTP connection that cannot be held for ever: heads have a deadline, readers must read, the idlest give way."""

from __future__ import annotations

import asyncio
import logging
import re
import resource
import sys
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from keelman.runtime.http_errors import error_body

HEAD_SECONDS = 30.0
READ_SECONDS = 60.0
FIRST_SECONDS = 0.2
FAREWELL_SECONDS = 1.0
MAX_HEAD_BYTES = 64 * 1024
MOST_CONNECTIONS = 1000
EMPTY_LINE = "no request line received"  # as h11 says it
_BYTES = re.compile(r"bytearray\(b(.*)\)", re.DOTALL)

# It warns of every malformed request; what goes wrong in our own code it tells as an error.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with bounds of time: a head must be whole within 30 s of its begin (408), an answer that
    nobody reads is broken off after 60 s, and of too many connections the one that has waited longest is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._since = time.monotonic()
        self._all_heard = False
        self._leaving = False

    @property
    def waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come."""
        super().connection_made(transport)
        self._await_head()
        present = [c for c in self.connections if isinstance(c, PatientProtocol) and not c.transport.is_closing()]
        if len(present) > most_connections():
            idle = [c for c in present if c.waiting]
            if idle:
                min(idle, key=lambda c: c._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._stop_timers()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client will send no more. What it has asked for is answered, then the connection ends; not so with TLS,
        which is closed from both sides at once."""
        self._all_heard = self.scheme == "http" and not self.waiting and self.conn.their_state is not h11.SEND_BODY
        return self._all_heard

    def shutdown(self) -> None:
        """The server ends: what has begun is answered. On a connection that has just come that may be on its way."""
        self.loop.call_later(FIRST_SECONDS if self.cycle is None else 0.0, self._end)

    def _end(self) -> None:
        self._leaving = True
        if not self.transport.is_closing():
            super().shutdown()
        self._part()

    def _part(self) -> None:
        """Nobody waits long for a TLS client that has all it asked for and does not say farewell."""
        if self.transport.is_closing():
            self.loop.call_later(FAREWELL_SECONDS, self._abandon)

    def _abandon(self) -> None:
        if self in self.connections and not self.transport.get_write_buffer_size():
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        if self.waiting:
            self._await_head()
        super().data_received(data)
        if not self.waiting and self._head is not None:
            self._head.cancel()
            self._head = None

    def on_response_complete(self) -> None:
        """An answer has been written."""
        self._since = time.monotonic()
        super().on_response_complete()
        if self._all_heard and self.waiting:
            self.transport.close()
        if self._leaving:
            self._part()

    def pause_writing(self) -> None:
        """The client does not read, or not so fast."""
        self._unread = self._unread or self.loop.call_later(READ_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client reads."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP request, in the form of Connect's errors; the error handled now tells why. Empty
        lines before a request are passed over (RFC 9112, 2.2)."""
        why = str(sys.exc_info()[1] or "")
        if why == EMPTY_LINE:
            rest = self.conn.trailing_data[0].lstrip(b"\r\n")
            self.conn = h11.Connection(h11.SERVER, MAX_HEAD_BYTES)
            if rest:
                super().data_received(rest)
        else:
            self._refuse(400, "HTTP 400 Bad Request", _BYTES.sub(r"\1", why))

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._late)

    def _late(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408, "HTTP 408 Request Timeout")
        else:
            self.transport.close()  # it was opened and nothing ever came

    def _refuse(self, status: int, message: str, why: str = "") -> None:
        """Answers, if no answer has begun, and closes."""
        self._stop_timers()
        if self.transport.is_closing():
            return
        body = error_body(status, f"{message}: {why}" if why else message)
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        try:
            head = self.conn.send(h11.Response(status_code=status, headers=headers, reason=message[9:].encode()))
            self.transport.write((head or b"") + body)
        except h11.LocalProtocolError:
            pass
        self.transport.close()

    def _stop_timers(self) -> None:
        for timer in (self._head, self._unread):
            if timer is not None:
                timer.cancel()
        self._head = self._unread = None


def most_connections() -> int:
    """Connections of one listener at once: what leaves most of this process's descriptors to others."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft < 0 else min(MOST_CONNECTIONS, max(16, soft // 4))
