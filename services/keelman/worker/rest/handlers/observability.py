"""Serves observability, which Connect's REST API lacks: GET /metrics and GET /connectors/x/logs?lines=."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keelman.runtime.exposition import CONTENT_TYPE
from keelman.runtime.logs.recent_lines import EACH, RECENT
from keelman.worker.errors import RestError, not_found
from keelman.worker.metrics.metrics import Metrics
from keelman.worker.rest.answers import STATUS_TEXTS, json_response

KEPT_LINES = 20_000
USUAL_LINES = 100


class Observability:
    """`begin` gives it the worker's metrics; before that it answers 503."""

    def __init__(self) -> None:
        RECENT.keep(KEPT_LINES)
        self._metrics: Metrics | None = None

    def begin(self, metrics: Metrics) -> None:
        """Gives it the metrics to answer from."""
        self._metrics = metrics

    async def metrics(self, request: Request) -> Response:
        """GET /metrics."""
        if request.method not in ("GET", "HEAD"):
            raise RestError(405, STATUS_TEXTS[405])
        pieces = await self._ready().text()

        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        length = {"Content-Length": str(sum(map(len, pieces)))}
        return StreamingResponse(body(), headers={**length, "Content-Type": CONTENT_TYPE})

    async def logs(self, request: Request) -> Response:
        """GET /connectors/x/logs: the last lines that this worker has logged about a connector and its tasks, oldest
        first. Other workers have their own; slots write into the log of the Spark service."""
        name = request.path_params["name"]
        text = request.query_params.get("lines", str(USUAL_LINES))
        if not text.isdecimal() or len(text) > len(str(EACH)) or not 1 <= int(text) <= EACH:
            raise RestError(400, f"lines: {text!r} is not legal: a whole number from 1 to {EACH}")
        lines = RECENT.of(name, int(text))
        if not lines and not self._ready().knows(name):
            raise not_found(f"Connector {name} not found")
        return json_response(lines)

    def _ready(self) -> Metrics:
        if self._metrics is None:
            raise RestError(503, "Worker is starting: its brokers have not answered yet")
        return self._metrics
