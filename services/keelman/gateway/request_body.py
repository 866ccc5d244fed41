"""Reads the body of a request, whatever API it is for."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.types import Receive


class ClientGone(Exception):
    """The client closed its connection in the middle of its request."""


async def body_of(receive: Receive, limit: int, too_large: Exception) -> AsyncGenerator[bytes, None]:
    """The body in pieces, as it comes. Raises ClientGone, and `too_large` once there is more than the limit."""
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
