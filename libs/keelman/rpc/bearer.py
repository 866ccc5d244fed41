"""A client's token, sent with each of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc


def bearer(token: str) -> Sequence[grpc.aio.ClientInterceptor]:
    """Interceptors of a channel whose calls of every kind carry the token; none for an empty one."""
    metadata = ("authorization", f"Bearer {token}")
    return [kind(metadata) for kind in (_Unary, _Stream, _Upload, _Both)] if token else []


class _Adding:
    def __init__(self, metadata: tuple[str, str]) -> None:
        self._metadata = metadata

    async def _add(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), self._metadata)
        return await continuation(details._replace(metadata=metadata), request)


class _Unary(_Adding, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await self._add(continuation, client_call_details, request)


class _Stream(_Adding, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await self._add(continuation, client_call_details, request)


class _Upload(_Adding, grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await self._add(continuation, client_call_details, request_iterator)


class _Both(_Adding, grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return await self._add(continuation, client_call_details, request_iterator)
