"""Serves the part of REST that changes connectors: decoded here, done by the leader or the owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from keelman.worker.rest.answers import json_response
from keelman.worker.rest.bodies import json_body, new_connector, offset_entries, text_maps, wanted_map
from keelman.worker.rest.context import RestContext, flag_in, location, name_in, task_in, void
from keelman.worker.rest.forwarding import repeats, signatures
from keelman.worker.rest.operations import Config, other_name
from keelman.worker.storage.config_records import PAUSED, STARTED
from keelman.workers.properties.signature_algorithms import accepted_algorithms


class Writes:
    """Handlers; `context` raises 503 while the worker starts."""

    def __init__(self, context: Callable[[], RestContext]) -> None:
        self._context = context

    async def create(self, request: Request) -> Response:
        """POST /connectors; a repeated request with the same `keelman-request-id` gets the result of the first."""
        request_id = repeats.id_in(request.headers)
        body = new_connector(await json_body(request))
        config = _named(body.name, wanted_map(body.config, "The field 'config'"))
        context = self._context()

        async def do() -> Response:
            _, info = await context.operations.put_config(
                body.name, config, create=True, initial_state=body.initial_state, request_id=request_id
            )
            headers = await _about(context, info)
            return json_response(info, 201, {"location": location(request, body.name), **headers})

        return await context.forwarder.done(request, do)

    async def put_config(self, request: Request) -> Response:
        """PUT /connectors/x/config; with If-Match only over the configuration that has this tag. A repeated request
        with the same `keelman-request-id` takes effect only once. The same holds for all requests that change a
        connector."""
        name, terms = name_in(request), _terms(request)
        config = _named(name, wanted_map(await json_body(request), "The configuration"))
        context = self._context()

        async def do() -> Response:
            created, info = await context.operations.put_config(name, config, create=False, **terms)
            headers = await _about(context, info)
            if created:
                headers["location"] = location(request, name)
            return json_response(info, 201 if created else 200, headers)

        return await context.forwarder.done(request, do)

    async def patch_config(self, request: Request) -> Response:
        """PATCH /connectors/x/config; its terms as in `put_config`."""
        name, terms = name_in(request), _terms(request)
        patch = wanted_map(await json_body(request), "The patch")
        context = self._context()

        async def do() -> Response:
            info = await context.operations.patch_config(name, patch, **terms)
            return json_response(info, headers=await _about(context, info))

        return await context.forwarder.done(request, do)

    async def delete(self, request: Request) -> Response:
        """DELETE /connectors/x; its terms as in `put_config`."""
        name, terms = name_in(request), _terms(request)
        return await self._void(request, lambda context: context.operations.delete(name, **terms), 204)

    async def pause(self, request: Request) -> Response:
        """PUT /connectors/x/pause."""
        return await self._set_target(request, PAUSED)

    async def resume(self, request: Request) -> Response:
        """PUT /connectors/x/resume."""
        return await self._set_target(request, STARTED)

    async def stop(self, request: Request) -> Response:
        """PUT /connectors/x/stop."""
        terms = _terms(request)
        return await self._void(request, lambda context: context.operations.stop(name_in(request), **terms), 204)

    async def restart(self, request: Request) -> Response:
        """POST /connectors/x/restart, in both forms."""
        include, only_failed = flag_in(request, "includeTasks"), flag_in(request, "onlyFailed")
        context, terms = self._context(), _terms(request)

        async def do() -> Response:
            state = await context.operations.restart(
                name_in(request), include_tasks=include, only_failed=only_failed, **terms
            )
            return json_response(state, 202) if include or only_failed else Response(status_code=204)

        return await context.forwarder.done(request, do)

    async def restart_task(self, request: Request) -> Response:
        """POST /connectors/x/tasks/n/restart."""
        task = task_in(request)
        return await self._void(request, lambda context: context.operations.restart_task(name_in(request), task), 204)

    async def alter_offsets(self, request: Request) -> Response:
        """PATCH /connectors/x/offsets."""
        entries = offset_entries(await json_body(request))
        context = self._context()

        async def do() -> Response:
            return json_response(await context.offsets.alter(name_in(request), entries))

        return await context.forwarder.done(request, do)

    async def reset_offsets(self, request: Request) -> Response:
        """DELETE /connectors/x/offsets."""
        context = self._context()

        async def do() -> Response:
            return json_response(await context.offsets.reset(name_in(request)))

        return await context.forwarder.done(request, do)

    async def put_tasks(self, request: Request) -> Response:
        """POST /connectors/x/tasks: other workers' alone, so it is signed."""
        tasks = text_maps(await request.body())
        await self._check_signature(request)
        return await self._void(request, lambda context: context.operations.put_tasks(name_in(request), tasks), 204)

    async def fence(self, request: Request) -> Response:
        """PUT /connectors/x/fence: other workers' alone, so it is signed."""
        await self._check_signature(request)
        return await self._void(request, lambda context: context.operations.fence(name_in(request)), 204)

    async def _check_signature(self, request: Request) -> None:
        store = self._context().store
        accepted = accepted_algorithms(store.properties.raw)
        signatures.check(request.headers, await request.body(), store.config.session_key, accepted)

    async def _set_target(self, request: Request, target: str) -> Response:
        name, terms = name_in(request), _terms(request)
        return await self._void(request, lambda context: context.operations.set_target(name, target, **terms), 202)

    async def _void(self, request: Request, do: Callable[[RestContext], Awaitable[None]], status: int) -> Response:
        context = self._context()
        return await context.forwarder.done(request, lambda: void(do(context), status))


def _terms(request: Request) -> dict[str, str]:
    """Returns the terms of a change: the configuration that it applies to, and the id of the client's request."""
    return {"etag": request.headers.get("if-match", ""), "request_id": repeats.id_in(request.headers)}


def _named(name: str, config: Config) -> Config:
    """Returns the configuration with the connector's name in it. Raises 400 when it has another."""
    name_in_config = config.get("name")
    if name_in_config is not None and name_in_config != name:
        raise other_name(name_in_config, name)
    return {**config, "name": name}


async def _about(context: RestContext, info: Mapping[str, Any]) -> dict[str, str]:
    """Returns headers about the connector in an answer: its configuration's tag, its uid, and notes on its keys."""
    name, config = info["name"], info["config"]
    return {**context.views.about(name, config), **await context.operations.key_notes.header(config)}
