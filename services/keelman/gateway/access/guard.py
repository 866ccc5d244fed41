"""Passes on the calls that the caller may make, and refuses the others: gRPC by the table of RPCs, HTTP by the table
of routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.access.redacted import RedactedAnswer, hide_secrets, sees_secrets
from keelman.gateway.access.rights import RPCS, Needs, needs_of_route
from keelman.gateway.access.scopes import EACH, CallScope, Lookup, refused_scope
from keelman.gateway.caller import CALLER, EVERYBODY, GatewayCaller
from keelman.gateway.ohara.wire import errors as ohara
from keelman.gateway.ohara.wire.call import failed as ohara_answer
from keelman.gateway.proxy import named_cluster, split_path
from keelman.model.errors import Internal, KeelmanError, PermissionDenied, Unauthenticated
from keelman.rpc.actors import act_for
from keelman.rpc.batches import methods_in
from keelman.rpc.guarded import Change, Incoming, Refusal, request_of
from keelman.runtime.http.errors import error_body
from keelman.runtime.http.protocol import give_way
from keelman.runtime.logs.logging import get_logger
from keelman.workers.rest.client import SAFE, status_of

log = get_logger()
HEALTH = (["healthz"], ["readyz"])
CHALLENGES = ('Bearer realm="keelman"', 'Basic realm="keelman"')


def check_right(caller: GatewayCaller, needs: Needs, what: str) -> None:
    """Raises PermissionDenied for a caller whose role lacks the right in every scope."""
    if needs.right is not None and not caller.has(needs.right):
        raise PermissionDenied(
            f"{caller.name} is {caller.role} and may not {needs.right}: {what}",
            reason="ROLE",
            metadata={"caller": caller.name, "role": str(caller.role), "needs": needs.right},
        )


class RpcGuard:
    """Judges RPCs."""

    def __init__(self, callers: Callers, admission: Admission, lookup: Lookup) -> None:
        self._callers = callers
        self._admission = admission
        self._lookup = lookup

    def screen(self, method: str, metadata: Mapping[str, str]) -> GatewayCaller | None:
        """Judges a caller without a certificate before its request is read. Returns the caller, None where none has to
        be known. Raises Unauthenticated and PermissionDenied."""
        if _needs(method).right is None:
            return None
        return self._callers.caller(self._admission, metadata.get("authorization", ""))

    async def admit(self, call: Incoming) -> Change | None:
        """Judges a call; returns the change to make to its answer, None for none. Raises Unauthenticated and
        PermissionDenied."""
        needs = _needs(call.method)
        if needs.right is None:
            return None
        caller = call.caller or self._callers.caller(
            self._admission, call.metadata.get("authorization", ""), call.identity
        )
        if needs.changes:  # for others the state service has no use for it
            act_for(caller.name)
        if needs.scope is not EACH:
            return await self._judge(caller, call.method, needs, call.request)
        for write in methods_in(request_of(call.method, call.request)):
            method = f"/{write.service}/{write.method}"
            await self._judge(caller, method, _needs(method), write.request)
        return None

    async def _judge(self, caller: GatewayCaller, method: str, needs: Needs, request: Any) -> Change | None:
        check_right(caller, needs, method)
        cut = await self._scope_cut(caller, needs.scope, request_of(method, request)) if caller.is_limited else None
        hide = hide_secrets if needs.shows_secrets and not sees_secrets(caller) else None
        changes = [change for change in (cut, hide) if change is not None]
        return changes[0] if len(changes) == 1 else _both(*changes) if changes else None

    async def _scope_cut(self, caller: GatewayCaller, scope: CallScope, request: Any) -> Change | None:
        """Returns the change that leaves only a limited caller's own in an answer, None for no change. Raises
        PermissionDenied for a request outside of the caller's scope."""
        about = ("",) if scope.find is None else await scope.find(request, self._lookup)
        if any(not caller.sees(cluster) for cluster in about) or (not about and scope.cut is None):
            raise refused_scope(caller, about)
        return None if scope.cut is None else _cutting(scope.cut, caller)


