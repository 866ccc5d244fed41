"""Forwarding passes answers through as the far end sent them, and reports its own errors for calls that cannot pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from keelman.api.connect.v1 import plugin_service_pb2 as plugins
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.connect.v1.plugin_service_pb2_grpc import (
    PluginServiceServicer,
    PluginServiceStub,
    add_PluginServiceServicer_to_server,
)
from keelman.api.copy.v1 import copy_run_service_pb2 as runs
from keelman.api.copy.v1.copy_run_service_pb2_grpc import (
    CopyRunServiceServicer,
    CopyRunServiceStub,
    add_CopyRunServiceServicer_to_server,
)
from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.api.node.v1 import session_service_pb2
from keelman.api.node.v1.node_pb2 import Node
from keelman.api.node.v1.node_service_pb2_grpc import (
    NodeServiceServicer,
    NodeServiceStub,
    add_NodeServiceServicer_to_server,
)
from keelman.model.errors import Conflict, InvalidArgument
from keelman.rpc.channels import channel
from keelman.rpc.forward import forwarded
from keelman.rpc.server import RpcService, serve
from support.eventually import eventually

PLUGINS = plugins.DESCRIPTOR.services_by_name["PluginService"]
NODES = nodes.DESCRIPTOR.services_by_name["NodeService"]
RUNS = runs.DESCRIPTOR.services_by_name["CopyRunService"]
PEER = "the far service at far.sock"


class Far(NodeServiceServicer, CopyRunServiceServicer, PluginServiceServicer):
    """The far end: records the requests that reach it, and answers as set."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.metadata: dict[str, Any] = {}
        self.seconds_left: float | None = None
        self.go_on = asyncio.Event()
        self.watchers = 0
        self.begun: list[str] = []
        self.uploads: list[str] = []

    async def UploadPlugin(self, requests: Any, context: Any) -> Any:
        self.metadata = dict(context.invocation_metadata())
        size, how = 0, "cut off"
        try:
            async for request in requests:
                size += len(request.chunk)
                self.begun.append(request.header.name)
                if request.header.name == "full":
                    raise Conflict("no room")
            if "cut" in self.begun:  # gRPC ends a cancelled stream like a complete one, then cancels its handler
                await asyncio.Event().wait()
            how = "whole"
        finally:
            self.uploads.append(how)
        return plugins.UploadPluginResponse(plugin=Plugin(name="p", size_bytes=size))

    def _note(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        self.metadata = dict(context.invocation_metadata())
        self.seconds_left = context.time_remaining()

    async def GetNode(self, request: Any, context: Any) -> Any:
        self._note(request, context)
        return nodes.GetNodeResponse(node=Node(name=request.name, uid="u1"))

    async def ListNodes(self, request: Any, context: Any) -> Any:
        raise Conflict("the token is old", reason="TOKEN_OLD", metadata={"token": request.page_token})

    async def DeleteNode(self, request: Any, context: Any) -> Any:
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=7)))
        await context.abort_with_status(
            rpc_status.to_status(status_pb2.Status(code=12, message="not built", details=[detail]))
        )

    async def GetCopyRun(self, request: Any, context: Any) -> Any:
        await asyncio.Event().wait()

    async def ListCopyRuns(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    async def WatchCopyRuns(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.watchers += 1
        try:
            yield runs.WatchCopyRunsResponse(snapshot=True)
            await self.go_on.wait()
            yield runs.WatchCopyRunsResponse()
            raise Conflict("the watch is over")
        finally:
            self.watchers -= 1


def check(service: str, method: str, request: Any) -> None:
    if "refused" in (getattr(request, "name", ""), getattr(getattr(request, "header", None), "name", "")):
        raise InvalidArgument.of("name", "refused", f"another one for {service}.{method}")


@asynccontextmanager
async def relay(tmp: Path, *, deadline_seconds: float = 30) -> AsyncIterator[tuple[Far, Any, Any]]:
    """The far end, and a channel to the near end that forwards to it."""
    far = Far()
    ends = (
        RpcService("nodes", add_NodeServiceServicer_to_server, far),
        RpcService("runs", add_CopyRunServiceServicer_to_server, far),
        RpcService("plugins", add_PluginServiceServicer_to_server, far),
    )
    far_socket, near_socket = tmp / "far.sock", tmp / "near.sock"
    async with serve(*ends, socket=far_socket), channel(f"unix:{far_socket}", translate=False) as way:
        served = (NODES, RUNS, PLUGINS)
        services = [forwarded(s, way, peer=PEER, check=check, deadline_seconds=deadline_seconds) for s in served]
        async with serve(*services, socket=near_socket), channel(f"unix:{near_socket}", translate=False) as near:
            yield far, near, way


async def test_requests_answers_and_metadata_pass(tmp_path: Path) -> None:
    async with relay(tmp_path) as (far, near, _):
        metadata = (("x-request-id", "r7"), ("authorization", "Bearer t"), ("data-bin", b"\0\1"))
        answer = await NodeServiceStub(near).GetNode(nodes.GetNodeRequest(name="n1"), metadata=metadata, timeout=20)
    assert answer.node == Node(name="n1", uid="u1")
    assert far.requests == [nodes.GetNodeRequest(name="n1")]
    passed = {k: v for k, v in far.metadata.items() if k in dict(metadata)}
    assert passed == {k: v for k, v in metadata if k != "authorization"}  # that is for the forwarder
    assert far.seconds_left is not None
    assert 0 < far.seconds_left < 25


async def test_fields_that_this_version_does_not_know_pass(tmp_path: Path) -> None:
    unknown = b"\xd2\xf7\x06\x05later"  # field 14,202 of type bytes
    async with relay(tmp_path) as (far, near, _):
        call = near.unary_unary("/keelman.api.node.v1.NodeService/GetNode")
        await call(nodes.GetNodeRequest(name="n1").SerializeToString() + unknown, timeout=30)
    assert far.requests[0].SerializeToString().endswith(b"later")


async def test_errors_pass_with_all_their_details(tmp_path: Path) -> None:
    async with relay(tmp_path) as (_, near, _way):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await NodeServiceStub(near).ListNodes(nodes.ListNodesRequest(page_token="t"), timeout=30)
        assert caught.value.code() is grpc.StatusCode.ABORTED
        assert caught.value.details() == "the token is old"
        status = rpc_status.from_call(caught.value)
        info = error_details_pb2.ErrorInfo()
        assert status.details[0].Unpack(info)
        assert (info.reason, info.domain, dict(info.metadata)) == ("TOKEN_OLD", "keelman", {"token": "t"})
        # A code and a detail that no class of ours represents.
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await NodeServiceStub(near).DeleteNode(nodes.DeleteNodeRequest(name="n"), timeout=30)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        retry = error_details_pb2.RetryInfo()
        assert rpc_status.from_call(caught.value).details[0].Unpack(retry)
        assert retry.retry_delay.seconds == 7


async def test_a_stream_passes_as_it_comes_with_its_error(tmp_path: Path) -> None:
    async with relay(tmp_path) as (far, near, _):
        call = CopyRunServiceStub(near).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=30)
        assert (await call.read()).snapshot  # while the far end waits
        far.go_on.set()
        assert not (await call.read()).snapshot
        with pytest.raises(grpc.aio.AioRpcError, match="the watch is over"):
            await call.read()


async def test_who_hangs_up_here_hangs_up_there(tmp_path: Path) -> None:
    async with relay(tmp_path) as (far, near, _):
        call = CopyRunServiceStub(near).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=30)
        await call.read()
        assert far.watchers == 1
        call.cancel()
        await eventually(lambda: far.watchers == 0)


