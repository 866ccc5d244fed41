"""The managed Connect API without nodes: a real state service and gateways, which start no process for a resource.

And requests as no SDK sends them: signed, but with any content.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import botocore.session
import httpx
import orjson
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.serialize import create_serializer

from keelman.runtime.processes.ports import free_ports
from support.gateway.managed_connect.world import ACCESS_FILE, KEY, OTHER_KEY, OTHER_SECRET, REGION, SECRET, sdk_client
from support.gateway.system import Process
from support.state.service import free_range

MODEL = botocore.session.Session().get_service_model("kafkaconnect")
SERIALIZER = create_serializer("rest-json", include_validation=False)
NOWHERE = "127.0.0.1:1"


@dataclass(frozen=True, slots=True)
class Told:
    """An answer. `kind`: the error's type, empty for a success."""

    status: int
    kind: str
    body: Any

    @property
    def message(self) -> str:
        """The message of the error."""
        return str(self.body["message"])


@dataclass(frozen=True, slots=True)
class Wire:
    """A request as its parts, which can still be changed."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Any = None

    @staticmethod
    def of(operation: str, params: Mapping[str, Any]) -> Wire:
        """The request that the SDK creates from an operation's parameters."""
        fields = SERIALIZER.serialize_to_request(dict(params), MODEL.operation_model(operation))
        body = orjson.loads(fields["body"]) if fields["body"] else None
        return Wire(fields["method"], fields["url_path"], fields["query_string"], body)


class Raw:
    """Sends signed requests with any content."""

    def __init__(self, endpoint: str, key: str = KEY, secret: str = SECRET) -> None:
        self._endpoint = endpoint
        self._signer = SigV4Auth(Credentials(key, secret), "kafkaconnect", REGION)
        self._http = httpx.Client(timeout=300, trust_env=False)
        self._tries = 0

    def send(self, wire: Wire) -> Told:
        """The answer to a request."""
        content = b"" if wire.body is None else orjson.dumps(wire.body)
        return self.send_bytes(wire.method, wire.path, query_text(wire.query), content)

    def send_bytes(self, method: str, path: str, query: str, content: bytes) -> Told:
        """The same for content that need not be JSON; each is a call of its own."""
        self._tries += 1
        url = f"{self._endpoint}{path}" + (f"?{query}" if query else "")
        headers = {"amz-sdk-invocation-id": f"raw-{id(self):x}-{self._tries:08d}"}
        request = AWSRequest(method, url, headers, content)
        self._signer.add_auth(request)
        target = f"{path}?{query}" if query else path
        sent = httpx.Request(
            method, url, headers=dict(request.headers.items()), content=content,
            extensions={"target": target.encode("ascii")},
        )  # fmt: skip
        answer = self._http.send(sent)
        kind = answer.headers.get("x-amzn-errortype", "")
        try:
            body = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            body = answer.text
        return Told(answer.status_code, kind, body)

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()


def query_text(query: Mapping[str, Any]) -> str:
    """A query as the SDK writes it."""
    return urlencode(dict(query), doseq=True, quote_via=quote)


@dataclass(frozen=True, slots=True)
class Bare:
    """A state service and gateways on it, with their endpoints; clients of two accounts at the first."""

    state: Process
    gateways: tuple[Process, ...]
    endpoints: tuple[str, ...]
    sdk: Any
    other: Any


def gateway_process(
    folder: Path, name: str, state_address: str, *, roles: str = "", **settings: str
) -> tuple[Process, str]:
    """A gateway that serves the API, not started; and its endpoint.

    `roles`: the lines in the file of access keys after the keys.
    """
    access = folder / f"access-{name}.toml"
    access.write_text(ACCESS_FILE + roles)
    grpc, http = free_ports(2)
    flags = {
        "port": str(grpc), "http-port": str(http), "state-address": state_address,
        "managed-connect-access-file": str(access), **settings,
    }  # fmt: skip
    return Process("gateway", flags, folder / f"{name}.log"), f"http://127.0.0.1:{http}"


@asynccontextmanager
async def bare_system(
    folder: Path, *gateways: Mapping[str, str], roles: str = "", **of_state: str
) -> AsyncIterator[Bare]:
    """A system without nodes that is ended with the block: gateways with these settings, or one.

    Also the roles in their files of access keys, and settings of the state service.
    """
    (port,) = free_ports(1)
    flags = {"home": str(folder), "port": str(port), "worker-ports": free_range(40), **of_state}
    state = Process("state", flags, folder / "state.log")
    gateway_processes = [
        gateway_process(folder, f"gateway-{number}", state.address, roles=roles, **settings)
        for number, settings in enumerate(gateways or ({},))
    ]
    started: list[Process] = []
    try:
        for process in (state, *(item for item, _ in gateway_processes)):
            started.append(process)
            await process.start()
        first = gateway_processes[0][1]
        yield Bare(
            state, tuple(process for process, _ in gateway_processes),
            tuple(endpoint for _, endpoint in gateway_processes), sdk_client(first),
            sdk_client(first, OTHER_KEY, OTHER_SECRET),
        )  # fmt: skip
    finally:
        for process in reversed(started):
            if process.process is not None:
                process.stop()
    for log in sorted(folder.glob("gateway-*.log")):
        assert "Traceback" not in log.read_text(), log.read_text()[-4000:]
