"""Hides secrets in the answers to callers who may not see them: of every HTTP API, and connectors of gRPC."""

from __future__ import annotations

import gzip
import zlib

import orjson
from google.protobuf.message import Message
from starlette.types import Message as AsgiMessage
from starlette.types import Send

from keelman.api.connect.v1.connector_service_pb2 import GetConnectorResponse
from keelman.connect.config.secret_keys import shown, shown_json
from keelman.gateway.caller import GatewayCaller
from keelman.model.access.roles import Right

_DROPPED = (b"content-length", b"content-encoding", b"etag")
"""Headers of an answer whose body is changed; an etag is a hash of the configuration with its secrets."""


def sees_secrets(caller: GatewayCaller) -> bool:
    """Whether a caller may see the secrets of connectors."""
    return caller.has(Right.SEE_SECRETS)


class RedactedAnswer:
    """Replaces `send` for one HTTP request: a JSON answer is collected, and sent with its secrets hidden. Other answers
    are passed on as they come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: AsgiMessage | None = None
        self._body = bytearray()

    async def __call__(self, message: AsgiMessage) -> None:
        """Takes one message of the application."""
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
            return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        headers = dict(self._start["headers"])
        body = _hidden(_plain(bytes(self._body), headers.get(b"content-encoding", b"")))
        kept = [(name, value) for name, value in self._start["headers"] if name.lower() not in _DROPPED]
        await self._send({**self._start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self._send({"type": "http.response.body", "body": body})


def _is_json(message: AsgiMessage) -> bool:
    return any(name.lower() == b"content-type" and b"json" in value for name, value in message["headers"])


def _plain(body: bytes, encoding: bytes) -> bytes:
    match encoding.lower():
        case b"gzip":
            return gzip.decompress(body)
        case b"deflate":
            return zlib.decompress(body)
    return body


def _hidden(body: bytes) -> bytes:
    """Returns a JSON text with its secrets hidden; nothing of a text that is not JSON after all."""
    try:
        return orjson.dumps(shown_json(orjson.loads(body))) if body else body
    except orjson.JSONDecodeError:
        return b"null"


def hide_secrets(answer: Message) -> None:
    """Hides the secrets of a connector's configuration in an answer of gRPC, in place."""
    assert isinstance(answer, GetConnectorResponse)
    config = answer.connector.config
    config.update(shown(config))
