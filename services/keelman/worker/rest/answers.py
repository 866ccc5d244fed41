"""Makes answers of Connect's REST API: JSON, and for an error always `{"error_code", "message"}` under the same
status."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keelman.model import errors
from keelman.runtime.http.errors import error_body
from keelman.runtime.logs.logging import get_logger
from keelman.worker.errors import RestError

log = get_logger()

NO_LEADER = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
STARTING = "Worker is starting: its brokers have not answered yet"
SHUTTING_DOWN = "Worker is shutting down"
FORWARD_FAILED = "IO Error trying to forward REST request"
STATUS_TEXTS = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The answer of another worker. It may answer otherwise in a moment (`again`); where its answer was `lost`, it may
    have done the request."""

    response: Response
    again: bool = False
    lost: bool = False


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a JSON answer."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def error_response(status: int, message: str | None) -> Response:
    """Returns an error in Connect's form, without secrets."""
    return Response(error_body(status, message), status, media_type="application/json")


async def write_answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request even if this process, which ends, no longer waits for it."""
    begun = False

    async def sent(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, sent)
    except asyncio.CancelledError:
        if begun:
            raise
        await error_response(500, SHUTTING_DOWN)(scope, receive, send)


async def on_rest_error(request: Request, error: Exception) -> Response:
    """Handles RestError."""
    assert isinstance(error, RestError)
    response = error_response(error.status, error.message)
    response.headers.update(error.headers)
    return response


async def on_status(request: Request, error: Exception) -> Response:
    """Handles the router's own 404 and 405."""
    status = int(getattr(error, "status_code", 500))
    return error_response(status, STATUS_TEXTS.get(status, f"HTTP {status}"))


async def on_keelman_error(request: Request, error: Exception) -> Response:
    """Handles errors of our own parts."""
    assert isinstance(error, errors.KeelmanError)
    if isinstance(error, errors.InvalidArgument):
        return error_response(400, error.message)
    if isinstance(error, errors.NotFound):
        return error_response(404, error.message)
    if isinstance(error, errors.Conflict):
        return error_response(409, CONFLICT)
    return error_response(500, error.message)


async def on_exception(request: Request, error: Exception) -> Response:
    """Handles unforeseen errors."""
    log.error("rest_failed", method=request.method, path=request.url.path, error=repr(error))
    return error_response(500, str(error) or type(error).__name__)
