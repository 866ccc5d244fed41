"""Has the leader, or a task's owner, do what only they can: at most two hops, as in Connect, and with patience."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from keelman.model.errors import Conflict
from keelman.runtime.backoff import Backoff
from keelman.worker.rest import deadlines, signatures
from keelman.worker.rest.errors import CONFLICT, NO_LEADER, Elsewhere, error_response

if TYPE_CHECKING:
    import httpx

PATIENCE_SECONDS = 15.0  # a leader that was killed is missed after its session of 6 s
WRITE_SECONDS = 40.0  # what has begun before its time was over may be written until then, and is answered
PASSED_ON = ("authorization", "content-type", "accept", "if-match", signatures.AUTHORIZATION, signatures.ALGORITHM)
KEPT = ("location", "content-type", "etag")
HOP = "forward"


class Forwarder:
    """One a worker; `close` must be called."""

    def __init__(self, tls: ssl.SSLContext, read: Callable[[], Awaitable[None]]) -> None:
        """`tls` is what other workers are asked with. `read` is awaited after another worker's success: the caller may
        ask this worker next."""
        self._tls = tls
        self._read = read

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415  (5 MB and 0.1 s of a start that a worker alone need not have)

        return httpx.AsyncClient(trust_env=False, verify=self._tls)

    async def close(self) -> None:
        """Ends the connections to other workers."""
        if "_http" in self.__dict__:
            await self._http.aclose()

    async def done(self, request: Request, do: Callable[[], Awaitable[Response]]) -> Response:
        """Does it here, or where it belongs.

        What a rebalance stands in the way of is tried again for a while, where Connect's clients get 409 at once: only
        when nothing can have been done yet, so that nothing is done twice.
        """
        until = time.monotonic() + min(PATIENCE_SECONDS, deadlines.remaining())
        backoff = Backoff(first=0.05, most=1.0)
        first_hop = request.query_params.get(HOP) is None
        while True:
            try:
                return await do()
            except Elsewhere as other:
                answer, again = await self._elsewhere(request, other.url)
            except Conflict:  # another worker leads: nothing of the transaction was written
                answer, again = error_response(409, CONFLICT), True
            if not (again and first_hop) or time.monotonic() > until:
                return answer
            await asyncio.sleep(backoff.next())

    async def _elsewhere(self, request: Request, url: str) -> tuple[Response, bool]:
        """Another worker's answer, and whether it may be another one in a moment."""
        hop = request.query_params.get(HOP)
        if hop == "false":
            return error_response(409, CONFLICT), False
        if not url:
            return error_response(409, NO_LEADER), True
        import httpx  # noqa: PLC0415  (the same)

        try:
            answer = await self._forwarded(request, url, "true" if hop is None else "false")
        except httpx.ConnectError as error:  # it has ended, and the group has not noticed yet
            return _unreachable(error), True
        except httpx.HTTPError as error:
            return _unreachable(error), False
        if answer.status_code < 300:
            await self._read()
        kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
        if "location" in kept:  # as if this worker had made it
            kept["location"] = f"{request.base_url}{urlsplit(kept['location']).path.removeprefix('/')}"
        again = answer.status_code == 409 and (CONFLICT in answer.text or NO_LEADER in answer.text)
        return Response(answer.content, answer.status_code, kept), again

    async def _forwarded(self, request: Request, url: str, hop: str) -> httpx.Response:
        import httpx  # noqa: PLC0415  (the same)

        left = deadlines.remaining()
        params = [(k, v) for k, v in request.query_params.multi_items() if k != HOP]
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers[deadlines.HEADER] = f"{left:.3f}"
        path = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        query = httpx.QueryParams([*params, (HOP, hop)])
        target = httpx.URL(url).copy_with(raw_path=f"{path}?{query}".encode("ascii"))
        content = await request.body()
        timeout = httpx.Timeout(left + WRITE_SECONDS, connect=min(left, 5.0))
        return await self._http.request(request.method, target, headers=headers, content=content, timeout=timeout)


def _unreachable(error: httpx.HTTPError) -> Response:
    return error_response(500, f"IO Error trying to forward REST request: {error or type(error).__name__}")