def _needs(method: str) -> Needs:
    """Returns the rights that an RPC needs. Raises Internal for an RPC that is not in the table: no caller
    may call it."""
    if method not in RPCS:
        raise Internal(f"no rule admits callers to {method}", reason="NO_RIGHTS")
    return RPCS[method]


def _both(first: Change, second: Change) -> Change:
    def change(answer: Message) -> None:
        first(answer)
        second(answer)

    return change


def _cutting(cut: Callable[[Any, GatewayCaller], None], caller: GatewayCaller) -> Change:
    def change(answer: Message) -> None:
        cut(answer, caller)

    return change


class HttpGuard:
    """An ASGI application around the gateway's own."""

    def __init__(self, app: ASGIApp, callers: Callers, admission: Admission, on_refusal: Refusal) -> None:
        """`on_refusal` may delay the answer to a refused request."""
        self._app = app
        self._callers = callers
        self._admission = admission
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or refuses it in the form of its API."""
        if scope["type"] != "http" or self._admission is Admission.OPEN:
            await self._app(scope, receive, send)
            return
        segments = path_segments(scope)
        try:
            caller, is_own = self._admitted(scope, segments)
        except KeelmanError as error:
            give_way(scope)
            await self._on_refusal(error, (scope.get("client") or ("", 0))[0])
            await refusal(segments, error)(scope, receive, send)
            return
        if is_own:  # credentials for the gateway are not passed on
            headers = [(key, value) for key, value in scope["headers"] if key != b"authorization"]
            scope = {**scope, "headers": headers}
        if is_own:
            act_for(caller.name)
        told = send if sees_secrets(caller) else RedactedAnswer(send)
        await self._app({**scope, CALLER: caller}, receive, told)

    def _admitted(self, scope: Scope, segments: list[str]) -> tuple[GatewayCaller, bool]:
        """Returns the caller, and whether the authorization header was for the gateway itself."""
        route = needs_of_route(segments)
        needs = route.reads if scope["method"] in SAFE else route.writes
        if needs.right is None:
            if self._admission is Admission.CLOSED and segments not in HEALTH:
                self._callers.caller(self._admission, "")
            return EVERYBODY, False
        caller = self._callers.caller(self._admission, Headers(scope=scope).get("authorization", ""))
        check_right(caller, needs, f"{scope['method']} {scope['path']}")
        about = segments[1] if segments[0:1] == ["clusters"] and len(segments) > 1 else ""
        if not needs.scope.is_any and not caller.sees(about):
            raise refused_scope(caller, (about,))
        return caller, True


def path_segments(scope: Scope) -> list[str]:
    """Returns the segments of a path as its server reads them: decoded one by one, for a worker without empty ones.

    A worker's path with a segment that leads upwards counts as the administrators' path."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    first = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
    if first == "clusters":
        segment, rest = split_path(raw)
        parts = [_plain(part) for part in rest.decode("latin-1").split("/")]
        parts = ["admin"] if {".", ".."} & set(parts) else [*filter(None, parts)]
        return [first, named_cluster(segment), *parts]
    parts = [unquote(part) for part in raw.decode("latin-1").partition("?")[0].split("/")[2:]]
    return [*filter(None, [first]), *parts]


def _plain(part: str) -> str:
    return unquote(part).partition(";")[0]


def refusal(segments: list[str], error: KeelmanError) -> Response:
    """Returns the answer to a refused request, in the form of its API."""
    status = status_of(error)
    if segments[:1] == ["v0"]:
        response = ohara_answer(ohara.OharaError(status, "java.lang.SecurityException", error.message))
    else:
        response = Response(error_body(status, error.message), status, media_type="application/json")
    if isinstance(error, Unauthenticated):
        for challenge in CHALLENGES:
            response.headers.append("WWW-Authenticate", challenge)
    return response
