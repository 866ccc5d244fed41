"""The gateway's HTTP server: an index, health, metrics, the worker clusters' Connect REST APIs, and further APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.gateway.caller import caller_of
from keelman.gateway.metrics import exposition
from keelman.gateway.proxy import Proxy
from keelman.gateway.scale import ClusterPaths
from keelman.gateway.state import State
from keelman.gateway.worker_figures import WorkerFigures
from keelman.model.errors import KeelmanError
from keelman.rpc.enums import word
from keelman.runtime.exposition import CONTENT_TYPE
from keelman.runtime.http.errors import error_body
from keelman.runtime.version import version
from keelman.workers.rest.access import Logins
from keelman.workers.rest.client import Rest


def application(
    state: State, rest: Rest, logins: Logins, *, max_body_bytes: int, apis: Mapping[str, ASGIApp],
    served: Mapping[str, str], is_draining: Callable[[], bool] = lambda: False, problem: Callable[[], str] = str,
) -> Starlette:  # fmt: skip
    """Returns the ASGI application. `apis`: further applications by their paths; `served`: the versions of their APIs;
    `is_draining`: whether callers should use another gateway; `problem`: why only workers' REST is served, else empty.
    """
    legal = [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/clusters/{name}/...",
        *(f"{path}/..." for path in apis if not path.startswith("/_")),
    ]

    workers = WorkerFigures(rest.text)

    async def index(request: Request) -> Response:
        caller = caller_of(request.scope)
        answer: dict[str, Any] = {"name": "keelman", "version": version(), "clusters": [], "apis": dict(served)}
        try:
            answer["clusters"] = [
                {"name": c.name, "state": word(ClusterState, c.status.state), "path": f"/clusters/{c.name}/"}
                for c in await state.worker_clusters()
                if caller.sees(c.name)
            ]
        except KeelmanError as error:
            answer["message"] = error.message
        return _json(answer)

    async def healthz(_: Request) -> Response:
        return _json({"status": "healthy"})

    async def readyz(_: Request) -> Response:
        if is_draining():
            return _json({"status": "draining"}, 503)
        reason = problem()  # still ready: requests to worker clusters are passed on all the same
        return _json({"status": "degraded", "message": reason} if reason else {"status": "ready"})

    async def metrics(_: Request) -> Response:
        return Response(await exposition(state, workers), headers={"Content-Type": CONTENT_TYPE})

    async def refused(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        detail = (
            f"HTTP 404 Not Found: legal are {', '.join(legal[:-1])} and {legal[-1]}" if status == 404 else str(error)
        )
        return Response(error_body(status, detail), status, media_type="application/json")

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            _below("/clusters", ClusterPaths(state, Proxy(state, rest, logins, max_body_bytes=max_body_bytes))),
            *(_below(path, app) for path, app in apis.items()),
            *(Route(path, app) for path, app in apis.items()),
        ],
        exception_handlers={HTTPException: refused},
    )
    app.router.redirect_slashes = False
    return app


def _below(path: str, app: ASGIApp) -> Mount:
    """Returns a mount for all paths that begin with this one, even if a line break follows."""
    mount = Mount(path, app=app)
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mount


def _json(answer: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(answer), status, media_type="application/json")
