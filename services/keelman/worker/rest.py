"""Connect's REST API: decodes, calls, encodes; forwards to the leader or to the owner what is theirs."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, unquote

import httpx
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.kafka.clients import Admin
from keelman.model.errors import KeelmanError
from keelman.runtime.version import version
from keelman.worker import plugins, signatures
from keelman.worker.config_state import PAUSED, STARTED
from keelman.worker.herder import Herder
from keelman.worker.operations import Operations
from keelman.worker.rest_errors import (
    CONFLICT,
    NO_LEADER,
    Elsewhere,
    RestError,
    error_response,
    json_response,
    on_exception,
    on_keelman_error,
    on_rest_error,
    on_status,
)

CONNECT_VERSION = "4.3.0"
FORWARD_SECONDS = 90.0
PASSED_ON = ("authorization", "content-type", signatures.AUTHORIZATION, signatures.ALGORITHM)


class RestApi:
    """One worker's REST API. `begin` gives it the worker's parts; before that every call that needs them says 503."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        """`tls` is what it asks other workers with."""
        self._operations: Operations | None = None
        self._herder: Herder | None = None
        self._admin: Admin | None = None
        self._cluster_id = ""
        self._http = httpx.AsyncClient(timeout=FORWARD_SECONDS, trust_env=False, verify=tls)

    def begin(self, herder: Herder, admin: Admin, cluster_id: str) -> None:
        """Gives it what it answers from."""
        self._herder, self._admin, self._cluster_id = herder, admin, cluster_id
        self._operations = Operations(herder)

    async def close(self) -> None:
        """Ends the connections to other workers."""
        await self._http.aclose()

    @property
    def _do(self) -> Operations:
        if self._operations is None:
            raise RestError(503, "Worker is starting: its brokers have not answered yet")
        return self._operations

    def app(self, guard: Callable[[Starlette], ASGIApp]) -> ASGIApp:
        """The ASGI application, with the guard around its routes. Paths are matched as they were sent: a connector's
        name may hold an escaped slash."""
        routed = guard(self._routed())

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                scope = {**scope, "path": scope["raw_path"].decode("ascii", "replace")}
            await routed(scope, receive, send)

        return app

    def _routed(self) -> Starlette:
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/", self.root),
            ("GET", "/health", self.health),
            ("GET", "/connectors", self.connectors),
            ("POST", "/connectors", self.create),
            ("GET", "/connectors/{name}", self.connector),
            ("DELETE", "/connectors/{name}", self.delete),
            ("GET", "/connectors/{name}/config", self.config),
            ("PUT", "/connectors/{name}/config", self.put_config),
            ("PATCH", "/connectors/{name}/config", self.patch_config),
            ("GET", "/connectors/{name}/status", self.status),
            ("GET", "/connectors/{name}/tasks", self.tasks),
            ("GET", "/connectors/{name}/tasks/{task:int}/status", self.task_status),
            ("POST", "/connectors/{name}/tasks/{task:int}/restart", self.restart_task),
            ("GET", "/connectors/{name}/topics", self.topics),
            ("GET", "/connectors/{name}/offsets", self.offsets),
            ("PUT", "/connectors/{name}/pause", self.pause),
            ("PUT", "/connectors/{name}/resume", self.resume),
            ("PUT", "/connectors/{name}/stop", self.stop),
            ("POST", "/connectors/{name}/restart", self.restart),
            ("PUT", "/connectors/{name}/fence", self.fence),
            ("GET", "/connector-plugins", self.plugins),
            ("GET", "/connector-plugins/{plugin}/config", self.plugin_config),
            ("PUT", "/connector-plugins/{plugin}/config/validate", self.validate),
        ]
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for method, path, handler in table:
            by_path.setdefault(path, {})[method] = handler
        return Starlette(
            routes=[Route(path, _by_method(handlers), methods=list(handlers)) for path, handlers in by_path.items()],
            exception_handlers={
                RestError: on_rest_error,
                KeelmanError: on_keelman_error,
                HTTPException: on_status,
                Exception: on_exception,
            },
        )

    async def root(self, request: Request) -> Response:
        """Version of Connect that is spoken, version of this installation, id of the Kafka cluster."""
        commit = f"keelman-{version()}"
        return json_response({"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": self._cluster_id})

    async def health(self, request: Request) -> Response:
        """Whether this worker has its place in the group."""
        herder = self._herder
        if herder is None or not herder.joined.is_set():
            return json_response({"status": "starting", "message": "Worker is still starting up."}, 503)
        if not herder.membership.healthy:
            message = "Worker has lost its place in the group: the group's coordinator does not answer."
            return json_response({"status": "unhealthy", "message": message}, 500)
        message = "Worker has completed startup and is ready to handle requests."
        return json_response({"status": "healthy", "message": message})

    async def connectors(self, request: Request) -> Response:
        """Names; with `expand`, status and info of each."""
        wanted = request.query_params.getlist("expand")
        names = self._do.names()
        if not wanted:
            return json_response(names)
        answer: dict[str, Any] = {}
        for name in names:
            one: dict[str, Any] = {}
            for kind, read in (("status", self._do.status), ("info", self._do.info)):
                if kind in wanted:
                    try:
                        one[kind] = read(name)
                    except RestError:
                        break
            else:
                answer[name] = one
        return json_response(answer)

    async def create(self, request: Request) -> Response:
        """POST /connectors."""
        body = await _body(request)
        name = str(body.get("name") or "").strip()
        config = _named(name, _texts(body.get("config") or {}))
        state = body.get("initial_state")
        initial = None if state is None else str(state)

        async def do() -> Response:
            _, info = await self._do.put_config(name, config, create=True, initial_state=initial)
            return json_response(info, 201, {"Location": f"/connectors/{quote(name, safe='')}"})

        return await self._led(request, do)

    async def connector(self, request: Request) -> Response:
        """GET /connectors/x."""
        return json_response(self._do.info(request.path_params["name"]))

    async def config(self, request: Request) -> Response:
        """GET /connectors/x/config."""
        return json_response(self._do.config(request.path_params["name"]))

    async def put_config(self, request: Request) -> Response:
        """PUT /connectors/x/config."""
        name = request.path_params["name"]
        config = _named(name, _texts(await _body(request)))

        async def do() -> Response:
            created, info = await self._do.put_config(name, config, create=False)
            return json_response(
                info, 201 if created else 200, {"Location": f"/connectors/{quote(name, safe='')}"} if created else {}
            )

        return await self._led(request, do)

    async def patch_config(self, request: Request) -> Response:
        """PATCH /connectors/x/config."""
        name = request.path_params["name"]
        patch = _texts(await _body(request), nulls=True)

        async def do() -> Response:
            return json_response(await self._do.patch_config(name, patch))

        return await self._led(request, do)

    async def delete(self, request: Request) -> Response:
        """DELETE /connectors/x."""
        return await self._led(request, lambda: _void(self._do.delete(request.path_params["name"]), 204))

    async def status(self, request: Request) -> Response:
        """GET /connectors/x/status."""
        return json_response(self._do.status(request.path_params["name"]))

    async def tasks(self, request: Request) -> Response:
        """GET /connectors/x/tasks."""
        return json_response(self._do.tasks(request.path_params["name"]))

    async def task_status(self, request: Request) -> Response:
        """GET /connectors/x/tasks/n/status."""
        return json_response(self._do.task_status(request.path_params["name"], request.path_params["task"]))

    async def restart_task(self, request: Request) -> Response:
        """POST /connectors/x/tasks/n/restart."""
        path = request.path_params
        return await self._led(request, lambda: _void(self._do.restart_task(path["name"], path["task"]), 204))

    async def topics(self, request: Request) -> Response:
        """GET /connectors/x/topics."""
        return json_response(self._do.topics(request.path_params["name"]))

    async def offsets(self, request: Request) -> Response:
        """GET /connectors/x/offsets."""
        operations = self._do
        assert self._admin is not None
        return json_response(await operations.offsets(request.path_params["name"], self._admin))

    async def pause(self, request: Request) -> Response:
        """PUT /connectors/x/pause."""
        return await _void(self._do.set_target(request.path_params["name"], PAUSED), 202)

    async def resume(self, request: Request) -> Response:
        """PUT /connectors/x/resume."""
        return await _void(self._do.set_target(request.path_params["name"], STARTED), 202)

    async def stop(self, request: Request) -> Response:
        """PUT /connectors/x/stop."""
        return await self._led(request, lambda: _void(self._do.stop(request.path_params["name"]), 204))

    async def restart(self, request: Request) -> Response:
        """POST /connectors/x/restart, in both forms."""
        name = request.path_params["name"]
        include = _flag(request, "includeTasks")
        only_failed = _flag(request, "onlyFailed")

        async def do() -> Response:
            state = await self._do.restart(name, include_tasks=include, only_failed=only_failed)
            return json_response(state, 202) if include or only_failed else Response(status_code=204)

        return await self._led(request, do)

    async def fence(self, request: Request) -> Response:
        """PUT /connectors/x/fence: other workers' alone, so it is signed."""
        signatures.check(request.headers, await request.body(), self._do.session_key)
        return await self._led(request, lambda: _void(self._do.fence(request.path_params["name"]), 204))

    async def plugins(self, request: Request) -> Response:
        """GET /connector-plugins."""
        only = request.query_params.get("connectorsOnly", "true").lower() != "false"
        return json_response(plugins.listed(connectors_only=only))

    async def plugin_config(self, request: Request) -> Response:
        """GET /connector-plugins/p/config."""
        return json_response(await plugins.keys_of(request.path_params["plugin"]))

    async def validate(self, request: Request) -> Response:
        """PUT /connector-plugins/p/config/validate."""
        config = _texts(await _body(request))
        return json_response(await plugins.validated(request.path_params["plugin"], config, self._do.worker_config))

    async def _led(self, request: Request, do: Callable[[], Awaitable[Response]]) -> Response:
        """Does it here, or where the leader (or the owner) is; at most two hops."""
        self._do  # noqa: B018 - says 503 while the worker starts
        try:
            return await do()
        except Elsewhere as other:
            return await self._forward(request, other.url)

    async def _forward(self, request: Request, url: str) -> Response:
        hop = request.query_params.get("forward")
        if hop == "false":
            return error_response(409, CONFLICT)
        if not url:
            return error_response(409, NO_LEADER)
        params = request.query_params.multi_items()
        query = httpx.QueryParams([(k, v) for k, v in params if k != "forward"])
        query = query.add("forward", "true" if hop is None else "false")
        headers = {k: request.headers[k] for k in PASSED_ON if k in request.headers}
        target = url.rstrip("/") + request.scope["path"]
        try:
            answer = await self._http.request(
                request.method, target, params=query, headers=headers, content=await request.body()
            )
        except httpx.HTTPError as error:
            return error_response(500, f"IO Error trying to forward REST request: {error or type(error).__name__}")
        if self._herder is not None and answer.status_code < 300:
            await self._herder.store.read_config()  # the caller may ask this worker next
        kept = {k: answer.headers[k] for k in ("location", "content-type") if k in answer.headers}
        return Response(answer.content, answer.status_code, kept)


