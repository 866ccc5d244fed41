"""Wraps the handlers of a gRPC server, each by its kind: the shape of every interceptor of a server here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

Interceptor: TypeAlias = grpc.aio.ServerInterceptor
"""The base class of a server's interceptors. The first of a server is the outermost."""
Wrap: TypeAlias = Callable[[Any], Any]
"""Takes the function of a handler and returns the one to call in its place."""


@dataclass(frozen=True, slots=True)
class Wraps:
    """What goes around a handler, by its kind. The functions take a request, or a stream of requests, and the context
    of the call; they return an answer (`unary`, `upload`) or yield answers (`stream`, `both`)."""

    unary: Wrap
    stream: Wrap
    upload: Wrap
    both: Wrap


def wrapped(handler: Any, wraps: Wraps) -> Any:
    """Returns a handler as the wraps make it."""
    if handler.unary_unary:
        return handler._replace(unary_unary=wraps.unary(handler.unary_unary))
    if handler.unary_stream:
        return handler._replace(unary_stream=wraps.stream(handler.unary_stream))
    if handler.stream_unary:
        return handler._replace(stream_unary=wraps.upload(handler.stream_unary))
    return handler._replace(stream_stream=wraps.both(handler.stream_stream))


async def answers_of(answers: Any) -> AsyncIterator[Any]:
    """Yields the answers of a handler that yields them; only awaits a handler that writes them itself."""
    if hasattr(answers, "__aiter__"):
        async for answer in answers:
            yield answer
    else:
        await answers
