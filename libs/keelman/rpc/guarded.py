"""Authorizes each call before it is handled, by the service's own rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from keelman.model.errors import InvalidArgument
from keelman.rpc.identity import Identity, peer_identity

Change = Callable[[Message], None]
"""Changes an answer, or a message of an answer stream, in place; it may raise instead."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A call: /package.Service/Method, its metadata, the caller's identity from its certificate, and its request; None
    for a stream of requests."""

    method: str
    metadata: Mapping[str, str]
    identity: Identity | None
    request: Any


class Guarded(grpc.aio.ServerInterceptor):
    """Authorizes calls. `admit` lets a call through and may return a change for its answers, or raises one of our
    errors."""

    def __init__(self, admit: Callable[[Incoming], Awaitable[Change | None]]) -> None:
        self._admit = admit

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wraps a handler so that `admit` runs first. A method that is not served needs no check."""
        handler = await continuation(details)
        if handler is None:
            return None
        name: str = details.method
        if handler.unary_unary:
            return handler._replace(unary_unary=self._unary(name, handler.unary_unary))
        if handler.unary_stream:
            return handler._replace(unary_stream=self._stream(name, handler.unary_stream))
        if handler.stream_unary:
            return handler._replace(stream_unary=self._upload(name, handler.stream_unary))
        return handler._replace(stream_stream=self._both(name, handler.stream_stream))

    def _unary(self, name: str, inner: Any) -> Any:
        async def call(request: Any, context: Any) -> Any:
            change = await self._judge(name, request, context)
            return _changed(name, await inner(request, context), change)

        return call

    def _stream(self, name: str, inner: Any) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            change = await self._judge(name, request, context)
            async for answer in _answers(inner(request, context)):
                yield _changed(name, answer, change)

        return call

    def _upload(self, name: str, inner: Any) -> Any:
        async def call(requests: Any, context: Any) -> Any:
            await self._judge(name, None, context)
            return await inner(requests, context)

        return call

    def _both(self, name: str, inner: Any) -> Any:
        async def call(requests: Any, context: Any) -> AsyncIterator[Any]:
            await self._judge(name, None, context)
            async for answer in _answers(inner(requests, context)):
                yield answer

        return call

    async def _judge(self, name: str, request: Any, context: Any) -> Change | None:
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        given = _decoded(name, request, is_answer=False)
        return await self._admit(Incoming(name, metadata, peer_identity(context), given))


async def _answers(answers: Any) -> AsyncIterator[Any]:
    """Yields the answers of a handler that yields them; only awaits a handler that writes them itself."""
    if hasattr(answers, "__aiter__"):
        async for answer in answers:
            yield answer
    else:
        await answers


def _changed(name: str, answer: Any, change: Change | None) -> Any:
    """Returns the answer with the change applied, in its original form: bytes if the answer is only passed on."""
    if change is None:
        return answer
    message = _decoded(name, answer, is_answer=True)
    change(message)
    return message.SerializeToString() if isinstance(answer, bytes) else message


def _decoded(name: str, message: Any, *, is_answer: bool) -> Any:
    """Decodes a message that may be passed on as bytes. Raises InvalidArgument for bytes of another type."""
    if not isinstance(message, bytes):
        return message
    kind = _types(name)[is_answer]
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise InvalidArgument(f"the request is not a {kind.DESCRIPTOR.full_name}: {error}") from None


@cache
def _types(name: str) -> tuple[type[Message], type[Message]]:
    """Returns the message types of a method's requests and answers."""
    found = descriptor_pool.Default().FindMethodByName(name.removeprefix("/").replace("/", "."))
    return GetMessageClass(found.input_type), GetMessageClass(found.output_type)
