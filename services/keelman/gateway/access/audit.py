"""Records who did what: an event for each call that writes, and for each call that is refused. It goes to the state
service, and as a line of JSON to a file."""

from __future__ import annotations

import logging
import os
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.message import Message
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from keelman.api.connect.v1.batch_service_pb2 import WriteBatchRequest
from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.gateway.access.audit_queue import AuditQueue
from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.access.rights import RPCS
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.rpc.batches import methods_in
from keelman.rpc.errors import code_name, is_refused, status_name
from keelman.rpc.guarded import request_of
from keelman.rpc.handlers import Interceptor, Wraps, answers_of, wrapped
from keelman.rpc.identity import Identity, peer_identity
from keelman.rpc.server import peer_host
from keelman.rpc.times import to_timestamp
from keelman.workers.rest.client import SAFE

FILE_BYTES, FILES = 16 << 20, 10
"""The size at which the file becomes an older one, and how many older ones are kept."""
REFUSED_A_SECOND = 20
"""The most refused calls that are recorded in one second; of more only the number is."""
MAX_TEXT = 2048
"""The most characters of a text in an event."""
UNKNOWN = "unknown"
REFUSED = frozenset((401, 403))
_KEY = re.compile(r"Credential=([^/,\s]{1,128})/")


class Audit:
    """The audit of a gateway: its file, if there is one, and its events on their way to the state service. Used in one
    loop."""

    def __init__(
        self, file: Path | None, queue: AuditQueue, gateway: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`gateway` is this gateway's name. Raises InvalidArgument for a file that cannot be written."""
        self._handler = None if file is None else _opened(file)
        self.queue = queue
        self._gateway = gateway
        self._clock = clock
        self._second, self._refused, self._left_out = 0, 0, 0

    def write(self, *, is_refused: bool = False, **fields: str) -> None:
        """Records one call, unless too many calls were refused in this second; their number is in the next event."""
        if is_refused and self._is_too_much():
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        now = datetime.now(UTC)
        texts: dict[str, Any] = {name: _legal(text) for name, text in fields.items()}
        self.queue.add(
            AuditEvent(
                id=uuid.uuid4().hex, time=to_timestamp(now), gateway=self._gateway, refused=is_refused,
                left_out=left_out, **texts,
            )
        )  # fmt: skip
        if self._handler is not None:
            line: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds"), **texts}
            text = orjson.dumps(line | ({"left_out": left_out} if left_out else {})).decode()
            self._handler.emit(logging.LogRecord("audit", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Closes the file."""
        if self._handler is not None:
            self._handler.close()

    def _is_too_much(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._refused = second, 0
        self._refused += 1
        return self._refused > REFUSED_A_SECOND


def _opened(file: Path) -> RotatingFileHandler:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = RotatingFileHandler(file, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", delay=False)
        os.chmod(file, 0o600)
    except OSError as error:
        legal = f"a file that can be written ({error.strerror})"
        raise InvalidArgument.of("gateway.audit_file", str(file), legal) from None
    return handler


def _legal(text: str) -> str:
    """Returns a caller's text without lone surrogates, and cut to a bounded length."""
    return text[:MAX_TEXT].encode("utf-8", "replace").decode()


class AuditedRpcs(Interceptor):
    """Records calls of gRPC; it runs before the guard."""

    def __init__(self, audit: Audit, callers: Callers, admission: Admission) -> None:
        self._audit = audit
        self._callers = callers
        self._admission = admission

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wraps the handler of a call."""
        handler = await continuation(details)
        if handler is None:
            return None
        unary, stream = (partial(wrap, details.method) for wrap in (self._unary, self._stream))
        return wrapped(handler, Wraps(unary, stream, upload=unary, both=stream))

    def _unary(self, name: str, inner: Any) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                answer = await inner(request, context)
            except BaseException as error:
                self._note(name, request, context, outcome_of(error, context))
                raise
            self._note(name, request, context, outcome_of(None, context))
            return answer

        return call

    def _stream(self, name: str, inner: Any) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                async for answer in answers_of(inner(request, context)):
                    yield answer
            except Exception as error:
                self._note(name, request, context, outcome_of(error, context))
                raise
            if is_refused(context):
                self._note(name, request, context, status_name(context))

        return call

    def _note(self, name: str, request: Any, context: Any, outcome: str) -> None:
        refused = outcome in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        needs = RPCS.get(name)
        if not (refused or (needs is not None and needs.changes)):
            return
        metadata = dict(context.invocation_metadata() or ())
        authorization = str(metadata.get("authorization", ""))
        caller, role = _caller(self._callers, self._admission, authorization, peer_identity(context))
        about = {} if refused and caller == UNKNOWN else _about(name, request)
        self._audit.write(
            is_refused=refused,
            caller=caller,
            role=role,
            address=peer_host(context) or "unix",
            call=name.rpartition(".")[2],
            **about,
            outcome=outcome,
        )


def outcome_of(error: BaseException | None, context: Any) -> str:
    """Returns the status of a call as a word: OK, or the name of a gRPC status."""
    if error is None:
        return "OK"
    if isinstance(error, KeelmanError):
        return code_name(error)
    return status_name(context)


def _about(name: str, request: Any) -> dict[str, str]:
    """Returns the resource that a request names, and its id."""
    try:
        message = request_of(name, request)
        if not isinstance(message, Message):
            return {}
        resource = _writes(message) if isinstance(message, WriteBatchRequest) else _resource(message)
    except InvalidArgument:
        return {}
    about = {"resource": resource, "request_id": _text(message, "request_id")}
    return {field: text for field, text in about.items() if text}


def _writes(batch: WriteBatchRequest) -> str:
    return ", ".join(f"{write.method} {_resource(write.request)}".rstrip() for write in methods_in(batch))


def _resource(message: Message) -> str:
    return "/".join(filter(None, (_text(message, "worker_cluster"), _text(message, "name"))))


def _text(message: Message, field: str) -> str:
    found = getattr(message, field, "")
    return found if isinstance(found, str) else ""


class AuditedHttp:
    """Records requests of HTTP; an ASGI application around the guard."""

    def __init__(self, app: ASGIApp, audit: Audit, callers: Callers, admission: Admission) -> None:
        self._app = app
        self._audit = audit
        self._callers = callers
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def noting(message: AsgiMessage) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            if scope["method"] not in SAFE or status in REFUSED:
                self._note(scope, status)

    def _note(self, scope: Scope, status: int) -> None:
        request_id = Headers(scope=scope).get("keelman-request-id", "")[:256]
        caller, role = self._caller(Headers(scope=scope).get("authorization", ""), is_refused=status in REFUSED)
        client = scope.get("client")
        self._audit.write(
            is_refused=status in REFUSED,
            caller=caller,
            role=role,
            address=client[0] if client else "",
            call=f"{scope['method']} {scope['path'][:1024]}",
            **({"request_id": request_id} if request_id else {}),
            outcome=str(status or "no answer"),
        )

    def _caller(self, authorization: str, *, is_refused: bool) -> tuple[str, str]:
        key = _KEY.search(authorization)
        if key is None:
            return _caller(self._callers, self._admission, authorization)
        known = None if is_refused else self._callers.keys.get(key[1])
        return (f"key {key[1]}", str(known.role)) if known is not None else (UNKNOWN, "")


def _caller(
    callers: Callers, admission: Admission, authorization: str, identity: Identity | None = None
) -> tuple[str, str]:
    """Returns the name and the role of a call's caller, `unknown` and none for wrong credentials."""
    try:
        caller = callers.caller(admission, authorization, identity)
    except KeelmanError:
        return UNKNOWN, ""
    return caller.name, str(caller.role)
