"""Errors as Connect's REST API tells them: always `{"error_code", "message"}` under the same status."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response

from keelman.model import errors
from keelman.runtime.http_errors import error_body
from keelman.runtime.logging import get_logger

log = get_logger()

NO_LEADER = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
STATUS_TEXTS = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}


class RestError(Exception):
    """An answer other than success."""

    def __init__(self, status: int, message: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Elsewhere(Exception):
    """Only another worker, the leader or the owner of a task, can do this.

    `url` is where it answers, empty while nobody knows.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


def not_found(message: str) -> RestError:
    """404 with this message."""
    return RestError(404, message)


def invalid_config(problems: Sequence[str]) -> RestError:
    """400 with Connect's block for an invalid configuration."""
    lines = "\n".join(problems)
    return RestError(
        400,
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{lines}\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`",
    )


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def error_response(status: int, message: str | None) -> Response:
    """An error in Connect's form, without secrets."""
    return Response(error_body(status, message), status, media_type="application/json")


async def on_rest_error(request: Request, error: Exception) -> Response:
    """Handles RestError."""
    assert isinstance(error, RestError)
    return error_response(error.status, error.message)


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
    """Handles what nobody foresaw."""
    log.error("rest_failed", method=request.method, path=request.url.path, error=repr(error))
    return error_response(500, str(error) or type(error).__name__)
