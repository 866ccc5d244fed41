"""A gRPC server with health, reflection and our errors; every gRPC port of the product is opened here."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.model.workload import joined_address
from keelman.rpc.errors import to_status
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.ports import check_port, port_taken

log = get_logger()

__all__ = ["Context", "Health", "Service", "Tls", "checked_address", "is_loopback", "port_taken", "serve"]

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
MESH = "mesh"
"""What `trust` is where a sidecar secures what leaves the host."""
MESSAGE_BYTES = 64 * 1024 * 1024
DRAINED_BYTES, DRAIN_SECONDS = 256 << 20, 30.0
"""Of a refused stream of requests."""
KEEPALIVE = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
)


@dataclass(frozen=True, slots=True)
class Service:
    """One servicer and the generated function that registers it."""

    name: str
    add: Callable[[Any, Any], None]
    servicer: Any


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate chain and private key of a server, PEM files."""

    certificate: Path
    key: Path

    @classmethod
    def of(cls, service: str, certificate: Path | None, key: Path | None) -> Tls | None:
        """A service's settings tls_certificate and tls_key; None without both. Raises InvalidArgument for one alone."""
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            missing = "tls_certificate" if certificate is None else "tls_key"
            raise InvalidArgument.of(f"{service}.{missing}", "", "a PEM file: tls_certificate and tls_key go together")
        return cls(certificate, key)


class Health:
    """Says whether this process is ready; NOT_SERVING until `ready()`."""

    def __init__(self, servicer: Any, names: Sequence[str]) -> None:
        self._servicer = servicer
        self._names = ("", *names)

    async def ready(self) -> None:
        """The process does its job."""
        await self._set(health_pb2.HealthCheckResponse.SERVING)

    async def unready(self) -> None:
        """The process does not do its job now."""
        await self._set(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def _set(self, status: Any) -> None:
        for name in self._names:
            await self._servicer.set(name, status)


def is_loopback(host: str) -> bool:
    """Whether the host is this one by its loopback address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_address(service: str, host: str, *, tls: Tls | None, trust: str) -> None:
    """Raises InvalidArgument when gRPC would be open off loopback without TLS and without a mesh."""
    if tls is None and trust != MESH and not is_loopback(host):
        raise InvalidArgument.of(
            f"{service}.host",
            host,
            "a loopback address, or any address with tls_certificate and tls_key, or trust = mesh",
        )


@contextlib.asynccontextmanager
async def serve(
    *services: Service,
    host: str = "127.0.0.1",
    port: int | None = None,
    socket: Path | None = None,
    tls: Tls | None = None,
    trust: str = "loopback",
    label: str = "grpc",
    grace_seconds: float = 2.0,
) -> AsyncIterator[Health]:
    """Serves on host:port, on a Unix socket, or on both, until the block is left; then lets calls end for the grace.

    Yields the health switch; nothing is ready until its `ready()`. Raises Unavailable (PORT_TAKEN) when the port is
    taken and InvalidArgument for an address that needs TLS.
    """
    server = grpc.aio.server(
        interceptors=[_Errors()],
        options=[*KEEPALIVE, ("grpc.so_reuseport", 0), ("grpc.http2.min_ping_interval_without_data_ms", 5_000)],
    )
    for service in services:
        service.add(service.servicer, server)
    names = [s.name for s in services]
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    switch = Health(servicer, names)
    await switch.unready()
    if port is not None:
        checked_address(label, host, tls=tls, trust=trust)
        check_port(label, host, port)
        credentials = None if tls is None else _credentials(label, tls)
        try:
            if credentials is None:
                server.add_insecure_port(joined_address(host, port))
            else:
                server.add_secure_port(joined_address(host, port), credentials)
        except RuntimeError:
            raise port_taken(label, host, port) from None
    if socket is not None:
        socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield switch
    finally:
        await servicer.enter_graceful_shutdown()
        await server.stop(grace_seconds)
        if socket is not None:
            socket.unlink(missing_ok=True)


def _credentials(label: str, tls: Tls) -> grpc.ServerCredentials:
    pems = []
    for setting, file in (("tls_key", tls.key), ("tls_certificate", tls.certificate)):
        try:
            pems.append(file.read_bytes())
        except OSError as error:
            raise InvalidArgument.of(
                f"{label}.{setting}", str(file), f"a readable PEM file ({error.strerror})"
            ) from None
    return grpc.ssl_server_credentials([(pems[0], pems[1])])


class _Errors(grpc.aio.ServerInterceptor):
    """Turns raised errors into statuses: the one place on the server side that knows how."""

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        if handler.unary_unary:
            return handler._replace(unary_unary=_unary(handler.unary_unary, details.method))
        if handler.unary_stream:
            return handler._replace(unary_stream=_stream(handler.unary_stream, details.method))
        if handler.stream_unary:
            return handler._replace(stream_unary=_upload(handler.stream_unary, details.method))
        if handler.stream_stream:
            return handler._replace(stream_stream=_stream(handler.stream_stream, details.method))
        return handler


@contextlib.asynccontextmanager
async def _errors_as_status(context: Any, method: str) -> AsyncIterator[None]:
    """Reports an error raised within to the client as a status."""
    try:
        yield
    except KeelmanError as error:
        await context.abort_with_status(to_status(error))
    except grpc.aio.AbortError:
        raise
    except Exception:
        log.exception("rpc_failed", method=method)
        await context.abort(grpc.StatusCode.INTERNAL, f"{method} failed: see the log of this service")


def _unary(inner: Any, method: str) -> Any:
    async def call(request: Any, context: Any) -> Any:
        async with _errors_as_status(context, method):
            return await inner(request, context)

    return call


def _upload(inner: Any, method: str) -> Any:
    async def call(requests: Any, context: Any) -> Any:
        async with _errors_as_status(context, method):
            try:
                return await inner(requests, context)
            except KeelmanError:
                await _drain(requests)
                raise

    return call


async def _drain(requests: Any) -> None:
    """Lets a client send what it is sending, within bounds: one that is answered in the middle of a write takes that
    for a fault of the connection, in Python at least, and never sees the answer."""
    left = DRAINED_BYTES
    with contextlib.suppress(Exception):  # whatever becomes of the stream: the answer is known
        async with asyncio.timeout(DRAIN_SECONDS):
            async for request in requests:
                left -= len(request) if isinstance(request, bytes) else request.ByteSize()
                if left < 0:
                    return


def _stream(inner: Any, method: str) -> Any:
    async def call(request: Any, context: Any) -> Any:
        async with _errors_as_status(context, method):
            result = inner(request, context)
            if hasattr(result, "__aiter__"):
                async for message in result:
                    yield message
            else:
                await result

    return call
