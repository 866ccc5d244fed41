"""Heads of requests, as Connect's server takes them: of at most 8 KiB, and of HTTP/1.0 and 1.1 alone.

One that a worker sends on has headers of that worker's beside: what the one has taken is not too large for the next.
"""

from __future__ import annotations

import h11

MAX_HEAD_BYTES = 8192
SENT_ON_BYTES = 1024  # more for a request that is sent on
SENT_ON = b"x-keelman-"
"""How the names of headers begin that a worker adds to what it sends on."""
VERSIONS = (b"1.0", b"1.1")


class HeadRefused(h11.RemoteProtocolError):
    """The request's head is none that is taken; `error_status_hint` is the status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why, error_status_hint=status)


class BoundedHeads(h11.Connection):
    """A server's side of one connection. h11 by itself takes every version, and bounds only what is not yet whole."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES + SENT_ON_BYTES)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event. Raises HeadRefused (414, 426, 431, 505), RemoteProtocolError for what is no HTTP."""
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
        status = 426 if request.http_version == b"2.0" else 505
        raise HeadRefused(status, f"HTTP/{request.http_version.decode()} is not spoken here: use HTTP/1.1")
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
