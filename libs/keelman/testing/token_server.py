"""A server of tokens for OAUTHBEARER (RFC 6749, client_credentials), for tests. Its tokens are unsecured."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(slots=True)
class TokenServer:
    """What it was asked, and how it answers."""

    url: str
    status: int = 200
    life_seconds: float = 3600.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Authorization header and form of each request."""


@contextlib.contextmanager
def token_server() -> Iterator[TokenServer]:
    """Runs one on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            told.asked.append((self.headers["Authorization"], form))
            now = time.time()
            claims = {"sub": "alice", "iat": now, "exp": now + told.life_seconds, "n": len(told.asked)}
            token = f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
            good = told.status == 200
            body = json.dumps({"access_token": token} if good else {"error": "invalid_client"}).encode()
            self.send_response(told.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = TokenServer(f"http://127.0.0.1:{server.server_port}/token")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


def _encoded(claims: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
