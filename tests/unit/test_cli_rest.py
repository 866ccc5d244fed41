"""What commands make of answers of Connect's REST API: which error, with which exit code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from keelman.cli import exits
from keelman.cli.exits import exit_code_of
from keelman.cli.rest import ConnectorRest
from keelman.model.errors import KeelmanError


class Answers(BaseHTTPRequestHandler):
    """Answers /connectors/x/503/{...} with that status and body."""

    def do_GET(self) -> None:
        status, _, body = self.path.removeprefix("/connectors/x/").partition("/")
        self.send_response(int(status))
        self.end_headers()
        self.wfile.write(httpx.URL(f"http://x/{body}").path[1:].encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def refused(url: str, status: int, body: str) -> KeelmanError:
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(KeelmanError) as caught:
            await ConnectorRest(http, url, "x").ask("GET", f"/{status}/{body}")
    return caught.value


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, exits.USAGE),
        (401, exits.FAILED),
        (403, exits.FAILED),
        (404, exits.NOT_FOUND),
        (409, exits.CONFLICT),
        (422, exits.USAGE),
        (429, exits.FAILED),
        (500, exits.FAILED),
        (502, exits.UNREACHABLE),
        (503, exits.UNREACHABLE),
    ],
)
async def test_a_refusal_ends_with_the_exit_code_that_is_promised(url: str, status: int, code: int) -> None:
    error = await refused(url, status, '{"message":"why"}')
    assert (error.message, exit_code_of(error)) == ("why", code)


async def test_what_no_worker_answered_is_told_with_its_status(url: str) -> None:
    error = await refused(url, 502, "bad gateway")
    assert exit_code_of(error) == exits.UNREACHABLE
    assert "HTTP 502" in error.message
    assert "is not JSON" in error.message
