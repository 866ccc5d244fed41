"""Opens the worker to the outside: its listeners, with the guards of the REST API behind them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.http.bodies import BoundedBodies
from keelman.runtime.http.server import Admits, all_peers, serve_http
from keelman.runtime.logs.logging import get_logger
from keelman.worker.config.source import PROPERTY
from keelman.worker.rest.answers import STATUS_TEXTS, error_response, write_answer
from keelman.worker.rest.front.access import with_access
from keelman.worker.rest.front.basic_auth import guarded
from keelman.workers.properties.listeners import METRICS, ListenerAddress, client_tls, server_tls
from keelman.workers.properties.typed import WorkerProperties

log = get_logger()
EVERYWHERE = "0.0.0.0"
WILDCARDS = (EVERYWHERE, "::")
LAST_SECONDS = 10.0  # for requests that have begun when the worker has to stop


@dataclass(frozen=True, slots=True)
class Front:
    """The address of this worker for others: `url` ends with a slash, `worker` is its host:port."""

    url: str
    worker: str


def peer_tls(properties: WorkerProperties) -> ssl.SSLContext:
    """Returns the context for requests to other workers; without https listeners, a context that trusts no server.

    Raises InvalidArgument naming the property at fault.
    """
    if any(listener.tls for listener in properties.listeners.main):
        return client_tls(properties.raw)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextlib.asynccontextmanager
async def open_front(
    make: Callable[[Callable[[Starlette], ASGIApp]], ASGIApp], properties: WorkerProperties, admits: Admits = all_peers
) -> AsyncIterator[Front]:
    """Opens every listener, and closes them all at once. `make` returns the REST application, with a guard around its
    routes; `admits` refuses connections to all listeners.

    Raises Unavailable naming the listener whose port is taken, InvalidArgument naming the property at fault.
    """
    users, listeners = properties.basic_auth, properties.listeners
    whole = _whole(make(partial(guarded, users) if users else lambda routed: routed))
    app: ASGIApp = whole
    opened: list[contextlib.AsyncExitStack] = []
    try:
        if listeners.admin is not None:
            app = _only(whole, lambda path: not _is_admin(path))
        # As in Connect, separate listeners have no configured passwords, origins or headers.
        bare = _whole(make(lambda routed: routed)) if listeners.admin or listeners.metrics else whole
        opening = partial(_open, opened, properties=properties, admits=admits)
        await opening(_only(bare, _is_admin), listeners.admin or (), "admin.listeners")
        await opening(_only(bare, lambda path: path == "/metrics"), listeners.metrics, METRICS)
        ports = await opening(with_access(properties.access, app), listeners.main, "listeners")
        front = Front(listeners.url(ports), listeners.worker_id(ports))
        log.info("worker_listens", url=front.url, group=properties.group_id, listeners=len(ports))
        if listeners.advertised.host in WILDCARDS and not properties.standalone:
            note = "no other host reaches it there, and workers of two hosts are taken for one"
            log.warning("worker_advertises_no_host", url=front.url, note=f"{note}: set rest.advertised.host.name")
        yield front
    finally:
        await asyncio.gather(*(client.aclose() for client in opened))


def _whole(app: ASGIApp) -> ASGIApp:
    """Returns the application for whole bodies, which answers to the last."""
    return partial(write_answer, BoundedBodies(app))


async def _open(
    opened: list[contextlib.AsyncExitStack],
    app: ASGIApp,
    listeners: tuple[ListenerAddress, ...],
    key: str,
    *,
    properties: WorkerProperties,
    admits: Admits,
) -> dict[ListenerAddress, int]:
    ports: dict[ListenerAddress, int] = {}
    admin = key.startswith("admin.")
    tls = server_tls(properties.raw, admin=admin) if any(listener.tls for listener in listeners) else None
    for listener in listeners:
        host = listener.host or EVERYWHERE
        try:
            served = serve_http(
                app,
                host=host,
                port=listener.port,
                label="rest",
                tls=tls if listener.tls else None,
                grace_seconds=LAST_SECONDS,
                admits=admits,
            )
            stack = contextlib.AsyncExitStack()
            ports[listener] = await stack.enter_async_context(served)
            opened.append(stack)
        except Unavailable as error:
            raise Unavailable(
                f"{key}: port {listener.port} on {host} is taken by another process: stop it, or set another free port",
                reason=error.reason,
                metadata={**error.metadata, PROPERTY: key},
            ) from None
        except KeelmanError as error:
            raise type(error)(error.message.replace("rest.host", key).replace("rest.port", key)) from None
    return ports


def _only(app: ASGIApp, serves: Callable[[str], bool]) -> ASGIApp:
    """Returns the application with only those paths, without a final slash, for which `serves` is true."""

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        if serves(scope["path"].rstrip("/")):
            await app(scope, receive, send)
        else:
            await error_response(404, STATUS_TEXTS[404])(scope, receive, send)

    return chosen


def _is_admin(path: str) -> bool:
    return path == "/admin" or path.startswith("/admin/")
