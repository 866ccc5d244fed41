"""Parses one request from its raw path, and builds answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope

from keelman.gateway.ohara.wire.errors import OharaError, bad_value, illegal_argument, unsupported
from keelman.gateway.ohara.wire.json_types import parsed, without_nulls
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP
from keelman.gateway.ohara.wire.values import Settings, sent
from keelman.gateway.request_body import body_of
from keelman.runtime.http.raw_paths import decoded, raw_path, segments_of
from keelman.runtime.logs.redaction import REDACTOR

ACCEPTED = "The request has been accepted for processing, but the processing has not been completed."
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class OharaCall:
    """A request below /v0. `path`: its decoded segments; `target`: the path as it was sent, for messages."""

    method: str
    path: tuple[str, ...]
    target: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    receive: Receive
    max_body_bytes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    """The segments that a pattern names."""

    @property
    def group(self) -> str:
        """The group that the query names."""
        return self.parameter("group") or DEFAULT_GROUP

    def parameter(self, name: str) -> str:
        """Returns the value of a query parameter, the last of several; empty for none."""
        return next((value for key, value in reversed(self.query) if key == name), "")

    @property
    def content_type(self) -> str:
        """The content type of the body, in lower case and without parameters; empty for none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def pieces(self, limit: int) -> AsyncGenerator[bytes, None]:
        """Yields the body in pieces as they arrive. Raises OharaError for a body that is larger than the limit."""
        too_large = illegal_argument(f"the request's body is larger than {limit} bytes")
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise too_large
        return body_of(self.receive, limit, too_large)

    async def json(self) -> Any:
        """Returns the JSON value of the body. Raises OharaError, 404 for another content type."""
        if self.content_type not in ("", JSON_TYPE):
            raise unsupported(self.target)
        return parsed(b"".join([piece async for piece in self.pieces(self.max_body_bytes)]))

    async def settings(self) -> Settings:
        """Returns the body as settings. Raises OharaError."""
        return sent(await self.json())


def call_of(scope: Scope, receive: Receive, *, below: str, max_body_bytes: int) -> OharaCall:
    """Parses a request; `below` is the path of the API. Raises OharaError for a path that is not UTF-8."""
    path = raw_path(scope).removeprefix(below)
    headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
    return OharaCall(
        scope["method"],
        segments_of(path, _decoded),
        f"{below}{path}".lstrip("/"),
        _query(scope["query_string"].decode("latin-1")),
        headers,
        receive,
        max_body_bytes,
    )


def _query(text: str) -> tuple[tuple[str, str], ...]:
    parameters = []
    for part in filter(None, text.split("&")):
        key, _, value = part.partition("=")
        parameters.append((_text(key), _text(value)))
    return tuple(parameters)


def _text(text: str) -> str:
    """Decodes a key or value of the query; bytes that are not UTF-8 become a replacement, which equals
    no legal text."""
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode("utf-8", "replace")


def _decoded(text: str) -> str:
    """Decodes a segment of the path. Raises OharaError."""
    try:
        return decoded(text)
    except UnicodeDecodeError:
        raise bad_value(f"the URL has {text!r} in it, which is not UTF-8") from None


def ok(value: Any) -> Response:
    """Returns 200 with JSON, without nulls."""
    return _json(200, without_nulls(value))


def ok_with_nulls(value: Any) -> Response:
    """Returns 200 with JSON, nulls included: for definitions, which have nulls."""
    return _json(200, value)


def accepted() -> Response:
    """Returns 202: the request continues in the background."""
    return Response(ACCEPTED, 202, media_type="text/plain")


def no_content() -> Response:
    """Returns 204."""
    return Response(status_code=204)


def failed(error: OharaError) -> Response:
    """Returns the answer for an error, with the secrets known to this process removed."""
    body = error.body
    return _json(error.status, body | {"message": REDACTOR.hide(body["message"])})


def _json(status: int, value: Any) -> Response:
    try:
        body = orjson.dumps(value)
    except TypeError:  # a whole number of more than 64 bits, or half a character
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        body = text.encode("utf-8", "replace")
    return Response(body, status, media_type=JSON_TYPE)
