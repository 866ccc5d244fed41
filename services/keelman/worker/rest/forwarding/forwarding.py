"""Passes requests that need the leader, or a task's owner, on to it: at most two hops, as in Connect, and with
patience."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from keelman.model.errors import Conflict, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.supervise import first_of
from keelman.worker import deadlines, meant_member
from keelman.worker.errors import Elsewhere
from keelman.worker.rest.answers import CONFLICT, FORWARD_FAILED, NO_LEADER, Forwarded, error_response
from keelman.worker.rest.forwarding import repeats
from keelman.worker.storage.config_topic import NO_PLACE

if TYPE_CHECKING:
    from keelman.worker.group.herder import Herder
    from keelman.worker.rest.forwarding.peers import Peers

PATIENCE_SECONDS = 25.0  # beyond the session after which a killed leader is missed
LOOK_SECONDS = 0.2
REPLACED = f"{FORWARD_FAILED}: it leads no more"
HOP = "forward"
"""A key of the query: absent in a client's request, `true` after the first hop, `false` after the second."""


class Forwarder:
    """Forwards requests; one per worker; `close` must be called."""

    def __init__(self, tls: ssl.SSLContext, herder: Herder, read: Callable[[], Awaitable[None]]) -> None:
        """`tls` is for connections to other workers. `read` is awaited after another worker's success: the caller may
        call this worker next."""
        self._tls = tls
        self._herder = herder
        self._read = read
        self._patience = PATIENCE_SECONDS + herder.store.properties.session_ms / 1000
        self._peers: Peers | None = None

    async def close(self) -> None:
        """Ends the connections to other workers."""
        if self._peers is not None:
            await self._peers.close()

    async def done(self, request: Request, do: Callable[[], Awaitable[Response]]) -> Response:
        """Does the request here, or passes it on.

        Retries for a while during a rebalance, where Connect's clients get 409 at once, and after a leader has left
        with the request, where they get 500. The worker that does it then knows that it may have been done already.
        """
        until = time.monotonic() + min(self._patience, deadlines.remaining())
        came = self._herder.store.config.offset
        backoff = Backoff(first=0.05, most=1.0)
        first_hop = request.query_params.get(HOP) is None
        if not first_hop:
            meant_member.keep_to(self._herder.membership.member)
        while True:
            try:
                return await do()
            except Elsewhere as other:
                if meant_member.meant_for(self._herder.membership.member):
                    answer = await self._elsewhere(request, other.url)
                else:  # its sender has tried the next leader since
                    answer = Forwarded(error_response(409, CONFLICT))
            except Conflict:  # another worker leads: nothing of the transaction was written
                answer = Forwarded(error_response(409, CONFLICT), again=True)
            except Unavailable as error:
                if error.reason != NO_PLACE:
                    raise
                answer = Forwarded(error_response(409, CONFLICT), again=True)
            if answer.lost:
                repeats.repeat(came)
            if not (answer.again and first_hop) or time.monotonic() > until:
                return answer.response
            await asyncio.sleep(backoff.next())

    async def _elsewhere(self, request: Request, url: str) -> Forwarded:
        """Returns another worker's answer; a leader's only while it leads, for a hung leader never answers."""
        hop = request.query_params.get(HOP)
        if problem := self._herder.shared.problem(url):
            return Forwarded(error_response(500, problem))
        if hop == "false":
            return Forwarded(error_response(409, CONFLICT))
        if url in ("", self._herder.url):  # not known yet, or another worker has this one's address
            return Forwarded(error_response(409, NO_LEADER), again=True)
        query = [(key, value) for key, value in request.query_params.multi_items() if key != HOP]
        query.append((HOP, "true" if hop is None else "false"))
        answer = Forwarded(error_response(500, REPLACED), again=True, lost=True)

        async def ask() -> None:
            nonlocal answer
            place = self._herder.place
            leader = place.assignment.leader if place and url == self._herder.leader_url else ""
            answer = await self._others().answer(request, url, query, leader)

        await first_of(ask(), self._await_replaced(url))
        if answer.response.status_code < 300:
            await self._read()
        return answer

    async def _await_replaced(self, url: str) -> None:
        """Returns once the leader at this URL no longer leads; never for another worker."""
        if url != self._herder.leader_url:
            await asyncio.Event().wait()
        while self._herder.leader_url in ("", url):  # noqa: ASYNC110  (nothing notifies REST of rounds)
            await asyncio.sleep(LOOK_SECONDS)

    def _others(self) -> Peers:
        if self._peers is None:
            from keelman.worker.rest.forwarding.peers import Peers  # noqa: PLC0415  (5 MB and 0.1 s that a worker alone saves)

            self._peers = Peers(self._tls)
        return self._peers
