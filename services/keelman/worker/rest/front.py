"""The worker as it is seen from outside: its listeners open, with what guards the REST API behind them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.http import serve_http
from keelman.runtime.http_bodies import BoundedBodies
from keelman.runtime.logging import get_logger
from keelman.worker.properties.typed import WorkerProperties
from keelman.worker.rest.errors import STATUS_TEXTS, error_response
from keelman.worker.rest.listeners import Listener, client_tls, server_tls

log = get_logger()
EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class Front:
    """Where others find this worker: `url` ends with a slash, `worker` is its host:port."""

    url: str
    worker: str


def peer_tls(properties: WorkerProperties) -> ssl.SSLContext:
    """The context for requests to other workers; without https listeners one that trusts nobody.

    Raises InvalidArgument naming the property at fault.
    """
    if any(one.tls for one in properties.listeners.main):
        return client_tls(properties.raw)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextlib.asynccontextmanager
async def open_front(
    make: Callable[[Callable[[Starlette], ASGIApp]], ASGIApp], properties: WorkerProperties
) -> AsyncIterator[Front]:
    """Opens every listener. `make` gives the REST application, with a guard around its routes.

    Raises Unavailable naming the listener whose port is taken, InvalidArgument naming the property at fault.
    """
    guard, listeners = properties.basic_auth, properties.listeners
    whole = BoundedBodies(make(guard.around if guard else lambda routed: routed))
    app: ASGIApp = whole
    async with contextlib.AsyncExitStack() as stack:
        if listeners.admin is not None:
            app = _only(whole, admin=False)
            # As in Connect neither passwords nor origins nor headers are configured for these.
            apart = _only(BoundedBodies(make(lambda routed: routed)), admin=True)
            await _open(stack, apart, listeners.admin, properties, admin=True)
        ports = await _open(stack, properties.access.around(app), listeners.main, properties, admin=False)
        front = Front(listeners.url(ports), listeners.worker_id(ports))
        log.info("worker_listens", url=front.url, group=properties.group_id, listeners=len(ports))
        yield front


async def _open(
    stack: contextlib.AsyncExitStack,
    app: ASGIApp,
    listeners: tuple[Listener, ...],
    properties: WorkerProperties,
    *,
    admin: bool,
) -> dict[Listener, int]:
    key, ports = "admin.listeners" if admin else "listeners", {}
    tls = server_tls(properties.raw, admin=admin) if any(one.tls for one in listeners) else None
    for one in listeners:
        host = one.host or EVERYWHERE
        try:
            opened = serve_http(app, host=host, port=one.port, label="rest", tls=tls if one.tls else None)
            ports[one] = await stack.enter_async_context(opened)
        except Unavailable as error:
            raise Unavailable(
                f"{key}: port {one.port} on {host} is taken by another process: stop it, or set another free port",
                reason=error.reason,
                metadata=error.metadata,
            ) from None
        except KeelmanError as error:
            raise type(error)(error.message.replace("rest.host", key).replace("rest.port", key)) from None
    return ports


def _only(app: ASGIApp, *, admin: bool) -> ASGIApp:
    """The application with the admin endpoints alone, or with all others."""

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rstrip("/")
        if (path == "/admin" or path.startswith("/admin/")) == admin:
            await app(scope, receive, send)
        else:
            await error_response(404, STATUS_TEXTS[404])(scope, receive, send)

    return chosen
