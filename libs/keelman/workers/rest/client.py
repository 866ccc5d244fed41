"""Sends requests to the workers' Connect REST API: the only path for the gateway's proxy and for services."""

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
"""Returns the URLs of a cluster's running workers, without a final slash, the preferred one first.

Raises NotFound for an unknown worker cluster, Unavailable (NO_RUNNING_WORKER) if none of its workers runs.
"""

HeedsIds: TypeAlias = Callable[[str], Awaitable[bool]]
"""Returns whether a cluster's workers do a request once by its id: keelman's do, Apache Kafka Connect's know no ids.
False if that is unknown now."""


async def heeds_none(cluster: str) -> bool:
    """Returns False: nothing is known of the workers."""
    return False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to any worker of a worker cluster."""

    method: str
    target: bytes
    """Path and query as they are sent, encoded."""
    headers: Sequence[tuple[bytes, bytes]] = ()
    body: Callable[[], AsyncIterable[bytes]] | bytes | None = None
    """Called for each try; a request whose stream has begun is not retried."""
    repeatable: bool = False
    """Whether workers of any engine do the request once, however often they get it; so it is with every safe method."""
    has_id: bool = False
    """Whether the request has an id by which keelman's workers do it once."""


class Rest:
    """Sends requests to the first worker of a cluster that answers."""

    def __init__(
        self, urls: Urls, *, request_seconds: float, access: WorkerAccess, heeds_ids: HeedsIds = heeds_none
    ) -> None:
        """`access` has the trusted certificates of https workers."""
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
        """Returns the answer of the first reachable worker, its body not yet read; closed with the block.

        If a worker refuses the connection, the next is tried; also if it breaks off, provided that the request may be
        repeated. Raises NotFound, Unavailable (NO_RUNNING_WORKER, UNREACHABLE, BROKEN_OFF), DeadlineExceeded.
        """
        problems: list[str] = []
        for url in await self._urls(cluster):
            try:
                response = await self._try(url, request)
            except (httpx.ConnectError, httpx.ConnectTimeout, ssl.SSLError) as error:  # httpx does not wrap SSLError
                problems.append(f"{url}: {self._access.problem(error)}")
            except (httpx.TimeoutException, TimeoutError):
                raise DeadlineExceeded(f"worker {url} did not answer within {self._seconds:g} s") from None
            except httpx.TransportError as error:
                if not await self._may_repeat(cluster, request):
                    problem = self._access.problem(error)
                    raise Unavailable(
                        f"worker {url} closed the connection before it answered ({problem}): it may have carried "
                        "out the request",
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
        """Returns one worker's answer to a GET. Raises Unavailable if it does not answer, or not with 200."""
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
    """Returns the HTTP status that Connect's clients expect for an error of ours."""
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
