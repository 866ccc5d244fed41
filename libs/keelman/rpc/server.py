"""A gRPC server with health, reflection and our errors; every gRPC port of the product is opened here."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.model.workload import joined_address
from keelman.rpc.credentials import Newest, Pems, Tls
from keelman.rpc.enums import check_enums
from keelman.rpc.errors import to_status
from keelman.rpc.handlers import Interceptor, Wraps, answers_of, wrapped
from keelman.runtime.home import leave_sockets
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.ports import check_port, port_taken
from keelman.runtime.tls.refused_handshakes import HANDSHAKES

log = get_logger()

__all__ = [
    "INSTALLATION", "LOOPBACK", "MESH", "Authorize", "Context", "Health", "RpcService", "Tls", "check_drain",
    "checked_address", "drain", "is_local", "is_loopback", "peer_host", "port_taken", "serve",
]  # fmt: skip

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Authorize: TypeAlias = Callable[[str, Context], Awaitable[None]]
"""Called before each call with its method as /package.Service/Method; raises a KeelmanError to refuse the call."""
LOOPBACK, MESH, INSTALLATION = "loopback", "mesh", "installation"
"""The values of `trust`: no caller off loopback; any caller that a sidecar lets through; callers with a certificate of
the installation's CA."""
OF_INSTALLATION = ("state", "gateway", "agent")
"""The services whose `trust` may be INSTALLATION."""
MESSAGE_BYTES = 64 * 1024 * 1024
HEALTH = f"/{health.SERVICE_NAME}/"
LIVE = "live"
"""The name in gRPC's health protocol under which a process serves as soon as it answers, whatever others do."""
DRAINED_BYTES, DRAIN_SECONDS = 256 << 20, 30.0
"""Bounds for reading the rest of a refused stream of requests."""
KEEPALIVE = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
)


@dataclass(frozen=True, slots=True)
class RpcService:
    """One servicer and the generated function that registers it."""

    name: str
    add: Callable[[Any, Any], None]
    servicer: Any

    @classmethod
    def of(cls, servicer: Any) -> RpcService:
        """Returns the service of an object whose class is derived from a generated servicer, e.g.
        NodeServiceServicer."""
        base = next(base for base in type(servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))
        package, name = base.__module__.rpartition(".")[0], base.__name__
        add = getattr(sys.modules[base.__module__], f"add_{name}_to_server")
        return cls(f"{package}.{name.removesuffix('Servicer')}", add, servicer)


