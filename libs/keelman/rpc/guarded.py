"""Authorizes each call before it is handled, by the service's own rules: strangers before their request is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from keelman.model.errors import DeadlineExceeded, InvalidArgument, KeelmanError
from keelman.rpc.errors import to_status
from keelman.rpc.handlers import Interceptor, Wraps, answers_of, wrapped
from keelman.rpc.identity import Identity, peer_identity
from keelman.rpc.server import peer_host

Change = Callable[[Message], None]
"""Changes an answer, or a message of an answer stream, in place; it may raise instead."""
Judge = Callable[[], Awaitable[Change | None]]
"""Judges the caller of one call; raises one of our errors to refuse it."""
Screen = Callable[[str, Mapping[str, str]], object | None]
"""Judges a caller by method and metadata alone. Returns the caller, None for one without known credentials; raises one
of our errors if its request must not be read at all."""
Refusal = Callable[[KeelmanError, str], Awaitable[None]]
"""Is called before a call is refused, with the error and the address of the caller; it may delay the answer."""
Turn = Callable[[], Awaitable[None]]
"""Returns when the next stranger may be refused."""
RECHECK_SECONDS = 3.0
"""How often the caller of an open stream is judged again: rights may have been taken away."""
NONE: Mapping[str, str] = MappingProxyType({})
STRANGER_BYTES = 64 << 10
"""The most bytes of a stranger's request that are decoded."""
STRANGERS_AT_ONCE = 4
"""The number of strangers' requests to one method that are read at once: each may have the size of the server's largest
message. Of more, the oldest is given up."""
STRANGER_SECONDS = 10.0
"""The time for a stranger's request to arrive."""


class Incoming(NamedTuple):
    """A call: /package.Service/Method, its metadata, the caller's identity from its certificate, and its request, which
    may be bytes, see `request_of`; None for a stream of requests. `caller`: what the screen has returned just now,
    then without metadata and identity."""

    method: str
    metadata: Mapping[str, str]
    identity: Identity | None
    request: Any
    caller: Any = None


class _Call(NamedTuple):
    """A method, and the caller that the screen has returned."""

    method: str
    caller: Any = None


