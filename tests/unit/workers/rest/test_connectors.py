"""How changes of connectors are sent to workers: with a request id that not all of them support."""

from __future__ import annotations

from typing import Any, cast

import httpx
import pytest

from keelman.workers.rest.asking import ClusterRequests, ReceivedAnswer
from keelman.workers.rest.client import Outgoing
from keelman.workers.rest.connectors import REQUEST_ID, RestConnectors


class Workers:
    """Record the requests that they get."""

    def __init__(self) -> None:
        self.asked: list[Outgoing] = []

    async def ask(self, cluster: str, request: Outgoing) -> ReceivedAnswer:
        self.asked.append(request)
        return ReceivedAnswer(200, httpx.Headers(), b'{"name": "c"}')


@pytest.mark.parametrize(("verb", "fields"), [("delete", {}), ("stop", {}), ("pause", {}), ("update", {"config": {}})])
async def test_a_change_with_an_id_may_be_repeated_by_that_alone(verb: str, fields: dict[str, Any]) -> None:
    workers = Workers()
    await getattr(RestConnectors(cast(ClusterRequests, workers)), verb)("demo", "c", *fields.values(), request_id="r")
    (sent,) = (request for request in workers.asked if request.method != "GET")
    assert (REQUEST_ID, b"r") in sent.headers
    assert (sent.has_id, sent.repeatable) == (True, False)
