"""Routes Connect's REST API: which handler answers which path and method, and how errors are answered."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.model.errors import KeelmanError
from keelman.worker.errors import RestError
from keelman.worker.group.herder import Herder
from keelman.worker.previews.databases import Databases
from keelman.worker.previews.previews import Previews
from keelman.worker.previews.replays import Replays
from keelman.worker.previews.side_process import SideProcess
from keelman.worker.rest import answers
from keelman.worker.rest.context import Handler, RestContext
from keelman.worker.rest.forwarding.forwarding import Forwarder
from keelman.worker.rest.front.paths import NO_FENCE, NO_TASKS, PathRoute, as_put, by_method, plain_path, refusing
from keelman.worker.rest.handlers.observability import Observability
from keelman.worker.rest.handlers.others import Others
from keelman.worker.rest.handlers.reads import Reads
from keelman.worker.rest.handlers.records import RecordRoutes
from keelman.worker.rest.handlers.writes import Writes
from keelman.worker.rest.offset_changes import OffsetChanges
from keelman.worker.rest.operations import Operations
from keelman.worker.rest.views import Views
from keelman.worker.storage.topic_tracking import TopicTracking

CONFIG = "/connectors/{name}/config"
TASKS = "/connectors/{name}/tasks"
FENCE = "/connectors/{name}/fence"


class RestApi:
    """One worker's REST API. `begin` gives it the worker's parts; before that every call that needs them gets 503."""

    def __init__(self, tls: ssl.SSLContext, *, standalone: bool = False, post_config: bool = False) -> None:
        """`tls` is for connections to other workers. With `post_config` a configuration may be sent with POST too."""
        self._standalone, self._post_config = standalone, post_config
        self._context: RestContext | None = None
        self.observability = Observability()
        self._tls = tls

    def begin(
        self, herder: Herder, tracking: TopicTracking, cluster_id: str, why_away: Callable[[], str] = str
    ) -> None:
        """Gives it the worker's parts; `why_away` returns why the worker can copy nothing now, empty while it can."""
        store = herder.store
        views = Views(store)
        self.operations = operations = Operations(herder, views, tracking)
        offsets = OffsetChanges(herder, operations.fence)
        forwarder = Forwarder(self._tls, herder, views.fresh)
        side_process = SideProcess(store.properties.raw)
        beside = (
            Previews(herder, operations.check, side_process),
            Replays(store, side_process),
            Databases(store, side_process),
        )
        self._context = RestContext(
            herder, store, views, operations, offsets, tracking, forwarder, *beside, cluster_id, why_away
        )

    async def close(self) -> None:
        """Ends the connections to other workers."""
        if self._context is not None:
            await self._context.forwarder.close()

    def _ready(self) -> RestContext:
        if self._context is None:
            raise RestError(503, answers.STARTING)
        return self._context

    def app(self, guard: Callable[[Starlette], ASGIApp]) -> ASGIApp:
        """Returns the ASGI application, with the guard around its routes. Paths are matched as they were sent: a
        connector's name may hold an escaped slash."""
        routed = guard(self._routed())

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                try:
                    scope = {**scope, "path": plain_path(scope["raw_path"].decode("ascii", "replace"))}
                except RestError as error:
                    await answers.error_response(error.status, error.message)(scope, receive, send)
                    return
            await routed(scope, receive, send)

        return app

    def _routed(self) -> Starlette:
        reads, writes, others = Reads(self._ready), Writes(self._ready), Others(self._ready)
        records = RecordRoutes(self._ready)
        table: dict[str, dict[str, Handler]] = {
            "/": {"GET": others.root},
            "/health": {"GET": others.health},
            "/connectors": {"GET": reads.connectors, "POST": writes.create},
            "/connectors/{name}": {"GET": reads.connector, "DELETE": writes.delete},
            CONFIG: {
                "GET": reads.config,
                "PUT": writes.put_config,
                "PATCH": writes.patch_config,
            },
            "/connectors/{name}/status": {"GET": reads.status},
            TASKS: {"GET": reads.tasks, "POST": writes.put_tasks},
            "/connectors/{name}/tasks/{task}/status": {"GET": reads.task_status},
            "/connectors/{name}/tasks/{task}/restart": {"POST": writes.restart_task},
            "/connectors/{name}/topics": {"GET": reads.topics},
            "/connectors/{name}/topics/reset": {"PUT": reads.reset_topics},
            "/connectors/{name}/offsets": {
                "GET": reads.offsets,
                "PATCH": writes.alter_offsets,
                "DELETE": writes.reset_offsets,
            },
            "/connectors/{name}/pause": {"PUT": writes.pause},
            "/connectors/{name}/resume": {"PUT": writes.resume},
            "/connectors/{name}/stop": {"PUT": writes.stop},
            "/connectors/{name}/restart": {"POST": writes.restart},
            FENCE: {"PUT": writes.fence},
            "/connectors/{name}/preview": {"POST": records.preview},
            "/connectors/{name}/dead-letters": {"GET": records.dead_letters},
            "/connectors/{name}/dead-letters/replay": {"POST": records.replay},
            "/database-tables": {"POST": records.database_tables},
            "/connector-plugins": {"GET": others.plugins},
            "/connector-plugins/{plugin}/config": {"GET": others.plugin_config},
            "/connector-plugins/{plugin}/config/validate": {"PUT": others.validate},
            "/connectors/{name}/logs": {"GET": self.observability.logs},
            "/admin/loggers": {"GET": others.loggers},
            "/admin/loggers/{name}": {"GET": others.logger, "PUT": others.set_level},
        }
        if self._standalone:
            table[TASKS]["POST"], table[FENCE]["PUT"] = refusing(NO_TASKS), refusing(NO_FENCE)
        if self._post_config:
            table[CONFIG]["POST"] = as_put(writes.put_config)
        return Starlette(
            routes=[
                PathRoute("/metrics", self.observability.metrics, ("GET",)),  # whatever type is requested
                *(_route(path, handlers) for path, handlers in table.items()),
            ],
            exception_handlers={
                RestError: answers.on_rest_error,
                KeelmanError: answers.on_keelman_error,
                HTTPException: answers.on_status,
                Exception: answers.on_exception,
            },
        )


def _route(path: str, handlers: Mapping[str, Handler]) -> Route:
    return PathRoute(path, by_method(handlers, any_type=path in (TASKS, FENCE)), handlers)
