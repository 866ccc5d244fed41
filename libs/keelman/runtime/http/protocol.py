"""One HTTP connection with limits: heads have a deadline, bodies a least rate, clients must read; the idlest connection
is closed first.

Heads are accepted as by Connect's server: at most 8 KiB, and HTTP/1.0 and 1.1 only. A head that a worker forwards has
additional headers of that worker: a head that the first worker accepts is not too large for the next.
"""

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

from keelman.runtime.http.errors import error_body

MAX_HEAD_BYTES = 8192
SENT_ON_BYTES = 1024  # more for a forwarded request
SENT_ON = b"x-keelman-"
"""The prefix of the header names that a worker adds to forwarded requests."""
GIVES_WAY = "gives_way"
VERSIONS = (b"1.0", b"1.1")
HEAD_SECONDS = 30.0
READ_SECONDS = 60.0
BODY_SECONDS = 15.0
BODY_BYTES = 15 * 1024
"""A body that the server waits for must bring so many bytes in every BODY_SECONDS, or its end."""
REST_SECONDS = 2.0
"""The same for the rest of a body whose request has been answered."""
FIRST_SECONDS = 0.2
FAREWELL_SECONDS = 1.0
MAX_CONNECTIONS = 1000
EMPTY_LINE = "no request line received"  # h11's message
REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
    505: "HTTP Version Not Supported",
}
_BYTES = re.compile(r"bytearray\(b(.*)\)", re.DOTALL)


class HeadRefused(h11.RemoteProtocolError):
    """The request's head is refused; `error_status_hint` is the status for that."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why, error_status_hint=status)


class BoundedHeads(h11.Connection):
    """A server's side of one connection. h11 itself accepts every version, and bounds only incomplete heads."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES + SENT_ON_BYTES)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Returns the next event. Raises HeadRefused (414, 431, 505), RemoteProtocolError for data that is not HTTP."""
        between = self.their_state is h11.IDLE
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if between and error.error_status_hint == 431:
                raise _too_large(in_first_line=b"\n" not in self.trailing_data[0]) from None
            raise
        if isinstance(event, h11.Request):
            _check(event)
        return event


def _check(request: h11.Request) -> None:
    if request.http_version not in VERSIONS:
        raise HeadRefused(505, f"HTTP/{request.http_version.decode()} is not spoken here: use HTTP/1.1")
    sent_on = any(name.startswith(SENT_ON) for name, _ in request.headers)
    most = MAX_HEAD_BYTES + (SENT_ON_BYTES if sent_on else 0)
    if len(request.target) > most:
        raise _too_large(in_first_line=True)
    size = len(request.method) + len(request.target) + len("  HTTP/1.1\r\n\r\n")
    if size + sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers) > most:
        raise _too_large(in_first_line=False)


def _too_large(*, in_first_line: bool) -> HeadRefused:
    if in_first_line:
        return HeadRefused(414, f"the request's target is longer than {MAX_HEAD_BYTES} bytes")
    return HeadRefused(431, f"the request's head is larger than {MAX_HEAD_BYTES} bytes")