class Health:
    """The health switch of this process: NOT_SERVING until `ready()`."""

    def __init__(self, servicer: Any, names: Sequence[str]) -> None:
        """`names` are those of gRPC's health protocol that it sets; the process itself has the empty name."""
        self._servicer = servicer
        self._names = names

    def named(self, name: str) -> Health:
        """Returns a switch for another name of this process."""
        return Health(self._servicer, (name,))

    async def ready(self) -> None:
        """Reports that the process does its job."""
        await self._set(health_pb2.HealthCheckResponse.SERVING)

    async def unready(self) -> None:
        """Reports that the process does not do its job now."""
        await self._set(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def follow(self, is_ready: Callable[[], bool], every_seconds: float) -> None:
        """Checks periodically whether the process does its job and reports changes, until cancelled."""
        was_ready = True
        while True:
            await asyncio.sleep(every_seconds)
            if (ready := is_ready()) != was_ready:
                was_ready = ready
                await (self.ready() if was_ready else self.unready())
                log.info("serving_again" if was_ready else "not_serving")

    async def _set(self, status: Any) -> None:
        for name in self._names:
            await self._servicer.set(name, status)


def check_drain(service: str, seconds: float, grace_seconds: float) -> None:
    """Raises InvalidArgument where a process would still drain when its time to end is over and it is killed."""
    if seconds >= grace_seconds:
        raise InvalidArgument.of(f"{service}.drain_seconds", seconds, f"less than grace_seconds ({grace_seconds:g})")


async def drain(switches: Sequence[Health], seconds: float) -> None:
    """Reports NOT_SERVING, and returns when callers have had this time to find another process."""
    for switch in switches:
        await switch.unready()
    await asyncio.sleep(seconds)


def is_loopback(host: str) -> bool:
    """Returns whether the host is this one by its loopback address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local(context: Context) -> bool:
    """Returns whether a call came by a Unix socket: from a user with access to the socket's folder."""
    return str(context.peer()).startswith("unix:")


def peer_host(context: Context) -> str:
    """Returns the address that a call came from; empty if it did not come by TCP."""
    family, _, rest = unquote(str(context.peer())).partition(":")
    if family not in ("ipv4", "ipv6"):
        return ""
    address = ipaddress.ip_address(rest.rpartition(":")[0].strip("[]"))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def checked_address(service: str, host: str, *, tls: Tls | Newest | None, trust: str) -> None:
    """Raises InvalidArgument when gRPC would be open off loopback without TLS and without a mesh."""
    if tls is None and trust != MESH and not is_loopback(host):
        more = " or installation" if service in OF_INSTALLATION else ""
        raise InvalidArgument.of(
            f"{service}.host",
            host,
            f"a loopback address, or any address with tls_certificate and tls_key, or trust = mesh{more}",
        )


@contextlib.asynccontextmanager
async def serve(
    *services: RpcService,
    host: str = "127.0.0.1",
    port: int | None = None,
    socket: Path | None = None,
    tls: Tls | Newest | None = None,
    trust: str = "loopback",
    label: str = "grpc",
    grace_seconds: float = 2.0,
    authorize: Authorize | None = None,
    interceptors: Sequence[Interceptor] = (),
    calls_at_once: int | None = None,
) -> AsyncIterator[Health]:
    """Serves on host:port, on a Unix socket, or on both, until the block is left; then running calls get the grace to
    end.

    `tls` applies to the port only; if its files or its result change, later connections use the new ones. `authorize`
    may refuse all calls but those of health. `calls_at_once` bounds the open calls of one connection: clients keep
    further ones back. Yields the health switch; nothing is ready until its `ready()`. Raises Unavailable (PORT_TAKEN)
    if the port is taken, and InvalidArgument for an address that needs TLS or a file that TLS cannot use.
    """
    options = [*KEEPALIVE, ("grpc.so_reuseport", 0), ("grpc.http2.min_ping_interval_without_data_ms", 5_000)]
    if calls_at_once is not None:
        # With its overload protection the server turns calls away of clients that keep to the bound.
        options += [("grpc.max_concurrent_streams", calls_at_once), ("grpc.http.overload_protection", 0)]
    server = grpc.aio.server(interceptors=[_Errors(authorize), *interceptors], options=options)
    for service in services:
        service.add(service.servicer, server)
    names = [s.name for s in services]
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    switch = Health(servicer, ("", *names))
    await switch.unready()
    await servicer.set(LIVE, health_pb2.HealthCheckResponse.SERVING)
    if port is not None:
        checked_address(label, host, tls=tls, trust=trust)
        check_port(label, host, port)
        credentials = None if tls is None else _credentials(tls.newest(label) if isinstance(tls, Tls) else tls)
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
    secured = port if tls is not None else None
    try:
        with contextlib.nullcontext() if secured is None else HANDSHAKES.of_port(secured):
            yield switch
    finally:
        await servicer.enter_graceful_shutdown()
        await server.stop(grace_seconds)
        if socket is not None:
            socket.unlink(missing_ok=True)
            leave_sockets(socket.parent)


def _credentials(newest: Newest) -> grpc.ServerCredentials:
    """Returns credentials that follow `newest`. Whether clients must send certificates is fixed at the start."""
    current = newest()

    def configuration(pems: Pems) -> Any:
        return grpc.ssl_server_certificate_configuration([(pems.key, pems.chain)], pems.roots or None)

    def changed() -> Any:
        nonlocal current
        HANDSHAKES.begin()
        latest = newest()
        if latest == current:
            return None
        current = latest
        return configuration(latest)

    return grpc.dynamic_ssl_server_credentials(configuration(current), changed, bool(current.roots))


class _Errors(Interceptor):
    """Authorizes calls, and turns raised errors into statuses: the only place on the server side that does so."""

    def __init__(self, authorize: Authorize | None) -> None:
        self._authorize = authorize

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        call = _Call(details.method, None if details.method.startswith(HEALTH) else self._authorize)
        unary, stream, upload = (partial(wrap, call) for wrap in (_unary, _stream, _upload))
        return wrapped(handler, Wraps(unary, stream, upload, both=stream))


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    authorize: Authorize | None


@contextlib.asynccontextmanager
async def _errors_as_status(request: Any, context: Any, call: _Call) -> AsyncIterator[None]:
    """Reports an error raised within the block to the client as a status; a refused call does not enter the block. A
    request that is passed on as bytes, or a stream, is not checked here."""
    method = call.method
    try:
        if call.authorize is not None:
            await call.authorize(method, context)
        if isinstance(request, Message):
            check_enums(request)
        yield
    except KeelmanError as error:
        await context.abort_with_status(to_status(error))
    except grpc.aio.AbortError:
        raise
    except NotImplementedError:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{method} is not served")
    except Exception:
        log.exception("rpc_failed", method=method)
        await context.abort(grpc.StatusCode.INTERNAL, f"{method} failed: see the log of this service")


def _unary(about: _Call, inner: Any) -> Any:
    async def call(request: Any, context: Any) -> Any:
        async with _errors_as_status(request, context, about):
            return await inner(request, context)

    return call


def _upload(about: _Call, inner: Any) -> Any:
    async def call(requests: Any, context: Any) -> Any:
        async with _errors_as_status(requests, context, about):
            try:
                return await inner(requests, context)
            except KeelmanError:
                await _read_to_end(requests)
                raise

    return call


async def _read_to_end(requests: Any) -> None:
    """Reads the rest of a client's stream, within bounds: a client that gets the answer in the middle of a write takes
    that for a failed connection, in Python at least, and never sees the answer."""
    left = DRAINED_BYTES
    with contextlib.suppress(Exception):  # the stream's fate does not matter: the answer is known
        async with asyncio.timeout(DRAIN_SECONDS):
            async for request in requests:
                left -= len(request) if isinstance(request, bytes) else request.ByteSize()
                if left < 0:
                    return


def _stream(about: _Call, inner: Any) -> Any:
    async def call(request: Any, context: Any) -> Any:
        async with _errors_as_status(request, context, about):
            async for answer in answers_of(inner(request, context)):
                yield answer

    return call
