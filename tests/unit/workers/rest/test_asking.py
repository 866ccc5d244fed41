"""A rebalance of Connect's workers, in which they answer 409 at once: the caller gets its answer when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from keelman.workers.rest import asking
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Outgoing, Rest

REBALANCE = b'{"error_code":409,"message":"Cannot complete request momentarily due to stale configuration"}'
TAKEN = b'{"error_code":409,"message":"Connector a already exists"}'
CREATE = Outgoing("POST", b"/connectors", body=b"{}")


class Workers:
    """Workers that give these answers in turn, then repeat the last."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.left, self.asked = list(answers), 0

    @contextlib.asynccontextmanager
    async def send(self, cluster: str, request: Outgoing) -> AsyncIterator[Any]:
        self.asked += 1
        status, body = self.left.pop(0) if len(self.left) > 1 else self.left[0]

        async def read() -> bytes:
            return body

        yield SimpleNamespace(status_code=status, headers=httpx.Headers(), aread=read)


async def asked(workers: Workers) -> int:
    return (await ClusterRequests(cast(Rest, workers), WorkerAccess()).ask("demo", CREATE)).status


async def test_a_request_is_made_again_until_the_rebalance_is_over() -> None:
    workers = Workers((409, REBALANCE), (409, REBALANCE), (201, b"{}"))
    assert (await asked(workers), workers.asked) == (201, 3)


async def test_a_rebalance_that_lasts_is_answered_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0.3)
    workers = Workers((409, REBALANCE))
    assert await asked(workers) == 409
    assert workers.asked > 1


async def test_a_name_that_is_taken_is_no_rebalance() -> None:
    workers = Workers((409, TAKEN))
    assert (await asked(workers), workers.asked) == (409, 1)
