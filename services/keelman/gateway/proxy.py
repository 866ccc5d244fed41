"""`/clusters/{name}/...`: a worker cluster's Connect REST API under the gateway's address."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from urllib.parse import unquote_to_bytes, urlsplit

import httpx
from starlette.types import Receive, Scope, Send

from keelman.gateway.caller import CALLER
from keelman.gateway.request_body import ClientGone, body_of
from keelman.gateway.state import State
from keelman.model.errors import Exhausted, KeelmanError, NotFound
from keelman.model.rules.names import checked_name
from keelman.runtime.http.errors import error_body
from keelman.runtime.logs.logging import get_logger
from keelman.workers.rest.access import Logins
from keelman.workers.rest.client import Outgoing, Rest, status_of

log = get_logger()

# RFC 9110, 7.6.1: meant for one connection only. Our own server answers Expect.
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
NOT_FORWARDED = HOP_BY_HOP | {b"host", b"expect"}

Headers = Sequence[tuple[bytes, bytes]]


class Proxy:
    """An ASGI application. Answers are passed on unchanged except Location, which is changed to lead through the proxy.

    Its own errors have Connect's form: 404 unknown worker cluster, 413 body too large, 503 no running worker, 504 no
    answer in time.
    """

    def __init__(self, state: State, rest: Rest, logins: Logins, *, max_body_bytes: int) -> None:
        """`logins` are used for callers known to the gateway, whose own credentials are not passed on."""
        self._state = state
        self._rest = rest
        self._logins = logins
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        async with AsyncExitStack() as stack:
            try:
                # Routing is on the raw path: an encoded slash belongs to a connector's name.
                segment, rest = split_path(scope["raw_path"])
                cluster = checked_cluster(named_cluster(segment))
                headers = scope["headers"]
                self._check_length(headers)
                passed = [(k, v) for k, v in headers if k not in not_forwarded(headers)]
                query = b"?" + scope["query_string"] if scope["query_string"] else b""
                response = await stack.enter_async_context(
                    self._rest.send(
                        cluster,
                        Outgoing(
                            scope["method"],
                            b"/" + rest + query,
                            [*self._login(scope, cluster), *passed],
                            (lambda: body_of(receive, self._limit, self._too_large())) if has_body(headers) else None,
                        ),
                    )
                )
                prefix = b"/clusters/" + segment
                answer = [
                    (k, self._location(v, cluster, prefix) if k.lower() == b"location" else v)
                    for k, v in response.headers.raw
                    if k.lower() not in not_forwarded(response.headers.raw)
                ]
            except ClientGone:
                return
            except KeelmanError as error:
                await send_error(send, status_of(error), error.message)
                return
            await send({"type": "http.response.start", "status": response.status_code, "headers": answer})
            try:
                async for chunk in response.aiter_raw():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except httpx.TransportError as error:
                # Too late for a status: the connection ends without the body's end, which the client sees.
                log.warning("worker_broke_off", url=str(response.url), error=repr(error))
                return
            await send({"type": "http.response.body", "body": b""})

    def _login(self, scope: Scope, cluster: str) -> Headers:
        """Returns the authorization header for the worker, if the gateway uses its own login there."""
        login = self._logins.of(cluster) if CALLER in scope else None
        return [] if login is None else [(b"authorization", login.authorization)]

    def _check_length(self, headers: Headers) -> None:
        for key, value in headers:
            if key == b"content-length" and int(value) > self._limit:
                raise self._too_large()

    def _too_large(self) -> Exhausted:
        return Exhausted(f"the request's body is larger than {self._limit} bytes (gateway.max_body_bytes)")

    def _location(self, location: bytes, cluster: str, prefix: bytes) -> bytes:
        """Returns a location that leads through the proxy if it leads to a worker of the cluster, else unchanged."""
        parts = urlsplit(location.decode("latin-1"))
        if parts.netloc and f"{parts.scheme}://{parts.netloc}" not in self._state.known_urls(cluster):
            return location
        path = parts._replace(scheme="", netloc="").geturl().encode("latin-1")
        return prefix + path if path.startswith(b"/") else location


def split_path(raw: bytes) -> tuple[bytes, bytes]:
    """Returns the segment of a path that names a worker cluster, and the rest after it, undecoded."""
    _, _, segment, *rest = raw.split(b"/", 3) + [b""] * 2
    return segment, rest[0]


def named_cluster(segment: bytes) -> str:
    """Returns the name of the worker cluster in a segment."""
    return unquote_to_bytes(segment).decode("utf-8", "replace")


def checked_cluster(name: str) -> str:
    """Returns the name. Raises NotFound for a name that no worker cluster can have."""
    try:
        return checked_name("cluster", name)
    except KeelmanError as error:
        raise NotFound(f"no worker cluster {name!r}: {error.message}") from None


def has_body(headers: Headers) -> bool:
    """Tells whether the head of a request announces a body."""
    return any(k == b"transfer-encoding" or (k == b"content-length" and int(v) > 0) for k, v in headers)


def not_forwarded(headers: Headers) -> frozenset[bytes]:
    """Returns the lower-case names of the headers that are not passed on, among them the headers
    that Connection names."""
    named = b",".join(v for k, v in headers if k.lower() == b"connection")
    return NOT_FORWARDED | {n.strip().lower() for n in named.split(b",") if n.strip()}


async def send_error(send: Send, status: int, message: str) -> None:
    """Sends an error in Connect's form."""
    body = error_body(status, message)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
