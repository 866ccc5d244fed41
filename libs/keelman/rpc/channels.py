"""Opens client channels; to be made after a fork, never before."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keelman.model.errors import InvalidArgument
from keelman.rpc.errors import from_rpc_error
from keelman.rpc.server import KEEPALIVE, MESH, is_loopback

Channel: TypeAlias = grpc.aio.Channel
DIRECT = (("grpc.enable_http_proxy", 0),)  # a proxy of the environment is for the web, not for our own services


def channel(
    address: str,
    *,
    root_certificates: bytes | None = None,
    server_name: str = "",
    peer: str = "",
    translate: bool = True,
) -> Channel:
    """A channel to host:port or unix:path: `async with` closes it. Errors of unary calls come as our classes.

    With `root_certificates` (PEM) it speaks TLS; `server_name` is then what the certificate must name, the address's
    host when empty. `peer` says in words who is there, for the message when it cannot be reached. Without `translate`
    errors come as grpc's own: for passing them on unchanged.
    """
    options: list[tuple[str, int | str]] = [
        *KEEPALIVE,
        *DIRECT,
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 5_000),  # how long one attempt to connect may take; refused ones end at once
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    interceptors = [_TranslateUnary(f"{peer} at {address}" if peer else address)] if translate else []
    if root_certificates is None:
        return grpc.aio.insecure_channel(address, options=options, interceptors=interceptors)
    if server_name:
        options.append(("grpc.ssl_target_name_override", server_name))
    credentials = grpc.ssl_channel_credentials(root_certificates)
    return grpc.aio.secure_channel(address, credentials, options=options, interceptors=interceptors)


def root_certificates(setting: str, file: Path | None) -> bytes | None:
    """The certificates of a PEM file that a setting names; None without one. Raises InvalidArgument."""
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidArgument.of(setting, str(file), f"a readable PEM file ({error.strerror})") from None


def checked_peer(setting: str, address: str, *, ca: str, certificates: bytes | None, trust: str) -> None:
    """Raises InvalidArgument when an address off loopback would be asked without TLS and without a mesh.

    `setting` names the one that has the address, `ca` the one that would have the certificates.
    """
    if address.startswith("unix:") or certificates is not None or trust == MESH:
        return
    if not is_loopback(address.rpartition(":")[0].strip("[]")):
        raise InvalidArgument.of(setting, address, f"a loopback address, or any with {ca}, or with trust = mesh")


async def is_serving(address: str, *, timeout_seconds: float = 2.0, service: str = "") -> bool:
    """Asks a process's health; False when it cannot be reached in time."""
    async with grpc.aio.insecure_channel(address, options=DIRECT) as plain:
        stub: Any = health_pb2_grpc.HealthStub(plain)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_seconds)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


class _TranslateUnary(grpc.aio.UnaryUnaryClientInterceptor):
    def __init__(self, peer: str) -> None:
        self._peer = peer

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        call = await continuation(client_call_details, request)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, peer=self._peer) from None
