"""Calls Connect's REST API for commands: at the worker that --worker names, else through the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.exits import OK
from keelman.cli.kinds import CONNECTORS, WORKER_CLUSTERS, cluster_and_name
from keelman.cli.options import Cluster, Worker
from keelman.model.errors import (
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    Unauthenticated,
    Unavailable,
    class_of_http_status,
)
from keelman.workers.rest.problem_keys import PROBLEMS, header_list, with_keys

if TYPE_CHECKING:
    import httpx

CALL_SECONDS = 100.0
USER, PASSWORD_FILE = "KEELMAN_REST_USER", "KEELMAN_REST_PASSWORD_FILE"
"""Environment variables: user and password for workers that require them."""


class ConnectRest:
    """Connect's REST API below one URL. Raises the errors of keelman.model.errors with the answer's message."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url.rstrip("/")

    async def ask(self, method: str, path: str = "", body: Any = None) -> Any:
        """Sends a request; returns the answer's JSON."""
        import httpx  # noqa: PLC0415  (a tenth of a second that most commands need not spend)

        try:
            answer = await self._http.request(method, self._url + path, json=body)
        except httpx.TimeoutException:
            raise DeadlineExceeded(f"no answer from {self._url} in {CALL_SECONDS:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise Unavailable(f"cannot reach {self._url}: {error or type(error).__name__}") from None
        cls = class_of_http_status(answer.status_code)
        if cls is Unauthenticated and 'realm="keelman"' in answer.headers.get("www-authenticate", ""):
            raise cls(f"the gateway at {self._url} needs a context with a token: see `keelman context create --help`")
        if cls is Unauthenticated:
            raise cls(f"{self._url} needs a user: set {USER} and {PASSWORD_FILE} in the environment")
        try:
            document = answer.json() if answer.content else None
        except ValueError:
            what = f"{self._url}{path}: HTTP {answer.status_code}, and the answer is not JSON"
            raise cls(f"{what}: is this Connect's REST API?") from None
        if answer.status_code < 300:
            return document
        message = document.get("message") if isinstance(document, dict) else None
        raise cls(with_keys(str(message or f"HTTP {answer.status_code}"), header_list(answer.headers, PROBLEMS)))


class ConnectorRest(ConnectRest):
    """The REST API of one connector; `full` is its name for people, with the worker cluster."""

    def __init__(self, http: httpx.AsyncClient, url: str, name: str, cluster: str = "") -> None:
        super().__init__(http, f"{url.rstrip('/')}/connectors/{quote(name, safe='')}")
        self.cluster = ConnectRest(http, url)
        self.name = name
        self.full = f"{cluster}/{name}" if cluster else name


@dataclass(frozen=True, slots=True)
class Where:
    """The REST API to call: the gateway's for a worker cluster, or the worker's of --worker."""

    cluster: Cluster = ""
    worker: Worker = ""
    target: GatewayTarget = field(default_factory=GatewayTarget)

    def __post_init__(self) -> None:
        """Raises InvalidArgument for --cluster together with --worker."""
        if self.worker and self.cluster:
            raise InvalidArgument("--cluster: not together with --worker, which names a worker directly")

    def ask_connector(
        self, name: str, body: Callable[[ConnectorRest], Awaitable[int | None]], *, new: bool = False
    ) -> int:
        """Calls `body` with the REST API of one connector, named CLUSTER/NAME or NAME; returns the exit code.

        A `new` connector need not exist, so its cluster must be named, or be the only one.
        """

        async def whole() -> int | None:
            cluster, plain = ("", name) if self.worker else cluster_and_name(CONNECTORS, name, self.cluster)
            if not self.worker and not cluster:
                async with self.target.open() as gateway:
                    cluster, plain = (
                        (await only_cluster(gateway), name) if new else await gateway.connector_name(name, "")
                    )
            async with self._http(cluster) as (http, url):
                return await body(ConnectorRest(http, url, plain, cluster))

        return asyncio.run(whole()) or OK

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[ConnectRest]:
        """Yields the REST API of the worker, or of the named or only worker cluster."""
        cluster = self.cluster
        if not self.worker and not cluster:
            async with self.target.open() as gateway:
                cluster = await only_cluster(gateway)
        async with self._http(cluster) as (http, url):
            yield ConnectRest(http, url)

    @contextlib.asynccontextmanager
    async def _http(self, cluster: str) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
        import httpx  # noqa: PLC0415  (the same)

        if self.worker:
            url = self.worker if "://" in self.worker else f"http://{self.worker}"
            async with httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False, auth=login(os.environ)) as http:
                yield http, url
            return
        place = self.target.place
        token, certificates = place.context.token, place.context.certificates
        tls = True if certificates is None else ssl.create_default_context(cadata=certificates.decode())
        headers, auth = ({"Authorization": f"Bearer {token}"}, None) if token else ({}, login(os.environ))
        async with httpx.AsyncClient(
            timeout=CALL_SECONDS, trust_env=False, auth=auth, headers=headers, verify=tls
        ) as http:
            yield http, f"{place.http.rstrip('/')}/clusters/{quote(cluster, safe='')}"


def login(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns user and password for workers that require them; None if none are set. Raises InvalidArgument."""
    user, file = environment.get(USER, ""), environment.get(PASSWORD_FILE, "")
    if not user and not file:
        return None
    if not user or not file:
        missing, other = (PASSWORD_FILE, USER) if user else (USER, PASSWORD_FILE)
        raise InvalidArgument.of(missing, "", f"set, as {other} is")
    try:
        return user, Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        strerror = error.strerror if isinstance(error, OSError) else "not a text"
        raise InvalidArgument.of(PASSWORD_FILE, file, f"a readable file ({strerror})") from None


async def only_cluster(gateway: Gateway) -> str:
    """Returns the name of the only worker cluster. Raises NotFound for none, InvalidArgument for several."""
    names = [cluster.name for cluster in await gateway.list(WORKER_CLUSTERS)]
    if not names:
        raise NotFound("no worker cluster exists: create one with `keelman create worker-cluster NAME --start`")
    if len(names) > 1:
        raise InvalidArgument(f"--cluster: several worker clusters exist: choose one of {', '.join(names)}")
    return str(names[0])
