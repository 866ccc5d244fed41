"""Judges the paths, methods and types of REST requests before any handler sees them, as Connect's servlet does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import unquote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from keelman.connect.java.text import hash_order
from keelman.runtime.http.raw_paths import PathPattern
from keelman.worker import deadlines, meant_member
from keelman.worker.errors import RestError
from keelman.worker.rest.answers import STATUS_TEXTS
from keelman.worker.rest.bodies import JSON_TYPE
from keelman.worker.rest.context import Handler
from keelman.worker.rest.forwarding import repeats

# As Connect's standalone worker answers (tests/recorded/worker/standalone.json).
NO_TASKS = "Kafka Connect in standalone mode does not support externally setting task configurations."
NO_FENCE = "Kafka Connect in standalone mode does not support exactly-once source connectors."
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_WITHOUT_BODY = ("", "0")


def refusing(message: str) -> Handler:
    """Returns a handler that answers every request with 500 and this message."""

    async def refuse(request: Request) -> Response:
        raise RestError(500, message)

    return refuse


def as_put(put: Handler) -> Handler:
    """Returns a handler for POST that does the same as PUT, also for the leader that it may be passed on to."""

    async def handle(request: Request) -> Response:
        request.scope["method"] = "PUT"
        return await put(request)

    return handle


class PathRoute(Route):
    """Its handler receives every method, unknown ones too, and refuses those that it does not answer."""

    def __init__(self, path: str, handler: Callable[[Request], Awaitable[Response]], answered: Iterable[str]) -> None:
        super().__init__(path, handler)
        self.methods = None
        self._pattern = PathPattern(path)
        self._answered = frozenset(answered) | {"OPTIONS"}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether the path is this one, with the decoded segments that it names. Called by Starlette."""
        segments = scope["path"].removeprefix("/").split("/") if scope["type"] == "http" else ()
        variables = self._pattern.match(segments)
        if variables is None or not all(variables.values()):
            return Match.NONE, {}
        named = {name: unquote(segment) for name, segment in variables.items()}
        return Match.FULL, {"endpoint": self.endpoint, "path_params": named}

    def answers(self, scope: Scope) -> bool:
        """Returns whether path and method exist."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return self.matches(scope)[0] is Match.FULL and method in self._answered


def exists(routed: Starlette, scope: Scope) -> bool:
    """Returns whether any of the application's routes answers this."""
    return any(route.answers(scope) for route in routed.routes if isinstance(route, PathRoute))


def plain_path(raw: str) -> str:
    """Returns the path with its escapes, so that names may hold slashes; without parameters after `;` and a slash at
    the end. Dots are names, as they are to Connect.

    Raises 400 for an illegal path.
    """
    plain = unquote_to_bytes(raw)
    if not raw.startswith(("/", "*")) or _BAD_ESCAPE.search(raw) or any(byte < 0x20 or byte == 0x7F for byte in plain):
        raise RestError(400, "Bad Request")
    try:
        plain.decode()
    except UnicodeDecodeError:
        raise RestError(400, "Bad UTF-8 encoding") from None
    if "//" in raw:
        raise RestError(400, "Ambiguous URI empty segment")
    segments: list[str] = []
    for segment in raw.split("/")[1:]:
        name, parameter, _ = segment.partition(";")
        if unquote(name) in (".", "..") and (parameter or "%" in name):
            raise RestError(400, "Ambiguous URI path segment")
        segments.append(name)
    while segments and not segments[-1]:
        segments.pop()
    return "/" + "/".join(segments)


def by_method(handlers: Mapping[str, Handler], *, any_type: bool = False) -> Handler:
    """Returns one handler for a path; `any_type` takes bodies of any type."""

    async def handle(request: Request) -> Response:
        deadlines.begin(request.headers)
        repeats.begin(request.headers)
        meant_member.begin(request.headers)
        if request.method == "OPTIONS":
            return _options(handlers)
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            raise RestError(405, STATUS_TEXTS[405])
        if not _takes_json(request.headers.get("accept", "")):
            raise RestError(406, STATUS_TEXTS[406])
        if not any_type and _has_body(request) and not _is_json(request):
            raise RestError(415, STATUS_TEXTS[415])
        return await handler(request)

    return handle


def _options(handlers: Mapping[str, Handler]) -> Response:
    methods = hash_order([*handlers, "OPTIONS", *(("HEAD",) if "GET" in handlers else ())])
    return Response(", ".join(methods), headers={"allow": ",".join(methods), "content-type": "text/plain"})


def _has_body(request: Request) -> bool:
    headers = request.headers
    return headers.get("content-length", "") not in _WITHOUT_BODY or "transfer-encoding" in headers


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON_TYPE


def _takes_json(accept: str) -> bool:
    types = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return types == [""] or any(media_type in (JSON_TYPE, "application/*", "*/*", "*") for media_type in types)
