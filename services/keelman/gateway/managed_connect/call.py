"""Parses one request from its raw path, and builds its answer."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope

from keelman.gateway.access.signatures import Sent, SignedCaller
from keelman.gateway.managed_connect.errors import WireError, bad, bad_member
from keelman.gateway.managed_connect.member_shapes import Block
from keelman.gateway.managed_connect.members import MAX_RESULTS, TAG_KEYS
from keelman.gateway.request_body import body_of
from keelman.runtime.http import raw_paths
from keelman.runtime.logs.redaction import REDACTOR

JSON_TYPE = "application/json"
MAX_BODY_BYTES = 2 << 20
INVOCATION = "amz-sdk-invocation-id"
"""A header whose value SDKs repeat with each try of one call."""
_INVOCATION = re.compile(r"[A-Za-z0-9-]{8,64}")


@dataclass(frozen=True, slots=True)
class ManagedCall:
    """A request of a caller. `arn`: the ARN in its path, empty for none; `query`: decoded."""

    caller: SignedCaller
    arn: str
    query: Mapping[str, list[str]]
    sent: Sent

    def body(self, shape: Block) -> dict[str, Any]:
        """Returns the members of the body. Raises WireError for a body that is no JSON object, and
        for illegal members."""
        try:
            value = orjson.loads(self.sent.body or b"{}")
        except orjson.JSONDecodeError:
            raise bad("The request's body is not JSON.") from None
        if not isinstance(value, dict):
            raise bad("The request's body must be a JSON object.")
        return shape.checked("", value)

    def parameter(self, name: str) -> str:
        """Returns a parameter of the query; empty for none. Raises WireError for a repeated parameter."""
        values = self.query.get(name, [])
        if len(values) > 1:
            raise bad_member(name, "The parameter is given more than once.")
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Returns a parameter that is true or false, False for none. Raises WireError."""
        text = self.parameter(name) or "false"
        if text not in ("true", "false"):
            raise bad_member(name, "true or false is expected.")
        return text == "true"

    @property
    def max_results(self) -> int:
        """The size of a page. Raises WireError."""
        text = self.parameter("maxResults") or str(MAX_RESULTS)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_RESULTS:
            raise bad_member("maxResults", f"The value must be between 1 and {MAX_RESULTS}.")
        return int(text)

    @property
    def tag_keys(self) -> list[str]:
        """The tag keys that the query names. Raises WireError."""
        if "tagKeys" not in self.query:
            raise bad_member("tagKeys", "The parameter is required.")
        return TAG_KEYS.checked("tagKeys", self.query["tagKeys"])

    @property
    def request_id(self) -> str:
        """The same id for each try of one call by an SDK that sends INVOCATION, so that a repeated write counts once;
        empty for other clients."""
        header = self.sent.headers.get(INVOCATION, "")
        return f"managed-connect/{self.caller.key_id}/{header}" if _INVOCATION.fullmatch(header) else ""


def head_of(scope: Scope) -> Sent:
    """Returns a request unchanged, without its body."""
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name, text = key.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    return Sent(scope["method"], raw_paths.raw_path(scope), scope["query_string"].decode("latin-1"), headers)


async def read_body(receive: Receive) -> bytes:
    """Reads the body of a request. Raises WireError for a body that is too large, ClientGone."""
    too_large = bad(f"The request's body is larger than {MAX_BODY_BYTES} bytes.")
    return b"".join([piece async for piece in body_of(receive, MAX_BODY_BYTES, too_large)])


def query_of(text: str) -> dict[str, list[str]]:
    """Returns a query's parameters. Raises WireError."""
    values: dict[str, list[str]] = {}
    for part in filter(None, text.split("&")):
        key, _, value = part.partition("=")
        values.setdefault(decoded(key.replace("+", " ")), []).append(decoded(value.replace("+", " ")))
    return values


def decoded(text: str) -> str:
    """Decodes a part of a URL. Raises WireError for bytes that are not UTF-8, and for a NUL character."""
    try:
        plain = raw_paths.decoded(text)
    except UnicodeDecodeError:
        raise bad("The URL contains bytes that are not UTF-8.") from None
    if "\0" in plain:
        raise bad("The URL has a NUL character in it.")
    return plain


def ok(value: Mapping[str, Any]) -> Response:
    """Returns 200."""
    return _json(200, value, {})


def failed(error: WireError) -> Response:
    """Returns the answer for an error, with the secrets known to this process removed."""
    message = REDACTOR.hide(error.message)
    plain = re.sub(r"[^ -~]+", " ", message)[:1000].strip()
    return _json(error.status, {"message": message}, {"x-amzn-ErrorType": error.kind, "x-amzn-errormessage": plain})


def _json(status: int, value: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    own = {"x-amzn-requestid": str(uuid.uuid4())}
    return Response(orjson.dumps(value), status, headers=own | dict(headers), media_type=JSON_TYPE)
