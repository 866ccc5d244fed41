"""Serves unsecured tokens for OAUTHBEARER (RFC 6749, client_credentials)."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.servers.http_server import HttpRequest, http_server


@dataclass(slots=True)
class TokenServer:
    """A running token server: the requests that it got, and its configured answers."""

    url: str
    status: int = 200
    life_seconds: float = 3600.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Authorization header and form of each request."""
    held: threading.Lock = field(default_factory=threading.Lock)
    """While a test holds it, no request is answered."""


@contextlib.contextmanager
def token_server(context: ssl.SSLContext | None = None) -> Iterator[TokenServer]:
    """Runs a server on a free port of loopback; over TLS with a context."""

    def serve(request: HttpRequest) -> None:
        server.asked.append((request.headers["Authorization"], request.body().decode()))
        with server.held:
            pass
        now = time.time()
        claims = {"sub": "alice", "iat": now, "exp": now + server.life_seconds, "n": len(server.asked)}
        token = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
        body = {"access_token": token} if server.status == 200 else {"error": "invalid_client"}
        request.answer(server.status, json.dumps(body).encode())

    with http_server(serve, context) as port:
        server = TokenServer(f"http{'s' if context else ''}://127.0.0.1:{port}/token")
        yield server


def _encoded(claims: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
