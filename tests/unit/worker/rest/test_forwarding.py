"""Where requests are forwarded: a leader that was frozen and lost its place refuses a request that it reads late."""

from __future__ import annotations

import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from keelman.worker import meant_member
from keelman.worker.errors import Elsewhere
from keelman.worker.rest.answers import Forwarded
from keelman.worker.rest.forwarding.forwarding import Forwarder

OTHER = "http://other:8083"


class Asking(Forwarder):
    """Records the requests that it would forward to another worker."""

    def __init__(self, herder: Any) -> None:
        super().__init__(ssl.create_default_context(), herder, _nothing)
        self.asked: list[str] = []

    async def _elsewhere(self, request: Request, url: str) -> Forwarded:
        self.asked.append(url)
        return Forwarded(Response("done there"))


async def _nothing() -> None:
    return


def request(query: str) -> Request:
    return Request({"type": "http", "method": "PUT", "path": "/", "query_string": query.encode(), "headers": []})


@pytest.mark.parametrize(
    ("query", "member", "later", "status"),
    [
        ("", "one", "one", 200),
        ("", "one", "another", 200),  # sent by a client, which waits for the answer
        ("", "", "one", 200),
        ("forward=true", "one", "one", 200),
        ("forward=true", "one", "another", 409),  # its sender has sent it to the next leader since
        ("forward=true", "", "one", 409),  # the same, read between the loss of one place and the next
    ],
)
async def test_a_request_of_another_worker_is_meant_for_the_member_that_it_reached(
    query: str, member: str, later: str, status: int
) -> None:
    membership = SimpleNamespace(member=member)
    store = SimpleNamespace(config=SimpleNamespace(offset=0), properties=SimpleNamespace(session_ms=6_000))
    forwarder = Asking(SimpleNamespace(membership=membership, store=store))

    async def do() -> Response:
        membership.member = later
        raise Elsewhere(OTHER)

    meant_member.begin({})
    answer = await forwarder.done(request(query), do)
    assert answer.status_code == status
    assert forwarder.asked == ([OTHER] if status == 200 else [])