class Guarded(Interceptor):
    """Authorizes calls. `admit` lets a call through and may return a change for its answers, or raises one of our
    errors."""

    def __init__(
        self,
        admit: Callable[[Incoming], Awaitable[Change | None]],
        screen: Screen | None = None,
        on_refusal: Refusal | None = None,
        turn: Turn | None = None,
    ) -> None:
        """`screen` judges callers before their request is read; None where only known callers can connect. A caller
        that it refuses waits for its `turn` first."""
        self._admit = admit
        self._screen = screen
        self._on_refusal = on_refusal
        self._turn = turn
        self._reading: dict[str, list[asyncio.Timeout]] = {}

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wraps a handler so that `admit` runs first. A method that is not served needs no check."""
        handler = await continuation(details)
        if handler is None:
            return None
        name: str = details.method
        if self._screen is None:
            return self._judged(_Call(name), handler)
        try:
            caller = self._screen(name, _texts(details.invocation_metadata))
        except KeelmanError as error:
            if self._turn is not None:
                await self._turn()  # here, where a waiting call costs less memory than within a handler
            return self._refusing(error)
        if caller is None and not handler.request_streaming:
            return self._bounded(name, handler)
        return self._judged(_Call(name, caller), handler)

    def _judged(self, about: _Call, handler: Any) -> Any:
        if handler.unary_unary:
            return handler._replace(unary_unary=self._unary(about, handler.unary_unary))
        kinds = (self._unary, self._stream, self._upload, self._both)
        return wrapped(handler, Wraps(*(partial(wrap, about) for wrap in kinds)))

    def _unary(self, about: _Call, inner: Any) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                change = await self._judge(about, request, context)
            except KeelmanError as error:
                await self._delay(error, context)
                raise
            answer = await inner(request, context)
            return answer if change is None else _changed(about.method, answer, change)

        return call

    def _stream(self, about: _Call, inner: Any) -> Any:
        name = about.method

        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            first = await self._admitted(about, request, context)
            judge = partial(self._judge, _Call(name), request, context)
            async for answer, change in _rechecked(answers_of(inner(request, context)), judge, first):
                yield _changed(name, answer, change)

        return call

    def _upload(self, about: _Call, inner: Any) -> Any:
        async def call(requests: Any, context: Any) -> Any:
            change = await self._admitted(about, None, context)
            judge = partial(self._judge, _Call(about.method), None, context)
            return await inner((request async for request, _ in _rechecked(requests, judge, change)), context)

        return call

    def _both(self, about: _Call, inner: Any) -> Any:
        async def call(requests: Any, context: Any) -> AsyncIterator[Any]:
            change = await self._admitted(about, None, context)
            judge = partial(self._judge, _Call(about.method), None, context)
            async for answer, _ in _rechecked(answers_of(inner(requests, context)), judge, change):
                yield answer

        return call

    def _bounded(self, name: str, handler: Any) -> Any:
        """Returns a handler for strangers: it takes one request as a stream, which is not read before there is room."""

        async def call(requests: Any, context: Any) -> AsyncIterator[Any]:
            request = await self._small_request(name, requests)
            if handler.request_deserializer is not None:
                request = request_of(name, request)
            if handler.unary_unary:
                yield await self._unary(_Call(name), handler.unary_unary)(request, context)
                return
            async for answer in self._stream(_Call(name), handler.unary_stream)(request, context):
                yield answer

        return grpc.stream_stream_rpc_method_handler(call, None, handler.response_serializer)

    async def _small_request(self, name: str, requests: Any) -> bytes:
        """Returns a stranger's request. Raises InvalidArgument for a large or missing one, DeadlineExceeded for a slow
        one: at once if it is the oldest of too many."""
        reading, loop = self._reading.setdefault(name, []), asyncio.get_running_loop()
        limit = asyncio.timeout(STRANGER_SECONDS)
        try:
            async with limit:
                if len(reading) >= STRANGERS_AT_ONCE:
                    reading.pop(0).reschedule(loop.time())
                reading.append(limit)
                request: bytes | None = await anext(aiter(requests), None)
        except TimeoutError:
            raise DeadlineExceeded("the request did not arrive in time") from None
        finally:
            if limit in reading:
                reading.remove(limit)
        if request is None or len(request) > STRANGER_BYTES:
            size = "none" if request is None else f"{len(request)} bytes"
            raise InvalidArgument.of("request", size, f"one of at most {STRANGER_BYTES} bytes")
        return request

    async def _admitted(self, about: _Call, request: Any, context: Any) -> Change | None:
        """Judges a call at its beginning; a refusal may be delayed."""
        try:
            return await self._judge(about, request, context)
        except KeelmanError as error:
            await self._delay(error, context)
            raise

    async def _delay(self, error: KeelmanError, context: Any) -> None:
        if self._on_refusal is not None:
            await self._on_refusal(error, peer_host(context))

    def _refusing(self, error: KeelmanError) -> Any:
        """Returns a handler that refuses a call and reads nothing of its request. It raises nothing: grpc keeps an
        error that ends a call, and its traceback, until all objects are looked through for garbage."""
        error.__traceback__ = None

        async def call(requests: Any, context: Any) -> None:
            await self._delay(error, context)
            status = to_status(error)
            context.set_code(status.code)
            context.set_details(status.details)
            context.set_trailing_metadata(status.trailing_metadata)

        return grpc.stream_stream_rpc_method_handler(call)

    async def _judge(self, about: _Call, request: Any, context: Any) -> Change | None:
        name, caller = about
        if caller is not None:
            return await self._admit(Incoming(name, NONE, None, request, caller))
        return await self._admit(Incoming(name, _texts(context.invocation_metadata()), peer_identity(context), request))


def _texts(metadata: Any) -> dict[str, str]:
    return {key: value for key, value in metadata or () if isinstance(value, str)}


async def _rechecked(
    messages: AsyncIterator[Any], judge: Judge, change: Change | None
) -> AsyncIterator[tuple[Any, Change | None]]:
    """Yields the messages of a stream, each with the change to make to it: at first `change`, of the judgement before
    the stream. Judges the caller again every RECHECK_SECONDS, also while no message comes; raises the error of that
    judgement. A stream whose source is cancelled ends as cancelled."""
    clock = asyncio.get_running_loop().time
    judged_at = clock()
    queue: asyncio.Queue[Any] = asyncio.Queue(1)

    async def pass_on() -> None:  # one task has the whole stream: it may hold time limits and tasks of its own
        async for message in messages:
            await queue.put(message)

    passing = asyncio.create_task(pass_on())
    getting = asyncio.create_task(queue.get())
    try:
        while True:
            left = max(0.0, judged_at + RECHECK_SECONDS - clock())
            await asyncio.wait((passing, getting), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if clock() >= judged_at + RECHECK_SECONDS:
                change, judged_at = await judge(), clock()
            if getting.done():
                yield getting.result(), change
                getting = asyncio.create_task(queue.get())
            elif passing.done() and queue.empty():
                passing.result()
                return
    finally:
        passing.cancel()
        getting.cancel()
        await asyncio.wait((passing, getting))


def _changed(name: str, answer: Any, change: Change | None) -> Any:
    """Returns the answer with the change applied, in its original form: bytes if the answer is only passed on."""
    if change is None:
        return answer
    message = _decoded(name, answer, is_answer=True)
    change(message)
    return message.SerializeToString() if isinstance(answer, bytes) else message


def request_of(name: str, request: Any) -> Any:
    """Returns a request as a message, also if it is passed on as bytes. Raises InvalidArgument for bytes of another
    type."""
    return _decoded(name, request, is_answer=False)


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