async def test_what_can_be_refused_here_does_not_travel(tmp_path: Path) -> None:
    async with relay(tmp_path) as (far, near, _):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await NodeServiceStub(near).GetNode(nodes.GetNodeRequest(name="refused"), timeout=30)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "another one for keelman.api.node.v1.NodeService.GetNode" in (caught.value.details() or "")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await near.unary_unary("/keelman.api.node.v1.NodeService/GetNode")(b"\xff\xff", timeout=30)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert far.requests == []


async def test_a_call_without_a_deadline_gets_one(tmp_path: Path) -> None:
    async with relay(tmp_path, deadline_seconds=0.05) as (_, near, _way):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await CopyRunServiceStub(near).GetCopyRun(runs.GetCopyRunRequest(uid="u"))
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_far_end_that_is_away_is_named_at_once(tmp_path: Path) -> None:
    near_socket = tmp_path / "near.sock"
    async with channel(f"unix:{tmp_path}/nobody.sock", translate=False) as way:
        services = [forwarded(s, way, peer=PEER, check=check, deadline_seconds=3600) for s in (NODES, RUNS)]
        async with serve(*services, socket=near_socket), channel(f"unix:{near_socket}", translate=False) as near:
            call = CopyRunServiceStub(near).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=30)
            for attempt in (NodeServiceStub(near).GetNode(nodes.GetNodeRequest(name="n"), timeout=30), call.read()):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await attempt
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
                assert f"{PEER} cannot be reached" in (caught.value.details() or "")


def pieces(name: str, count: int = 3) -> list[Any]:
    header = plugins.UploadPluginRequest(header=plugins.UploadHeader(name=name))
    return [header, *[plugins.UploadPluginRequest(chunk=b"x" * 1000)] * count]


async def test_a_clients_stream_passes_with_its_answer(tmp_path: Path) -> None:
    async with relay(tmp_path, deadline_seconds=1e-6) as (far, near, _):  # which is for calls that send no stream
        call = PluginServiceStub(near).UploadPlugin(metadata=(("x-request-id", "r7"),))
        for piece in pieces("good"):
            await call.write(piece)
        await call.done_writing()
        assert (await call).plugin == Plugin(name="p", size_bytes=3000)
        assert far.metadata["x-request-id"] == "r7"
        assert far.uploads == ["whole"]


async def test_a_clients_stream_that_is_refused_or_cut_off_ends_on_both_sides(tmp_path: Path) -> None:
    async with relay(tmp_path) as (far, near, _):
        stub = PluginServiceStub(near)
        with pytest.raises(grpc.aio.AioRpcError, match="another one for keelman"):
            await stub.UploadPlugin(iter(pieces("refused", 10_000)), timeout=30)
        with pytest.raises(grpc.aio.AioRpcError, match="no room"):  # while the client has more to send
            await stub.UploadPlugin(iter(pieces("full", 10_000)), timeout=30)
        call = stub.UploadPlugin(timeout=30)
        for piece in pieces("cut"):
            await call.write(piece)
        await eventually(lambda: "cut" in far.begun)  # otherwise the far end may never see the call
        call.cancel()
        await eventually(lambda: far.uploads[-2:] == ["cut off", "cut off"])


async def test_a_stream_in_both_directions_is_not_forwarded(tmp_path: Path) -> None:
    sessions = session_service_pb2.DESCRIPTOR.services_by_name["SessionService"]
    async with channel(f"unix:{tmp_path}/nobody.sock", translate=False) as way:
        with pytest.raises(TypeError, match=r"SessionService\.OpenSession"):
            forwarded(sessions, way, peer=PEER, check=check, deadline_seconds=1)
