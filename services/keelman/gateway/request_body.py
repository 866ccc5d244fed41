"""Reads the body of a request, for any API."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.types import Receive


class ClientGone(Exception):
    """The client closed its connection in the middle of its request."""


async def body_of(receive: Receive, limit: int, too_large: Exception) -> AsyncGenerator[bytes, None]:
    """Yields the body in pieces as they arrive. Raises ClientGone, and `too_large` once the limit is exceeded."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large
        if piece:
            yield piece
        more = message.get("more_body", False)
