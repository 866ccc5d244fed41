"""Callers without credentials cost the gateway little: their requests are refused before they are read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import grpc
import httpx
import psutil
import pytest
import pytest_asyncio

from keelman.api.access.v1.join_service_pb2 import JoinRequest
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.gateway.access.turns import A_SECOND, AT_ONCE
from keelman.gateway.service import CALLS_AT_ONCE
from keelman.model.access.roles import token_digest
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from keelman.rpc.guarded import STRANGER_BYTES
from keelman.rpc.health import is_serving
from support.eventually import eventually
from support.gateway.system import System, running_system

pytestmark = pytest.mark.component
TOKEN = "token-of-ada"
WRITE_BATCH = "/keelman.api.connect.v1.BatchService/WriteBatch"
UPLOAD = "/keelman.api.connect.v1.PluginService/UploadPlugin"
JOIN = "/keelman.api.access.v1.JoinService/Join"
HEALTH = "/grpc.health.v1.Health/Check"
LARGE = b"\x0a\x00" * (24 << 20)
"""48 MiB that decode to 25 million empty messages."""
MOST_BYTES = 100 << 20
"""The memory that callers without credentials may cost."""
UNFINISHED = b"POST /v1/connectors HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 1000\r\n\r\n{"


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("strangers")
    file = folder / "access.toml"
    file.write_text(
        f"[[token]]\nsha256 = '{token_digest(TOKEN)}'\nname = 'ada'\nrole = 'admin'\n"
        "[[key]]\nid = 'AKID'\nsecret = 'secret'\naccount = '123450006789'\n"
    )
    async with running_system(folder, {}, {"access-file": str(file)}) as running:
        yield running


@pytest.fixture
def memory(system: System) -> psutil.Process:
    assert system.gateway.process is not None
    return psutil.Process(system.gateway.process.pid)


async def refusal(system: System, method: str, request: bytes, *, streams: bool = False) -> grpc.aio.AioRpcError:
    """The error of a call without credentials."""
    async with channel(system.gateway.address, translate=False) as link:
        call = (link.stream_unary if streams else link.unary_unary)(method)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(iter([request]) if streams else request, timeout=300)
        return refused.value


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer nonsense"),)], ids=["no token", "a wrong token"])
async def test_large_requests_are_not_read(
    system: System, memory: psutil.Process, metadata: tuple[tuple[str, str], ...]
) -> None:
    before = memory.memory_info().rss
    async with channel(system.gateway.address, translate=False) as link:

        async def refused() -> grpc.StatusCode:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await link.unary_unary(WRITE_BATCH)(LARGE, metadata=metadata, timeout=300)
            return error.value.code()

        assert {await refused() for _ in range(5)} == {grpc.StatusCode.UNAUTHENTICATED}
        codes = set(await asyncio.gather(*(refused() for _ in range(5))))
        assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert memory.memory_info().rss - before < MOST_BYTES


async def test_a_refused_upload_gets_its_reason(system: System) -> None:
    error = await refusal(system, UPLOAD, bytes(1 << 20), streams=True)
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED, error.details()


@pytest.mark.parametrize("method", [JOIN, HEALTH])
async def test_open_calls_take_small_requests_alone(system: System, memory: psutil.Process, method: str) -> None:
    before = memory.memory_info().rss
    for size in (STRANGER_BYTES + 1, 1 << 20, len(LARGE)):
        error = await refusal(system, method, LARGE[:size])
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error.details()
        assert f"at most {STRANGER_BYTES} bytes" in str(error.details())
    assert memory.memory_info().rss - before < MOST_BYTES
    assert await is_serving(system.gateway.address)


async def test_open_calls_are_served_beside_strangers_that_send_nothing(system: System) -> None:
    async with channel(system.gateway.address, translate=False) as link:
        silent = [link.stream_stream(JOIN)() for _ in range(20)]
        try:
            assert await is_serving(system.gateway.address)
            request = JoinRequest(token="none", name="n").SerializeToString()
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await link.unary_unary(JOIN)(request, timeout=300)
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION, (
                "the state service answers: it has no CA"
            )
        finally:
            for call in silent:
                call.cancel()


async def test_known_callers_are_served(system: System) -> None:
    async with channel(system.gateway.address, token=TOKEN) as link:
        await stub_of(link, "node", "node").ListNodes(ListNodesRequest())


@pytest.mark.parametrize(
    "authorization",
    [
        b"x",
        b"AWS4-HMAC-SHA256 Credential=ID/20261129/us-east-1/kafkaconnect/aws4_request,SignedHeaders=host,Signature=0",
    ],
    ids=["no signature", "an unknown key"],
)
async def test_unfinished_requests_are_refused_by_their_head(system: System, authorization: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(system.gateway.flags["http-port"]))
    try:
        writer.write(UNFINISHED % authorization)
        async with asyncio.timeout(300):
            answer = await reader.read()  # to the end: the connection is closed
        assert answer.startswith(b"HTTP/1.1 403"), answer
    finally:
        writer.close()


async def test_http_serves_others_beside_1100_unfinished_requests(system: System) -> None:
    port = int(system.gateway.flags["http-port"])
    opened = list[socket.socket]()
    try:
        for _ in range(1100):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", port), 5)
                opened.append(connection)
                connection.sendall(UNFINISHED % b"x")
        async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=10) as http:

            async def served() -> bool:
                return (await http.get("/", auth=("any", TOKEN))).status_code == 200

            await eventually(served)
    finally:
        for connection in opened:
            connection.close()


async def test_known_callers_do_not_wait_for_the_turns_of_strangers(system: System) -> None:
    async with (
        channel(system.gateway.address, translate=False) as theirs,
        channel(system.gateway.address, token=TOKEN, apart=True) as ours,
    ):
        nodes = stub_of(ours, "node", "node")
        await nodes.ListNodes(ListNodesRequest())

        async def refused() -> None:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await theirs.unary_unary("/keelman.api.node.v1.NodeService/ListNodes")(b"", timeout=300)
            assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED

        begun, strangers = time.monotonic(), [asyncio.create_task(refused()) for _ in range(500)]
        await eventually(lambda: sum(task.done() for task in strangers) >= AT_ONCE, every=0.001)
        async with asyncio.timeout(300):
            await nodes.ListNodes(ListNodesRequest())
        assert sum(task.done() for task in strangers) < len(strangers) // 2
        await asyncio.gather(*strangers)
        assert time.monotonic() - begun > 0.8 * (len(strangers) - AT_ONCE) / A_SECOND, "they had to wait"


async def test_a_client_may_begin_more_calls_than_a_connection_takes(system: System) -> None:
    async with channel(system.gateway.address, token=TOKEN) as link:
        nodes = stub_of(link, "node", "node")
        await asyncio.gather(*(nodes.ListNodes(ListNodesRequest()) for _ in range(10 * CALLS_AT_ONCE)))
