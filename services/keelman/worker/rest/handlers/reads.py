"""Serves the part of REST that reads connectors: answered by any worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keelman.worker.errors import RestError
from keelman.worker.rest import key_notes
from keelman.worker.rest.answers import json_response
from keelman.worker.rest.context import RestContext, name_in, task_in
from keelman.worker.rest.views import Views
from keelman.worker.restart_policy import stamp

TRACKING_OFF = "Topic tracking is disabled."
RESET_OFF = "Topic tracking reset is disabled."


class Reads:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def _fresh(self) -> Views:
        """Returns the views, once records that were written through any worker before this request are read."""
        views = self._context().views
        await views.fresh()
        return views

    async def connectors(self, request: Request) -> Response:
        """GET /connectors: names; with `expand`, status and info of each."""
        views = await self._fresh()
        expansions = request.query_params.getlist("expand")
        if not expansions:
            return _response(views, views.names())
        pieces = views.listed(expansions)
        headers = {"content-length": str(sum(map(len, pieces))), **known(views)}

        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(0)  # many megabytes of it delay no other request

        return StreamingResponse(body(), headers=headers, media_type="application/json")

    async def connector(self, request: Request) -> Response:
        """GET /connectors/x, with its configuration's tag and its uid; with notes on its keys if their header asks."""
        views = await self._fresh()
        info = views.info(name_in(request))
        with_notes = key_notes.HEADER in request.headers
        notes = await self._context().operations.key_notes.header(info["config"]) if with_notes else {}
        return _response(views, info, {**views.about(info["name"], info["config"]), **notes})

    async def config(self, request: Request) -> Response:
        """GET /connectors/x/config, with the tag that a change may name in If-Match."""
        views = await self._fresh()
        name = name_in(request)
        config = views.config(name)
        return _response(views, config, views.about(name, config))

    async def status(self, request: Request) -> Response:
        """GET /connectors/x/status."""
        views = await self._fresh()
        return _response(views, await views.awaited_status(name_in(request)))

    async def tasks(self, request: Request) -> Response:
        """GET /connectors/x/tasks."""
        views = await self._fresh()
        return _response(views, views.tasks(name_in(request)))

    async def task_status(self, request: Request) -> Response:
        """GET /connectors/x/tasks/n/status."""
        task = task_in(request)
        views = await self._fresh()
        return _response(views, await views.task_status(name_in(request), task))

    async def offsets(self, request: Request) -> Response:
        """GET /connectors/x/offsets."""
        views = await self._fresh()
        return _response(views, await self._context().offsets.read(name_in(request)))

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


def known(views: Views) -> dict[str, str]:
    """Returns headers with the time of an old answer, in HTTP's own words; none for a present one."""
    if not views.stale:
        return {}
    seconds = views.known_seconds
    at = stamp(datetime.fromtimestamp(time.time() - seconds, UTC))
    return {"age": str(round(seconds)), "warning": f'110 - "as known at {at}: the brokers do not answer"'}


def _response(views: Views, value: object, headers: dict[str, str] | None = None) -> Response:
    return json_response(value, headers={**(headers or {}), **known(views)})
