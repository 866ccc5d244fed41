"""`/clusters/{name}/scale`: the number of a cluster's workers, for autoscalers outside of keelman."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.gateway.proxy import checked_cluster, named_cluster, split_path
from keelman.gateway.state import State
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.http.errors import error_body
from keelman.workers.rest.client import status_of

MAX_BODY_BYTES = 4096
METHODS = "GET, PUT"


class ClusterPaths:
    """An ASGI application: serves the path of the scale, and leaves all others to the proxy of workers' REST."""

    def __init__(self, state: State, proxy: ASGIApp) -> None:
        self._state, self._proxy = state, proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        # The raw path, which the guard judges as well: no other spelling of it gets here.
        segment, rest = split_path(scope["raw_path"])
        if rest != b"scale":
            await self._proxy(scope, receive, send)
            return
        try:
            answer = await self._answer(Request(scope, receive), segment)
        except KeelmanError as error:
            status = status_of(error)
            answer = Response(error_body(status, error.message), status, media_type="application/json")
        await answer(scope, receive, send)

    async def _answer(self, request: Request, segment: bytes) -> Response:
        name = checked_cluster(named_cluster(segment))
        if request.method in ("GET", "HEAD"):
            cluster = await self._state.worker_cluster(name)
        elif request.method == "PUT":
            cluster = await self._state.scale(name, *_submitted(await _body(request)))
        else:
            body = error_body(405, f"HTTP 405 Method Not Allowed: legal are {METHODS}")
            return Response(body, 405, {"Allow": METHODS}, media_type="application/json")
        return Response(orjson.dumps(scale_of(cluster)), media_type="application/json")


def scale_of(cluster: WorkerCluster) -> dict[str, Any]:
    """Returns the answer about a cluster: the workers that should run, those that do, those that its load needs (null
    if unknown), and the bounds of its autoscaling (null without)."""
    scaled, status = cluster.spec.WhichOneof("placement") == "autoscale", cluster.status
    bounds = cluster.spec.autoscale
    return {
        "worker_cluster": cluster.name,
        "workers": status.wanted_workers,
        "ready_workers": status.ready_workers,
        "needed_workers": status.needed_workers if status.HasField("needed_workers") else None,
        "min_workers": max(1, bounds.min_workers) if scaled else None,
        "max_workers": bounds.max_workers if scaled else None,
        "etag": cluster.etag,
    }


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise InvalidArgument(f"the body has more than {MAX_BODY_BYTES} bytes")
    return body


def _submitted(body: bytes) -> tuple[int, str]:
    """Returns the number of workers and the etag, empty without one. Raises InvalidArgument."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the body is no JSON: {error}") from None
    workers, etag = (fields.get("workers"), fields.get("etag") or "") if isinstance(fields, dict) else (None, "")
    if not isinstance(workers, int) or isinstance(workers, bool) or abs(workers) >= 1 << 31:
        raise InvalidArgument.of("workers", workers, 'a whole number: {"workers": 3}')
    if not isinstance(etag, str):
        raise InvalidArgument.of("etag", etag, "a text")
    return workers, etag
