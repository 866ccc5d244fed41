"""DELETE `/_private`: deletes the stored objects of some kinds in some groups. It is off unless a token is configured,
which the caller must send."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from keelman.gateway.ohara.kinds import PLURALS
from keelman.gateway.ohara.wire.call import call_of, failed, no_content
from keelman.gateway.ohara.wire.errors import OharaError, bad_value, error_of, illegal_argument, unsupported
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey
from keelman.gateway.ohara.wire.resource import OharaResource
from keelman.gateway.request_body import ClientGone
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger

log = get_logger()

PATH = "/_private"
LAST_FIRST = (
    "pipeline", "connector", "stream", "shabondi", "topic", "worker", "broker", "zookeeper", "volume", "file", "object",
    "node",
)  # fmt: skip
"""The kinds in an order in which no object is deleted before its users."""
UNAUTHORIZED = "java.lang.SecurityException"


class Private:
    """An ASGI application. It is off if `token_file` is None."""

    def __init__(self, resources: Mapping[str, OharaResource], token_file: Path | None, *, max_body_bytes: int) -> None:
        self._resources = resources
        self._token_file = token_file
        self._limit = max_body_bytes

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
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        call = call_of(scope, receive, below="", max_body_bytes=self._limit)
        if self._token_file is None or call.method != "DELETE":
            raise unsupported(call.target)
        if not _is_token(call.headers.get("authorization", ""), self._token_file):
            response = failed(
                OharaError(401, UNAUTHORIZED, f"{PATH} wants the gateway's token: Authorization: Bearer ...")
            )
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        body = await call.json()
        groups, kinds = _words(body, "groups"), _words(body, "kinds")
        if unknown := [kind for kind in kinds if kind not in PLURALS]:
            raise bad_value(f'kinds: "{unknown[0]}" is not one of {", ".join(LAST_FIRST)}')
        for kind in LAST_FIRST:
            if kind in kinds and (resource := self._resources.get(PLURALS[kind])) is not None:
                await _wipe(kind, resource, set(groups))
        return no_content()


async def _wipe(kind: str, resource: OharaResource, groups: set[str]) -> None:
    """Deletes the objects of a kind. Raises OharaError for the first object that cannot be deleted."""
    for document in await resource.list():
        key = ObjectKey(
            document.get("group", DEFAULT_GROUP), document["hostname"] if kind == "node" else document["name"]
        )
        if key.group in groups:
            try:
                await resource.delete(key)
            except OharaError as error:
                raise illegal_argument(f"{kind} {key} is not deleted, and nothing after it: {error.message}") from None
            log.info("ohara_object_wiped", kind=kind, group=key.group, name=key.name)


def _words(value: Any, field: str) -> list[str]:
    words = value.get(field) if isinstance(value, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise bad_value(f"{field}: it must be an array of strings")
    return words


def _is_token(header: str, file: Path) -> bool:
    """Tells whether a header has the present token of the file. Raises OharaError if the file cannot be read."""
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OharaError(500, UNAUTHORIZED, f"the token file cannot be read: {type(error).__name__}") from None
    scheme, _, sent_token = header.partition(" ")
    return (
        bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(sent_token.strip().encode(), token.encode())
    )
