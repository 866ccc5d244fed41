"""Heads of requests, as Connect's server takes them: of at most 8 KiB, and of HTTP/1.0 and 1.1 alone."""

from __future__ import annotations

import h11

MAX_HEAD_BYTES = 8192
VERSIONS = (b"1.0", b"1.1")


class HeadRefused(h11.RemoteProtocolError):
    """The request's head is none that is taken; `error_status_hint` is the status that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why, error_status_hint=status)


class BoundedHeads(h11.Connection):
    """A server's side of one connection. h11 by itself takes every version, and bounds only what is not yet whole."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)

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
    if len(request.target) > MAX_HEAD_BYTES:
        raise _too_large(in_first_line=True)
    size = len(request.method) + len(request.target) + len("  HTTP/1.1\r\n\r\n")
    if size + sum(len(name) + len(value) + len(": \r\n") for name, value in request.headers) > MAX_HEAD_BYTES:
        raise _too_large(in_first_line=False)


def _too_large(*, in_first_line: bool) -> HeadRefused:
    if in_first_line:
        return HeadRefused(414, f"the request's target is longer than {MAX_HEAD_BYTES} bytes")
    return HeadRefused(431, f"the request's head is larger than {MAX_HEAD_BYTES} bytes")
