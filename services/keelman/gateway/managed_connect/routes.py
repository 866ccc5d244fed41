"""`/v1/...`: routes requests to operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keelman.connect.config.secret_keys import shown_json
from keelman.gateway.access.replays import ReplayGuard
from keelman.gateway.access.rights import MANAGED_CONNECT
from keelman.gateway.access.signatures import Sent, SignedCaller
from keelman.gateway.managed_connect.call import ManagedCall, decoded, failed, head_of, ok, query_of, read_body
from keelman.gateway.managed_connect.errors import WireError, error_of, not_found
from keelman.gateway.request_body import ClientGone
from keelman.model.access.roles import Right
from keelman.model.errors import KeelmanError, PermissionDenied
from keelman.rpc.actors import act_for
from keelman.runtime.http.protocol import give_way
from keelman.runtime.http.raw_paths import RawRouter, segments_of
from keelman.runtime.logs.logging import get_logger

log = get_logger()

PREFIX = "/v1"
Handler = Callable[[ManagedCall], Awaitable[dict[str, Any]]]
Route = tuple[str, str]
"""A method and the path below /v1; {arn} stands for any one segment."""


class _Operation(NamedTuple):
    """The target of a route. `conflicts`: it declares 409; `right`: the right that a caller needs."""

    handler: Handler
    conflicts: bool
    right: Right


class ManagedConnectApi:
    """An ASGI application, mounted at /v1. `conflicts`: the routes of operations that declare 409. `caller` returns the
    sender of a request, or raises KeelmanError; `check_head` does so by the head alone, before the body is read;
    `replays` refuses repeated requests, None if signatures are not verified; `on_refusal` may delay the answer to a
    request whose signature is refused."""

    def __init__(
        self,
        routes: Mapping[Route, Handler],
        conflicts: Collection[Route],
        caller: Callable[[Sent], SignedCaller],
        *,
        check_head: Callable[[Sent], object],
        replays: ReplayGuard | None,
        on_refusal: Callable[[], Awaitable[None]],
    ) -> None:
        self._router = RawRouter(
            (method, path, _Operation(handler, (method, path) in conflicts, MANAGED_CONNECT[method, path]))
            for (method, path), handler in routes.items()
        )
        self._caller = caller
        self._check_head = check_head
        self._replays = replays
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        try:
            response = await self._answer(scope, receive)
        except ClientGone:
            return
        except WireError as error:
            response = failed(error)
        except KeelmanError as error:
            response = failed(error_of(error))
        except Exception as error:
            log.exception("managed_connect_request_failed", method=scope["method"], path=scope["path"])
            reason = f"{type(error).__name__}: see the gateway's log"
            response = failed(WireError("InternalServerErrorException", reason))
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        head = head_of(scope)
        try:
            self._check_head(head)
            sent = replace(head, body=await read_body(receive))
            caller = self._caller(sent)
        except PermissionDenied:
            give_way(scope)
            await self._on_refusal()
            raise
        if caller.key_id:
            act_for(f"key {caller.key_id}")
        route = self._router.find(sent.method, segments_of(sent.path.removeprefix(f"{PREFIX}/"), decoded))
        if route is None:
            raise not_found(f"There is no operation {sent.method} {sent.path[:200]}.")
        operation, variables = route
        if not caller.role.has(operation.right):
            raise WireError("ForbiddenException", f"The access key is a {caller.role}'s: it may not {operation.right}.")
        call = ManagedCall(caller, variables.get("arn", ""), query_of(sent.query), sent)
        try:
            if self._replays is not None:
                await self._replays.check(caller, sent)
            answer = await operation.handler(call)
            return ok(answer if caller.role.has(Right.SEE_SECRETS) else shown_json(answer))
        except KeelmanError as error:
            raise error_of(error, conflicts=operation.conflicts) from None