# It warns of every malformed request; errors in our own code it logs as errors.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class BoundedHttpProtocol(H11Protocol):
    """uvicorn's protocol with bounds: heads are those of `BoundedHeads` and must be complete within 30 s of their begin
    (408), a body must bring 15 KiB in every 15 s while the server reads (408), an answer that the client does not read
    is broken off after 60 s, and of too many connections the one is closed whose refused request has waited longest for
    its answer, else the one that has waited longest between requests, else the one whose request has been incomplete
    for longest."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedHeads()
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._body: asyncio.TimerHandle | None = None
        self._body_bytes = 0
        self._since = time.monotonic()
        self._all_heard = False
        self._refused = False
        self._leaving = False

    @property
    def waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def gives_way(self) -> bool:
        """Whether the request that is being answered is refused."""
        return not self.waiting and GIVES_WAY in self.scope["state"]

    @property
    def incomplete(self) -> bool:
        """Whether the rest of a request's body has yet to come."""
        return self.conn.their_state is h11.SEND_BODY

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Registers a new client."""
        super().connection_made(transport)
        self._await_head()
        present = [c for c in self.connections if isinstance(c, BoundedHttpProtocol) and not c.transport.is_closing()]
        if len(present) > most_connections():
            others = [c for c in present if c is not self]
            idle = (
                [c for c in others if c.gives_way]
                or [c for c in others if c.waiting]
                or [c for c in others if c.incomplete]
                or [self]
            )
            min(idle, key=lambda c: c._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the timers of a client that has gone."""
        self._stop_timers()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Notes that the client will send no more. A complete request is still answered, except over TLS, where asyncio
        ends both directions together."""
        self._all_heard = self.scheme == "http" and not self.waiting and self.conn.their_state is not h11.SEND_BODY
        return self._all_heard

    def shutdown(self) -> None:
        """Ends the connection with the server: requests that have begun are answered. On a new connection the first
        request may be on its way, so that it waits a moment."""
        self.loop.call_later(FIRST_SECONDS if self.cycle is None else 0.0, self._end)

    def _end(self) -> None:
        self._leaving = True
        if self._refused:
            self.transport.close()
        elif not self.transport.is_closing():
            super().shutdown()
        self._part()

    def _part(self) -> None:
        """Gives up a TLS client that has its answers and does not close its side."""
        if self.transport.is_closing():
            self.loop.call_later(FAREWELL_SECONDS, self._abandon)

    def _abandon(self) -> None:
        if self in self.connections and not self.transport.get_write_buffer_size():
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        if self._refused:
            return
        if self.waiting:
            self._await_head()
        super().data_received(data)
        if not self.waiting and self._head is not None:
            self._head.cancel()
            self._head = None
        self._body_bytes += len(data)
        if self.incomplete:
            self._await_body()

    def on_response_complete(self) -> None:
        """Continues after an answer has been written."""
        self._since = time.monotonic()
        if self._body is not None:
            self._body.cancel()
            self._body = None
        super().on_response_complete()
        if self.incomplete:
            self._await_body()
        if self._all_heard and self.waiting:
            self.transport.close()
        if self._leaving:
            self._part()

    def pause_writing(self) -> None:
        """Starts a deadline: the client does not read, or too slowly."""
        self._unread = self._unread or self.loop.call_later(READ_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Ends that deadline: the client reads."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuses data that is not an HTTP request, in the form of Connect's errors; the error being handled has the
        reason. Empty lines before a request are skipped (RFC 9112, 2.2)."""
        error = sys.exc_info()[1]
        why = str(error or "")
        if why == EMPTY_LINE:
            rest = self.conn.trailing_data[0].lstrip(b"\r\n")
            self.conn = BoundedHeads()
            if rest:
                super().data_received(rest)
        else:
            self._refuse(error.error_status_hint if isinstance(error, HeadRefused) else 400, _BYTES.sub(r"\1", why))

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._late)

    def _late(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408)
        else:
            self.transport.close()  # nothing was ever received

    def _await_body(self) -> None:
        if self._body is None:
            self._body_bytes = 0
            self._body = self.loop.call_later(REST_SECONDS if self.waiting else BODY_SECONDS, self._check_body)

    def _check_body(self) -> None:
        """Refuses a body that came too slowly, unless it is the application that does not read it."""
        self._body = None
        if not self.incomplete or self.transport.is_closing():
            return
        if self._body_bytes >= BODY_BYTES or self.flow.read_paused:
            self._await_body()
        elif self.waiting:  # it has its answer
            self.transport.close()
        else:
            self._refuse(408, f"the request's body brought {self._body_bytes} bytes in {BODY_SECONDS:g} s")

    def _refuse(self, status: int, why: str = "") -> None:
        """Answers, if no answer has begun, and closes. If the client still sends, the server reads on for a moment:
        otherwise the client might not see the answer."""
        self._stop_timers()
        if self.transport.is_closing():
            return
        reason, waiting = REASONS[status], self.waiting
        message = f"HTTP {status} {reason}"
        body = error_body(status, f"{message}: {why}" if why else message)
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        try:
            head = self.conn.send(h11.Response(status_code=status, headers=headers, reason=reason.encode()))
            self.transport.write((head or b"") + body)
        except h11.LocalProtocolError:
            waiting = False
        if waiting and self.transport.can_write_eof():
            self._refused = True
            self.transport.write_eof()
            self.loop.call_later(FAREWELL_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def _stop_timers(self) -> None:
        for timer in (self._head, self._unread, self._body):
            if timer is not None:
                timer.cancel()
        self._head = self._unread = self._body = None


def give_way(scope: Any) -> None:
    """Marks a request that is refused: of too many connections those with such requests are closed first."""
    scope.setdefault("state", {})[GIVES_WAY] = True


def most_connections() -> int:
    """Returns the most connections of one listener at once; most of this process's descriptors remain for other
    uses."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft < 0 else min(MAX_CONNECTIONS, max(16, soft // 4))
