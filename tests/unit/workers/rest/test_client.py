"""A request whose worker breaks off is sent to the next worker, if workers do it only once however often it arrives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keelman.model.errors import Unavailable
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.client import Outgoing, Rest

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


class State:
    """The addresses of the cluster's workers."""

    def __init__(self, *ports: int) -> None:
        self.ports, self.engine = ports, "keelman"

    async def heeds_ids(self, cluster: str) -> bool:
        return self.engine == "keelman"

    async def rest_urls(self, cluster: str) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]


async def worker(answer: bytes) -> asyncio.Server:
    """Reads a request's head and answers with these bytes, or breaks off if there are none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("method", "fields", "engine", "repeated"),
    [
        ("GET", {}, "kafka-connect", True),
        ("POST", {"repeatable": True}, "kafka-connect", True),
        ("POST", {}, "keelman", False),
        ("DELETE", {"has_id": True}, "keelman", True),
        ("DELETE", {"has_id": True}, "kafka-connect", False),
    ],
)
async def test_what_may_be_repeated_is_repeated(
    method: str, fields: dict[str, bool], engine: str, repeated: bool
) -> None:
    breaking, answering = await worker(b""), await worker(ANSWER)
    state: Any = State(*(server.sockets[0].getsockname()[1] for server in (breaking, answering)))
    request = Outgoing(method, b"/connectors", **fields)
    state.engine = engine
    new_rest = Rest(state.rest_urls, request_seconds=10, access=WorkerAccess(), heeds_ids=state.heeds_ids)
    async with breaking, answering, new_rest as rest:
        if repeated:
            async with rest.send("demo", request) as response:
                assert response.status_code == 201
            return
        with pytest.raises(Unavailable, match="it may have carried out the request") as refused:
            async with rest.send("demo", request):
                pass
        assert refused.value.reason == "BROKEN_OFF"
