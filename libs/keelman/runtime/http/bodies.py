"""Reads request bodies completely before an application sees the request, with limits of size, time and their sum."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from typing import Any
from urllib.parse import unquote

from keelman.runtime.http.errors import error_body

MAX_BODY_BYTES = 16 * 1024 * 1024
TOGETHER_BYTES = 4 * MAX_BODY_BYTES
BODY_SECONDS = 60.0
DRAIN_SECONDS = 5.0
ANNOUNCING = (b"content-length", b"transfer-encoding")
TEXTS = {
    400: "HTTP 400 Bad Request",
    408: "HTTP 408 Request Timeout",
    413: "HTTP 413 Request Entity Too Large",
    429: "HTTP 429 Too Many Requests",
}
_ABSOLUTE = re.compile(rb"https?://([^/]*)(/.*)?", re.IGNORECASE)


class BodyRefused(Exception):
    """The request's body cannot be read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def unambiguous(app: Any) -> Any:
    """Returns the application, wrapped to refuse requests that others, e.g. a proxy, may read differently: with a body
    that is announced twice (RFC 9112, 6.1), or with a target that names another host than its header does. A target
    that names the same host (3.2.2) is shortened to its path."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        headers = scope["headers"]
        if len({k for k, _ in headers if k in ANNOUNCING}) > 1:
            await _refuse(send, BodyRefused(400, "both Content-Length and Transfer-Encoding are set"))
            return
        if whole := _ABSOLUTE.fullmatch(scope["raw_path"]):
            if whole[1].lower() not in [v.lower() for k, v in headers if k == b"host"]:
                await _refuse(send, BodyRefused(400, "the request's target names another host than the header Host"))
                return
            path = whole[2] or b"/"
            scope = {**scope, "raw_path": path, "path": unquote(path.decode("ascii"))}
        await app(scope, receive, send)

    return checked


class BoundedBodies:
    """An ASGI application around another. It refuses in the form of Connect's errors, and closes the connection.

    408: not complete in time. 413: too large. 429: too many large bodies at once.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serves one request."""
        body = bytearray()
        try:
            try:
                if not await self._read(scope["headers"], receive, body):
                    return  # the client has gone
            except BodyRefused as refused:
                if body or (b"expect", b"100-continue") not in scope["headers"]:  # else the client waits for a 100
                    await _drain(receive)
                await _refuse(send, refused)
                return
            messages = [{"type": "http.request", "body": bytes(body), "more_body": False}]

            async def once() -> Any:
                return messages.pop() if messages else await receive()

            await self._app(scope, once, send)
        finally:
            self._held -= len(body)

    async def _read(self, headers: list[tuple[bytes, bytes]], receive: Any, body: bytearray) -> bool:
        """Fills `body`. Returns False if the client goes away before its end."""
        announced = {k: v for k, v in headers if k in ANNOUNCING}
        if not announced:
            return True
        if int(announced.get(b"content-length", b"0")) > MAX_BODY_BYTES:
            raise BodyRefused(413, f"the request's body is larger than {MAX_BODY_BYTES} bytes")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._fill(body, receive)
        except TimeoutError:
            raise BodyRefused(408, f"the request's body was not whole within {BODY_SECONDS:g} s") from None

    async def _fill(self, body: bytearray, receive: Any) -> bool:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return False
            chunk = message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > MAX_BODY_BYTES:
                raise BodyRefused(413, f"the request's body is larger than {MAX_BODY_BYTES} bytes")
            if self._held > TOGETHER_BYTES:
                raise BodyRefused(429, "too many large requests at once")
            if not message.get("more_body", False):
                return True


async def _drain(receive: Any) -> None:
    """Reads on for a while and drops the data: a client that still sends when we close would not see the answer."""
    end = time.monotonic() + DRAIN_SECONDS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while time.monotonic() < end:
                message = await receive()
                if not message.get("more_body", False):
                    return


async def _refuse(send: Any, refused: BodyRefused) -> None:
    body = error_body(refused.status, f"{TEXTS[refused.status]}: {refused}")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
