"""Forwards whole services to another server, from their descriptors, byte for byte in both directions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from keelman.model.errors import InvalidArgument
from keelman.rpc.actors import ACTOR, actor_metadata
from keelman.rpc.channels import Channel
from keelman.rpc.errors import from_rpc_error, nobody_answered, unreachable, was_cut
from keelman.rpc.server import Context, RpcService

Check: TypeAlias = Callable[[str, str, Message], None]
_OWN_METADATA = ("grpc-", ":", "user-agent", "te", "content-type", "authorization", ACTOR)


def forwarded(
    service: ServiceDescriptor, channel: Channel, *, peer: str, check: Check, deadline_seconds: float
) -> RpcService:
    """Returns a service whose calls the other end of `channel` (made with translate=False) answers.

    Requests and answers are not decoded on the way: fields and error details that this version does not know survive.
    `check(service, method, request)` may refuse a request, of a stream the first; it raises our errors. Metadata, the
    actor and deadlines are passed on; `deadline_seconds` bounds unary calls that came without one. The error for a peer
    that does not answer names it: `peer` is e.g. "the state service at 127.0.0.1:7410".
    """
    way = _Way(channel, peer, check, deadline_seconds)
    handlers = {m.name: way.handler(m) for m in service.methods}
    generic = grpc.method_handlers_generic_handler(service.full_name, handlers)
    return RpcService(service.full_name, lambda _, server: server.add_generic_rpc_handlers((generic,)), None)


@dataclass(frozen=True, slots=True)
class _Way:
    channel: Channel
    peer: str
    check: Check
    deadline_seconds: float

    def handler(self, method: MethodDescriptor) -> Any:
        """Returns the handler of one method."""
        if method.client_streaming and method.server_streaming:
            raise TypeError(f"{method.full_name}: streams in both directions are not forwarded")
        service = method.containing_service.full_name
        path = f"/{service}/{method.name}"
        cls = GetMessageClass(method.input_type)

        def checked(request: bytes) -> None:
            try:
                message = cls.FromString(request)
            except DecodeError as error:
                raise InvalidArgument(f"the request is not a {method.input_type.full_name}: {error}") from None
            self.check(service, method.name, message)

        async def unary(request: bytes, context: Context) -> bytes:
            checked(request)
            left = context.time_remaining()
            call: Any = self.channel.unary_unary(path)
            try:
                answer: bytes = await call(
                    request, metadata=_passed_on(context), timeout=self.deadline_seconds if left is None else left
                )
            except grpc.aio.AioRpcError as error:
                await self._refuse(context, error)
                raise
            return answer

        async def stream(request: bytes, context: Context) -> AsyncIterator[bytes]:
            checked(request)
            open_stream: Any = self.channel.unary_stream(path)
            call = open_stream(request, metadata=_passed_on(context), timeout=context.time_remaining())
            try:
                async for message in call:
                    yield message
            except grpc.aio.AioRpcError as error:
                await self._refuse(context, error)
            finally:
                call.cancel()  # the client may have gone while a message was on its way to it, and not while waiting

        async def upload(requests: AsyncIterator[bytes], context: Context) -> bytes:
            open_stream: Any = self.channel.stream_unary(path)
            call = open_stream(metadata=_passed_on(context), timeout=context.time_remaining())
            passing, answering = asyncio.ensure_future(_pass_on(requests, call, checked)), asyncio.ensure_future(call)
            try:
                await asyncio.wait([passing, answering], return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    await passing
                answer: bytes = await answering
            except grpc.aio.AioRpcError as error:
                await self._refuse(context, error)
                raise
            finally:
                passing.cancel()
                call.cancel()
            return answer

        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(upload)
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)

    async def _refuse(self, context: Context, error: grpc.aio.AioRpcError) -> None:
        if nobody_answered(error):
            raise unreachable(error, self.peer) from None
        if was_cut(error):
            raise from_rpc_error(error, peer=self.peer) from None
        await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata() or ()))


async def _pass_on(requests: AsyncIterator[bytes], call: Any, checked: Callable[[bytes], None]) -> None:
    """Writes a client's requests to another call, as fast as that takes them, until the other end has answered."""
    is_first = True
    async for request in requests:
        if is_first:
            checked(request)
            is_first = False
        try:
            await call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # its answer has the reason
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        await call.done_writing()


def _passed_on(context: Context) -> tuple[tuple[str, str | bytes], ...]:
    passed = ((k, v) for k, v in context.invocation_metadata() or () if not k.startswith(_OWN_METADATA))
    return (*passed, *actor_metadata())
