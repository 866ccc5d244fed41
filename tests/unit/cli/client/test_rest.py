"""Answers of Connect's REST API become errors of the command line, each with its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from keelman.cli import exits
from keelman.cli.client.rest import PASSWORD_FILE, USER, ConnectorRest, login
from keelman.cli.exits import exit_code_of
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.workers.rest.problem_keys import PROBLEMS
from support.servers.http_server import HttpRequest, http_server

PROBLEM = ("database.hostname", "no connection")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server(serve) as port:
        yield f"http://127.0.0.1:{port}"


def serve(request: HttpRequest) -> None:
    """Answers /connectors/x/503/{...} with that status and body, and with PROBLEM as a problem."""
    status, _, body = request.path.removeprefix("/connectors/x/").partition("/")
    headers = {PROBLEMS: json.dumps([PROBLEM])}
    request.answer(int(status), httpx.URL(f"http://x/{body}").path[1:].encode(), headers)


async def refused(url: str, status: int, body: str) -> KeelmanError:
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(KeelmanError) as caught:
            await ConnectorRest(http, url, "x").ask("GET", f"/{status}/{body}")
    return caught.value


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, exits.USAGE),
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


async def test_a_refused_configuration_names_its_keys(url: str) -> None:
    error = await refused(url, 400, '{"message":"1 error: no connection"}')
    assert error.message == "1 error: database.hostname: no connection"


async def test_who_is_not_let_in_is_told_how_to_say_who_asks(url: str) -> None:
    error = await refused(url, 401, "User cannot access the resource.")
    assert exit_code_of(error) == exits.FAILED
    assert "needs a user: set KEELMAN_REST_USER and KEELMAN_REST_PASSWORD_FILE in the environment" in error.message


async def test_what_no_worker_answered_is_told_with_its_status(url: str) -> None:
    error = await refused(url, 502, "bad gateway")
    assert exit_code_of(error) == exits.UNREACHABLE
    assert "HTTP 502" in error.message
    assert "is not JSON" in error.message


def test_who_asks_is_said_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("wonder\n")
    assert login({}) is None
    assert login({USER: "alice", PASSWORD_FILE: str(file)}) == ("alice", "wonder")
    for value, named in (
        ({USER: "alice"}, f"{PASSWORD_FILE}: '' is not legal: set"),
        ({PASSWORD_FILE: str(file)}, f"{USER}: '' is not legal: set"),
        ({USER: "alice", PASSWORD_FILE: "/not/here"}, "a readable file"),
    ):
        with pytest.raises(InvalidArgument, match=named):
            login(value)
