"""Sends a service's own requests to workers, with a user's credentials if they require them."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from dataclasses import dataclass

import httpx

from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.client import Outgoing, Rest

UNAUTHORIZED, CONFLICT = 401, 409
MOMENTARY = b"Cannot complete request"
PATIENCE_SECONDS = 5.0
"""The time for retries, from the first try on: keelman's workers have waited before they answer."""


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A worker's complete answer."""

    status: int
    headers: httpx.Headers
    body: bytes


def is_momentary(status: int, body: bytes) -> bool:
    """Returns whether a worker answers, in Connect's words, that a rebalance blocks the request: nothing was done.

    Connect's workers answer so at once, keelman's after a while of their own.
    """
    return status == CONFLICT and MOMENTARY in body


class ClusterRequests:
    """Sends requests with complete bodies. A cluster that requires a password gets it with every request from then on;
    no other cluster does. Requests that a rebalance blocks are retried for a while."""

    def __init__(self, rest: Rest, access: WorkerAccess) -> None:
        self._rest = rest
        self._access = access
        self._guarded: dict[str, bytes] = {}

    async def ask(self, cluster: str, request: Outgoing) -> ReceivedAnswer:
        """Returns a worker's answer. Raises Unauthenticated and the errors of `Rest.send`."""
        end, backoff = time.monotonic() + PATIENCE_SECONDS, Backoff(first=0.1, most=1.0)
        while True:
            answer = await self._known(cluster, request)
            if not is_momentary(answer.status, answer.body) or time.monotonic() >= end:
                return answer
            await asyncio.sleep(backoff.next())

    async def _known(self, cluster: str, request: Outgoing) -> ReceivedAnswer:
        cluster_state = self._guarded.get(cluster, b"")
        answer = await self._send(cluster, _named(request, cluster_state))
        if answer.status == UNAUTHORIZED:
            self._access.logins.read_again()
            login = self._access.logins.of(cluster)
            if login is not None and login.authorization != cluster_state:
                self._guarded[cluster] = login.authorization
                answer = await self._send(cluster, _named(request, login.authorization))
        if answer.status == UNAUTHORIZED:
            self._guarded.pop(cluster, None)
            raise self._access.refused(cluster)
        return answer

    async def _send(self, cluster: str, request: Outgoing) -> ReceivedAnswer:
        async with self._rest.send(cluster, request) as response:
            try:
                return ReceivedAnswer(response.status_code, response.headers, await response.aread())
            except httpx.TransportError as error:
                url = response.url
                raise Unavailable(f"worker {url.host}:{url.port} broke off: {error}") from None


def _named(request: Outgoing, authorization: bytes) -> Outgoing:
    if not authorization:
        return request
    return dataclasses.replace(request, headers=(*request.headers, (b"authorization", authorization)))
