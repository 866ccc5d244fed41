"""Connect's REST API as commands ask it: of the worker that --worker names, else through the gateway."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from keelman.cli.commands import Target
from keelman.cli.kinds import CONNECTORS, cluster_and_name
from keelman.cli.system import running_system
from keelman.cli.target import gateway_address, home_of
from keelman.model.errors import DeadlineExceeded, Unavailable, class_of_http_status

CALL_SECONDS = 100.0
HTTP_PORT = 7480


class ConnectorRest:
    """One connector of one worker cluster. Raises the errors of keelman.model.errors with the answer's message."""

    def __init__(self, http: httpx.AsyncClient, url: str, name: str) -> None:
        self.name = name
        self._http = http
        self._url = f"{url.rstrip('/')}/connectors/{quote(name, safe='')}"

    async def ask(self, method: str, path: str = "", body: Any = None) -> Any:
        """The answer's JSON."""
        try:
            answer = await self._http.request(method, self._url + path, json=body)
        except httpx.TimeoutException:
            raise DeadlineExceeded(f"no answer from {self._url} in {CALL_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise Unavailable(f"cannot reach {self._url}: {error or type(error).__name__}") from None
        cls = class_of_http_status(answer.status_code)
        try:
            found = answer.json() if answer.content else None
        except ValueError:
            what = f"{self._url}{path}: HTTP {answer.status_code}, and the answer is not JSON"
            raise cls(f"{what}: is this Connect's REST API?") from None
        if answer.status_code < 300:
            return found
        message = found.get("message") if isinstance(found, dict) else None
        raise cls(str(message or f"HTTP {answer.status_code}"))


@contextlib.asynccontextmanager
async def connector_rest(target: Target, worker: str, name: str, cluster: str) -> AsyncIterator[ConnectorRest]:
    """The connector's, by the worker's URL, or through the gateway, where `name` may be CLUSTER/NAME."""
    url, plain = worker, name
    if not worker:
        cluster, plain = cluster_and_name(CONNECTORS, name, cluster)
        if not cluster:
            async with target.open() as gateway:
                cluster, plain = await gateway.connector_name(name, "")
        url = f"{_gateway_http(target.gateway, target.home)}/clusters/{quote(cluster, safe='')}"
    elif "://" not in worker:
        url = f"http://{worker}"
    async with httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False) as http:
        yield ConnectorRest(http, url, plain)


def _gateway_http(given: str | None, home: Path | None) -> str:
    """The gateway's HTTP address: that of the home's system, else its usual port where the gateway is."""
    system = running_system(home_of(home))
    if system is not None and not given and not os.environ.get("KEELMAN_GATEWAY"):
        return system.http.rstrip("/")
    address, _ = gateway_address(given, home_of(home))
    if system is not None and system.gateway == address:
        return system.http.rstrip("/")
    return f"http://{address.rpartition(':')[0]}:{HTTP_PORT}"
