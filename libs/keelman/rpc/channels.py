"""Opens client channels; they are created after a fork, never before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import grpc

from keelman.model.errors import InvalidArgument
from keelman.rpc.bearer import bearer
from keelman.rpc.credentials import Pems, check_roots
from keelman.rpc.errors import from_rpc_error
from keelman.rpc.routing.any_of import AnyOf
from keelman.rpc.server import KEEPALIVE, MESH, is_loopback

Channel: TypeAlias = grpc.aio.Channel
DIRECT = (("grpc.enable_http_proxy", 0),)  # a proxy of the environment is for the web, not for our own services
PROBED = {"grpc.keepalive_time_ms": 6_000, "grpc.keepalive_timeout_ms": 2_000}
"""Of a probed channel: servers close connections that ping more often than every 5 s."""


def channel(
    address: str,
    *,
    root_certificates: bytes | None = None,
    server_name: str = "",
    peer: str = "",
    translate: bool = True,
    token: str = "",
    client: Pems | None = None,
    apart: bool = False,
    probed: bool = False,
) -> Channel:
    """Returns a channel to host:port or unix:path: `async with` closes it. Errors of unary calls come as our classes.

    With several addresses, separated by commas, each call goes to a reachable one. With `root_certificates` (PEM) it
    speaks TLS to host:port; `server_name` is then the name that the certificate must have, the address's host if empty;
    `client` has the certificate for the other side. `peer` describes the other side in the message when it cannot be
    reached. Without `translate` errors come as grpc's own: for passing them on unchanged. A `token` goes with every
    call. `apart` gives it connections of its own. A shared connection also shares the back-off between tries to
    connect: frequent tries of one user would delay the calls of all others.
    """
    if len(several := addresses(address)) > 1:
        open_one = partial(
            channel,
            root_certificates=root_certificates,
            server_name=server_name,
            peer=peer,
            token=token,
            client=client,
            apart=apart,
            probed=probed,
        )
        return AnyOf([open_one(target, translate=translate) for target in several], probed=probed)
    options: list[tuple[str, int | str]] = [
        *(dict(KEEPALIVE) | (PROBED if probed else {})).items(),
        *DIRECT,
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 5_000),  # how long one attempt to connect may take; refused ones end at once
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.use_local_subchannel_pool", int(apart)),
    ]
    translating = [_TranslateUnary(f"{peer} at {address}" if peer else address)] if translate else []
    interceptors = [*translating, *bearer(token)]
    if root_certificates is None or address.startswith("unix:"):
        return grpc.aio.insecure_channel(address, options=options, interceptors=interceptors)
    if server_name:
        options.append(("grpc.ssl_target_name_override", server_name))
    shown = (client.key, client.chain) if client is not None and client.chain else (None, None)
    credentials = grpc.ssl_channel_credentials(root_certificates, *shown)
    return grpc.aio.secure_channel(address, credentials, options=options, interceptors=interceptors)


def addresses(text: str) -> list[str]:
    """Returns the addresses of a comma-separated text."""
    return [part.strip() for part in text.split(",")]


def root_certificates(setting: str, file: Path | None) -> bytes | None:
    """Returns the certificates of a PEM file that a setting names; None without a file. Raises InvalidArgument."""
    if file is None:
        return None
    try:
        pem = file.read_bytes()
    except OSError as error:
        raise InvalidArgument.of(setting, str(file), f"a readable PEM file ({error.strerror})") from None
    check_roots(setting, file, pem)
    return pem


def checked_peer(setting: str, address: str, *, ca: str, certificates: bytes | None, trust: str) -> None:
    """Raises InvalidArgument where calls to an address off loopback would have neither TLS nor a mesh, and for an empty
    address among several.

    `setting` is the setting with the address, or with several, separated by commas; `ca` the setting for the
    certificates.
    """
    for target in addresses(address):
        if not target:
            raise InvalidArgument.of(setting, address, "host:port, or several with commas between")
        if target.startswith("unix:") or certificates is not None or trust == MESH:
            continue
        if not is_loopback(target.rpartition(":")[0].strip("[]")):
            raise InvalidArgument.of(setting, target, f"a loopback address, or any with {ca}, or with trust = mesh")


class _TranslateUnary(grpc.aio.UnaryUnaryClientInterceptor):
    def __init__(self, peer: str) -> None:
        self._peer = peer

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        call = await continuation(client_call_details, request)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, peer=self._peer) from None
