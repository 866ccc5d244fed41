"""Serves the part of REST that is about no connector: the worker, its plugins, its logging."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from keelman.model.errors import DeadlineExceeded
from keelman.runtime.supervise import deadline
from keelman.runtime.version import version
from keelman.worker.deadlines import TIMED_OUT, remaining
from keelman.worker.errors import RestError
from keelman.worker.rest import loggers, plugins
from keelman.worker.rest.answers import json_response
from keelman.worker.rest.bodies import json_body, wanted_map
from keelman.worker.rest.context import RestContext, flag_in, name_in
from keelman.worker.rest.validated_secrets import validate_with

CONNECT_VERSION = "4.3.0"


class Others:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def root(self, request: Request) -> Response:
        """GET /: the version of Connect's API, the version of this installation, the id of the Kafka cluster."""
        commit, cluster = f"keelman-{version()}", self._context().cluster_id
        return json_response({"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": cluster})

    async def health(self, request: Request) -> Response:
        """GET /health: whether this worker has its place in the group, and a Spark service that copies for it."""
        try:
            context = self._context()
        except RestError:
            return json_response({"status": "starting", "message": "Worker is still starting up."}, 503)
        herder, why_away = context.herder, context.why_away()
        waits_for = herder.membership.waits_for
        if waits_for or not herder.joined.is_set():
            message = f"Worker is still starting up{f': {waits_for}' if waits_for else ''}."
            return json_response({"status": "starting", "message": message}, 503)
        if not herder.membership.healthy:
            message = "Worker has lost its place in the group: the group's coordinator does not answer."
            return json_response({"status": "unhealthy", "message": message}, 500)
        if why_away:
            message = f"Worker answers requests and copies nothing: {why_away}."
            return json_response({"status": "unhealthy", "message": message}, 503)
        message = "Worker has completed startup and is ready to handle requests."
        return json_response({"status": "healthy", "message": message})

    async def plugins(self, request: Request) -> Response:
        """GET /connector-plugins."""
        return json_response(
            await plugins.list_plugins(connectors_only=flag_in(request, "connectorsOnly", default=True))
        )

    async def plugin_config(self, request: Request) -> Response:
        """GET /connector-plugins/p/config."""
        version = request.query_params.get("version")
        return json_response(await plugins.keys_of(request.path_params["plugin"], version))

    async def validate(self, request: Request) -> Response:
        """PUT /connector-plugins/p/config/validate."""
        config = wanted_map(await json_body(request), "The configuration")
        operations, plugin = self._context().operations, request.path_params["plugin"]
        async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
            return json_response(await validate_with(operations.secrets, plugin, config, operations.worker_config))

    async def loggers(self, request: Request) -> Response:
        """GET /admin/loggers."""
        return json_response(loggers.listed())

    async def logger(self, request: Request) -> Response:
        """GET /admin/loggers/l."""
        return json_response(loggers.level_of(name_in(request)))

    async def set_level(self, request: Request) -> Response:
        """PUT /admin/loggers/l, on this worker or, with scope=cluster, on all; an unknown scope is the worker's."""
        level = loggers.level_in(wanted_map(await json_body(request), "The level"))
        scope = (request.query_params.getlist("scope") or [""])[0]
        if scope.lower() != "cluster":
            return json_response(loggers.put(name_in(request), level))
        await self._context().store.config_topic.write_level(name_in(request), level)
        return Response(status_code=204)