def _by_method(
    handlers: dict[str, Callable[[Request], Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        for key, value in request.path_params.items():
            if isinstance(value, str):
                request.path_params[key] = unquote(value)
        return await handlers[method](request)

    return handle


async def _void(work: Awaitable[None], status: int) -> Response:
    await work
    return Response(status_code=status)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises 415, and 500 for what is no JSON object, as Connect does."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RestError(415, "HTTP 415 Unsupported Media Type")
    raw = await request.body()
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise RestError(500, f"The request's body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RestError(500, f"The request's body is {type(value).__name__}, not a JSON object")
    return value


def _texts(value: object, *, nulls: bool = False) -> dict[str, Any]:
    """A flat map of strings; numbers and booleans become their text. Raises 500 for deeper values, as Connect does."""
    if not isinstance(value, dict):
        raise RestError(500, f"config is {type(value).__name__}, not a JSON object")
    texts: dict[str, Any] = {}
    for key, one in value.items():
        if isinstance(one, (dict, list)):
            raise RestError(500, f"{key}: {orjson.dumps(one).decode()} is not legal: a string")
        if one is None:
            if not nulls:
                raise RestError(400, f"{key}: null is not legal: a string")
            texts[key] = None
        else:
            texts[key] = one if isinstance(one, str) else orjson.dumps(one).decode()
    return texts


def _named(name: str, config: dict[str, str]) -> dict[str, str]:
    """The configuration with the connector's name in it. Raises 400 when it has another."""
    if config.get("name", name) != name:
        raise RestError(
            400,
            f"Connector name configuration ({config['name']}) doesn't match connector name in the URL ({name})",
        )
    return {**config, "name": name}


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "false").lower() == "true"
