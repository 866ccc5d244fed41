"""`/v0/...`: routes calls to endpoints and to kinds of objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keelman.gateway.ohara.state.control import WriteTurns
from keelman.gateway.ohara.wire.call import OharaCall, accepted, call_of, failed, no_content, ok
from keelman.gateway.ohara.wire.errors import RUNTIME, OharaError, error_of, unsupported
from keelman.gateway.ohara.wire.filters import filtered
from keelman.gateway.ohara.wire.resource import OharaResource
from keelman.gateway.request_body import ClientGone
from keelman.model.errors import KeelmanError
from keelman.runtime.http.raw_paths import RawRouter
from keelman.runtime.logs.logging import get_logger

log = get_logger()

PREFIX = "/v0"
Handler = Callable[[OharaCall], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path without a resource, e.g. GET inspect/workers/{name}. `{name}` matches any one segment."""

    method: str
    pattern: str
    handler: Handler


class OharaApi:
    """An ASGI application, mounted at /v0. All answers except 202 and downloads are JSON; errors have Ohara's form."""

    def __init__(
        self, resources: Mapping[str, OharaResource], endpoints: Sequence[Endpoint] = (), *, max_body_bytes: int
    ) -> None:
        """`endpoints` take precedence over resources of the same path."""
        self.resources = resources
        self.endpoints = endpoints
        self._router = RawRouter((one.method, one.pattern, one.handler) for one in endpoints)
        self._limit = max_body_bytes
        self._turns = WriteTurns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        try:
            response = await self._answer(scope, receive)
        except ClientGone:
            return
        except OharaError as error:
            response = failed(error)
        except KeelmanError as error:
            response = failed(error_of(error))
        except Exception as error:
            log.exception("ohara_request_failed", method=scope["method"], path=scope["path"])
            response = failed(OharaError(500, RUNTIME, f"{type(error).__name__}: see the gateway's log"))
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        call = call_of(scope, receive, below=PREFIX, max_body_bytes=self._limit)
        if (route := self._router.find(call.method, call.path)) is not None:
            handler, variables = route
            return await handler(replace(call, variables=variables))
        resource = self.resources.get(call.path[0])
        if resource is None or not all(call.path):
            raise unsupported(call.target)
        return await self._answered(resource, call)

    async def _answered(self, resource: OharaResource, call: OharaCall) -> Response:  # noqa: PLR0911
        kind = call.path[0]
        match call.method, call.path[1:]:
            case "GET", ():
                return ok(filtered(await resource.list(), call.query))
            case "POST", ():
                return ok(await resource.create(await call.settings()))
            case "GET", (name,):
                return ok(await resource.get(resource.key(call.group, name)))
            case "PUT", (name,):
                key = resource.key(call.group, name)
                settings = await call.settings()
                return ok(await self._turns.take((kind, key), lambda: resource.put(key, settings)))
            case "DELETE", (name,):
                key = resource.key(call.group, name)
                await self._turns.take((kind, key), lambda: resource.delete(key))
                return no_content()
            case "PUT", (name, verb):
                key = resource.key(call.group, name)
                await self._turns.take((kind, key), lambda: resource.act(key, verb, call))
                return accepted()
            case "DELETE", (name, part):
                key = resource.key(call.group, name)
                await self._turns.take((kind, key), lambda: resource.remove(key, part, call))
                return no_content()
        raise unsupported(call.target)
