"""A service's own questions to workers, as a user of theirs where they want one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import httpx

from keelman.model.errors import Unavailable
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.client import Outgoing, Rest

UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Received:
    """A worker's answer, whole."""

    status: int
    headers: httpx.Headers
    body: bytes


class Asking:
    """Sends requests with whole bodies. A cluster that asks for a password gets it from then on; no other does."""

    def __init__(self, rest: Rest, access: WorkerAccess) -> None:
        self._rest = rest
        self._access = access
        self._guarded: dict[str, bytes] = {}

    async def ask(self, cluster: str, request: Outgoing) -> Received:
        """The answer of a worker. Raises Unauthenticated, and what `Rest.send` raises."""
        known = self._guarded.get(cluster, b"")
        answer = await self._sent(cluster, _named(request, known))
        if answer.status == UNAUTHORIZED:
            self._access.logins.read_again()
            login = self._access.logins.of(cluster)
            if login is not None and login.authorization != known:
                self._guarded[cluster] = login.authorization
                answer = await self._sent(cluster, _named(request, login.authorization))
        if answer.status == UNAUTHORIZED:
            self._guarded.pop(cluster, None)
            raise self._access.refused(cluster)
        return answer

    async def _sent(self, cluster: str, request: Outgoing) -> Received:
        async with self._rest.send(cluster, request) as response:
            try:
                return Received(response.status_code, response.headers, await response.aread())
            except httpx.TransportError as error:
                url = response.url
                raise Unavailable(f"worker {url.host}:{url.port} broke off: {error}") from None


def _named(request: Outgoing, authorization: bytes) -> Outgoing:
    if not authorization:
        return request
    return dataclasses.replace(request, headers=(*request.headers, (b"authorization", authorization)))
