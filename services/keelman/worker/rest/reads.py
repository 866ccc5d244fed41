"""The part of REST that reads connectors: answered by any worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keelman.worker.errors import RestError
from keelman.worker.rest.answers import json_response
from keelman.worker.rest.context import RestContext, name_in, task_in
from keelman.worker.rest.operations import etag_of

TRACKING_OFF = "Topic tracking is disabled."
RESET_OFF = "Topic tracking reset is disabled."


class Reads:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def _fresh(self) -> RestContext:
        """The context, once what was written through any worker before this request is known here."""
        context = self._context()
        await context.views.fresh()
        return context

    async def connectors(self, request: Request) -> Response:
        """GET /connectors: names; with `expand`, status and info of each."""
        views = (await self._fresh()).views
        wanted = request.query_params.getlist("expand")
        if not wanted:
            return json_response(views.names())
        pieces = views.listed(wanted)
        length = {"content-length": str(sum(map(len, pieces)))}

        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(0)  # many megabytes of it hold up nobody

        return StreamingResponse(body(), headers=length, media_type="application/json")

    async def connector(self, request: Request) -> Response:
        """GET /connectors/x."""
        return json_response((await self._fresh()).views.info(name_in(request)))

    async def config(self, request: Request) -> Response:
        """GET /connectors/x/config, with the tag that a change may name in If-Match."""
        config = (await self._fresh()).views.config(name_in(request))
        return json_response(config, headers={"etag": etag_of(config)})

    async def status(self, request: Request) -> Response:
        """GET /connectors/x/status."""
        return json_response(await (await self._fresh()).views.awaited_status(name_in(request)))

    async def tasks(self, request: Request) -> Response:
        """GET /connectors/x/tasks."""
        return json_response((await self._fresh()).views.tasks(name_in(request)))

    async def task_status(self, request: Request) -> Response:
        """GET /connectors/x/tasks/n/status."""
        task = task_in(request)
        return json_response(await (await self._fresh()).views.task_status(name_in(request), task))

    async def offsets(self, request: Request) -> Response:
        """GET /connectors/x/offsets."""
        return json_response(await (await self._fresh()).offsets.read(name_in(request)))

    async def topics(self, request: Request) -> Response:
        """GET /connectors/x/topics."""
        context = self._context()
        if not context.store.properties.topic_tracking:
            raise RestError(403, TRACKING_OFF)
        return json_response(context.views.topics(name_in(request)))

    async def reset_topics(self, request: Request) -> Response:
        """PUT /connectors/x/topics/reset."""
        context = self._context()
        properties = context.store.properties
        for allowed, message in ((properties.topic_tracking, TRACKING_OFF), (properties.topic_reset, RESET_OFF)):
            if not allowed:
                raise RestError(403, message)
        await context.tracking.reset(name_in(request))
        return Response(status_code=202)
