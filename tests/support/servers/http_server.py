"""Runs an HTTP server on a free port of loopback; a test's function answers."""

from __future__ import annotations

import contextlib
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType


class HttpRequest(BaseHTTPRequestHandler):
    """A request (`command`, `path`, `headers`), and the way to answer it."""

    def body(self) -> bytes:
        """The body of the request; read once."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, content: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Answers it."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):  # clients that disconnect, or do not trust it
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextlib.contextmanager
def http_server(serve: Callable[[HttpRequest], None], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that passes GETs and POSTs to `serve`, each in its own thread; over TLS with a context."""

    class Handler(HttpRequest):
        def do_GET(self) -> None:
            serve(self)

        do_POST = do_GET

    with _Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
