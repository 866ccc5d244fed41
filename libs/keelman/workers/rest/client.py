"""Sends requests to the workers' Connect REST API: the one path for the gateway's proxy and for all who ask
themselves."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TypeAlias

import httpx

from keelman.model.errors import DeadlineExceeded, KeelmanError, Unavailable
from keelman.workers.rest.access import WorkerAccess

CONNECT_SECONDS = 5.0
CONNECTIONS = 256
SAFE = ("GET", "HEAD", "OPTIONS")
Urls: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
"""The URLs of a cluster's running workers, without a final slash, the one to ask first in front.

Raises NotFound for an unknown worker cluster, Unavailable (NO_RUNNING_WORKER) when none of its workers runs."""

HeedsIds: TypeAlias = Callable[[str], Awaitable[bool]]
"""Whether the workers of a cluster do a request once by its id: those of keelman do, Apache Kafka Connect's know none.
False where that is not known now."""


async def heeds_none(cluster: str) -> bool:
    """Workers of which nothing is known."""
    return False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to any worker of a worker cluster."""

    method: str
    target: bytes
    """Path and query as they go over the wire, encoded."""
    headers: Sequence[tuple[bytes, bytes]] = ()
    body: Callable[[], AsyncIterable[bytes]] | bytes | None = None
    """Called for each try; a stream that was begun is not tried again."""
    repeatable: bool = False
    """Whether workers of any kind do it once, however often they get it; so it is with every safe method."""
    has_id: bool = False
    """Whether it has an id by which those of keelman do it once."""


class Rest:
    """Sends requests to whichever worker of a cluster answers."""

    def __init__(
        self, urls: Urls, *, request_seconds: float, access: WorkerAccess, heeds_ids: HeedsIds = heeds_none
    ) -> None:
        """`access` says by what https workers are trusted."""
        self._access = access
        self._urls, self._heeds_ids = urls, heeds_ids
        self._seconds = request_seconds
        self._client = httpx.AsyncClient(
            verify=access.tls,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=32, keepalive_expiry=5),
        )

    async def __aenter__(self) -> Rest:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def send(self, cluster: str, request: Outgoing) -> AsyncIterator[httpx.Response]:
        """The answer of the first worker that can be reached, its body not yet read; closed with the block.

        A worker that refuses the connection is passed over for the next; so is one that breaks off, when the request
        may be repeated. Raises NotFound, Unavailable (NO_RUNNING_WORKER, UNREACHABLE, BROKEN_OFF), DeadlineExceeded.
        """
        problems: list[str] = []
        for url in await self._urls(cluster):
            try:
                response = await self._try(url, request)
            except (httpx.ConnectError, httpx.ConnectTimeout, ssl.SSLError) as error:  # the last comes through httpx
                problems.append(f"{url}: {self._access.problem(error)}")
            except (httpx.TimeoutException, TimeoutError):
                raise DeadlineExceeded(f"worker {url} did not answer within {self._seconds:g} s") from None
            except httpx.TransportError as error:
                if not await self._may_repeat(cluster, request):
                    why = self._access.problem(error)
                    raise Unavailable(
                        f"worker {url} broke off before it answered ({why}): it may have done what was asked",
                        reason="BROKEN_OFF",
                    ) from None
                problems.append(f"{url}: {self._access.problem(error)}")
            else:
                try:
                    yield response
                finally:
                    await response.aclose()
                return
        raise Unavailable(
            f"no worker of worker cluster {cluster!r} can be reached: {'; '.join(problems)}",
            reason="UNREACHABLE",
            metadata={"worker_cluster": cluster},
        )

    async def _may_repeat(self, cluster: str, request: Outgoing) -> bool:
        if callable(request.body):
            return False
        if request.repeatable or request.method in SAFE:
            return True
        return request.has_id and await self._heeds_ids(cluster)

    async def text(self, url: str, target: bytes) -> str:
        """What one worker answers to a GET; raises Unavailable when it does not answer, or not with 200."""
        try:
            response = await self._try(url, Outgoing("GET", target))
            try:
                await response.aread()
            finally:
                await response.aclose()
        except (httpx.HTTPError, ssl.SSLError, TimeoutError) as error:
            raise Unavailable(f"worker {url}: {self._access.problem(error)}", reason="UNREACHABLE") from None
        if response.status_code != httpx.codes.OK:
            raise Unavailable(f"worker {url} answers {response.status_code}", reason="UNREACHABLE")
        return response.text

    async def _try(self, url: str, request: Outgoing) -> httpx.Response:
        base = httpx.URL(url)
        timeout = httpx.Timeout(self._seconds, connect=CONNECT_SECONDS).as_dict()
        outgoing = httpx.Request(
            request.method,
            base,
            headers=list(request.headers),
            content=request.body() if callable(request.body) else request.body,
            # The exact target: a URL object would resolve dots and encode again.
            extensions={"timeout": timeout, "target": base.raw_path.rstrip(b"/") + request.target},
        )
        async with asyncio.timeout(self._seconds):
            return await self._client.send(outgoing, stream=True)


def status_of(error: KeelmanError) -> int:
    """The HTTP status that Connect's clients know for an error of our own."""
    return {
        "InvalidArgument": 400,
        "Unauthenticated": 401,
        "PermissionDenied": 403,
        "NotFound": 404,
        "AlreadyExists": 409,
        "Conflict": 409,
        "FailedPrecondition": 409,
        "Exhausted": 413,
        "Unavailable": 503,
        "DeadlineExceeded": 504,
    }.get(type(error).__name__, 500)
