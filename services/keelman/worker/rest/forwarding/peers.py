"""Passes requests on to other workers of the group, and their answers back."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx
from starlette.requests import Request
from starlette.responses import Response

from keelman.runtime.tls.failures import tls_error
from keelman.worker import deadlines, meant_member
from keelman.worker.rest import answers, key_notes
from keelman.worker.rest.forwarding import repeats, signatures
from keelman.worker.rest.views import UID_HEADER
from keelman.workers.rest.problem_keys import PROBLEMS

WRITE_SECONDS = 40.0  # requests that have begun in time may be written until then, and are answered
PASSED_ON = (
    *("authorization", "content-type", "accept", "if-match"),
    *(repeats.ID_HEADER, signatures.AUTHORIZATION, signatures.ALGORITHM),
)
KEPT = ("location", "content-type", "etag", UID_HEADER, key_notes.HEADER, PROBLEMS)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
BROKEN_OFF = (httpx.NetworkError, httpx.RemoteProtocolError)
ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # of TLS errors those that are no refusals
MOMENTARY = ((409, answers.CONFLICT), (409, answers.NO_LEADER), (503, answers.STARTING))
LOST = ((500, answers.FORWARD_FAILED), (500, answers.SHUTTING_DOWN))


class Peers:
    """Sends requests to other workers; one per worker; `close` must be called."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        """`tls` is for connections to other workers."""
        self._http = httpx.AsyncClient(trust_env=False, verify=tls)

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def answer(
        self, request: Request, url: str, query: Sequence[tuple[str, str]], leader: str
    ) -> answers.Forwarded:
        """Returns the answer of the worker at this URL to the request with this query; `leader` is the member that has
        to do it, empty where that does not matter."""
        try:
            answer = await self._pass_on(request, url, query, leader)
        except ssl.SSLError as error:  # httpx lets some through unchanged
            return answers.Forwarded(_unreachable(error))
        except NOT_SENT as error:  # it has ended, and the group has not noticed yet
            return answers.Forwarded(_unreachable(error), again=not _refuses(error))
        except BROKEN_OFF as error:  # it ended meanwhile
            return answers.Forwarded(_unreachable(error), again=True, lost=True)
        except httpx.HTTPError as error:
            return answers.Forwarded(_unreachable(error))
        headers = {name: answer.headers[name] for name in KEPT if name in answer.headers}
        if "location" in headers:  # as if this worker had made it
            headers["location"] = f"{request.base_url}{urlsplit(headers['location']).path.removeprefix('/')}"
        again, lost = (_is_one_of(kinds, answer) for kinds in (MOMENTARY, LOST))
        return answers.Forwarded(Response(answer.content, answer.status_code, headers), again or lost, lost)

    async def _pass_on(
        self, request: Request, url: str, query: Sequence[tuple[str, str]], leader: str
    ) -> httpx.Response:
        left = deadlines.remaining()
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers[deadlines.HEADER] = f"{left:.3f}"
        headers[repeats.NAME_HEADER] = repeats.name()
        if (since := repeats.since()) is not None:
            headers[repeats.HEADER] = str(since)
        if leader:
            headers[meant_member.HEADER] = leader
        # As it came: a URL object would resolve the dots that a connector may have as its name.
        path = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        target = {"target": f"{path}?{httpx.QueryParams(list(query))}".encode("ascii")}
        content = await request.body()
        timeout = httpx.Timeout(left + WRITE_SECONDS, connect=min(left, 5.0))
        return await self._http.request(
            request.method, url, headers=headers, content=content, timeout=timeout, extensions=target
        )


def _refuses(error: httpx.HTTPError) -> bool:
    """Returns whether TLS fails, for example by a certificate, which no time mends."""
    failure = tls_error(error)
    return failure is not None and not isinstance(failure, ENDED)


def _unreachable(error: httpx.HTTPError | ssl.SSLError) -> Response:
    return answers.error_response(500, f"{answers.FORWARD_FAILED}: {str(error) or type(error).__name__}")


def _is_one_of(kinds: Sequence[tuple[int, str]], answer: httpx.Response) -> bool:
    return any(answer.status_code == status and text in answer.text for status, text in kinds)
