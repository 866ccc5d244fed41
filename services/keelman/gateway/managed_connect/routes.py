"""`/v1/...`: routes requests to operations, by the raw path: an encoded slash separates nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keelman.gateway.access.replays import ReplayGuard
from keelman.gateway.access.rights import MANAGED_CONNECT
from keelman.gateway.access.signatures import Sent, SignedCaller
from keelman.gateway.managed_connect.call import ManagedCall, failed, head_of, ok, query_of, read_body, segments_of
from keelman.gateway.managed_connect.errors import WireError, error_of, not_found
from keelman.gateway.request_body import ClientGone
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger

log = get_logger()

PREFIX = "/v1"
Handler = Callable[[ManagedCall], Awaitable[dict[str, Any]]]
Route = tuple[str, str]
"""A method and the path below /v1; {arn} stands for any one segment."""


class ManagedConnectApi:
    """An ASGI application, mounted at /v1. `conflicts`: the routes of operations that declare 409. `caller` returns the
    sender of a request, or raises KeelmanError; `check_head` does so by the head alone, before the body is read;
    `replays` refuses repeated requests, None if signatures are not verified."""

    def __init__(
        self,
        routes: Mapping[Route, Handler],
        conflicts: Collection[Route],
        caller: Callable[[Sent], SignedCaller],
        *,
        check_head: Callable[[Sent], object],
        replays: ReplayGuard | None,
    ) -> None:
        self._routes = [
            (method, tuple(path.split("/")), handler, (method, path) in conflicts, MANAGED_CONNECT[method, path])
            for (method, path), handler in routes.items()
        ]
        self._caller = caller
        self._check_head = check_head
        self._replays = replays

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
        self._check_head(head)
        sent = replace(head, body=await read_body(receive))
        caller = self._caller(sent)
        words = segments_of(sent.path.removeprefix(f"{PREFIX}/"))
        for method, pattern, handler, conflicts, right in self._routes:
            if method == sent.method and len(pattern) == len(words):
                parts = [word for part, word in zip(pattern, words, strict=True) if part == "{arn}"]
                if all(part in ("{arn}", word) for part, word in zip(pattern, words, strict=True)):
                    if not caller.role.has(right):
                        raise WireError(
                            "ForbiddenException", f"The access key is a {caller.role}'s: it may not {right}."
                        )
                    call = ManagedCall(caller, "".join(parts), query_of(sent.query), sent)
                    try:
                        if self._replays is not None:
                            await self._replays.check(caller, sent)
                        return ok(await handler(call))
                    except KeelmanError as error:
                        raise error_of(error, conflicts=conflicts) from None
        raise not_found(f"There is no operation {sent.method} {sent.path[:200]}.")
