"""Errors across a real wire: class, message, reason, facts and violations arrive; nothing is lost in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2

from keelman.model import errors
from keelman.model.errors import Internal, InvalidArgument, KeelmanError, Unavailable, Violation
from keelman.rpc.channels import channel
from keelman.rpc.errors import NOT_SERVED, translated, translated_stream
from keelman.rpc.server import RpcService, Tls, checked_address, serve
from keelman.runtime.processes.ports import free_ports

CLASSES = KeelmanError.__subclasses__()


class Echo:
    """Raises the error that it was given, in all four kinds of call."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def unary(self, request: Any, context: Any) -> Any:
        if self.error:
            raise self.error
        return empty_pb2.Empty()

    async def stream(self, request: Any, context: Any) -> AsyncIterator[Any]:
        yield empty_pb2.Empty()
        if self.error:
            raise self.error

    async def collect(self, requests: Any, context: Any) -> Any:
        async for _ in requests:
            pass
        return await self.unary(None, context)

    @property
    def service(self) -> RpcService:
        encode = {"request_deserializer": empty_pb2.Empty.FromString, "response_serializer": _bytes}
        handlers = {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary, **encode),
            "Stream": grpc.unary_stream_rpc_method_handler(self.stream, **encode),
            "Collect": grpc.stream_unary_rpc_method_handler(self.collect, **encode),
            "Both": grpc.stream_stream_rpc_method_handler(self.stream, **encode),
        }
        generic = grpc.method_handlers_generic_handler("test.Echo", handlers)
        return RpcService("test.Echo", lambda _, server: server.add_generic_rpc_handlers((generic,)), self)


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString())


@asynccontextmanager
async def echoing(tmp: Path) -> AsyncIterator[tuple[Echo, Any]]:
    echo = Echo()
    socket = tmp / "echo.sock"
    async with serve(echo.service, socket=socket) as health:
        await health.ready()
        async with channel(f"unix:{socket}") as open_channel:
            yield echo, open_channel


async def unary(to: Any) -> Any:
    return await to.unary_unary("/test.Echo/Unary", _bytes, empty_pb2.Empty.FromString)(empty_pb2.Empty(), timeout=30)


async def raised(to: Any) -> KeelmanError:
    with pytest.raises(KeelmanError) as caught:
        await unary(to)
    return caught.value


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
async def test_every_class_arrives_as_itself(cls: type[KeelmanError], tmp_path: Path) -> None:
    sent = cls(
        "told with ümlaut\nand two lines",
        reason="WHY",
        metadata={"a": "1"},
        violations=[Violation("spec.x", "wrong"), Violation("spec.y", "worse")],
    )
    async with echoing(tmp_path) as (echo, to):
        echo.error = sent
        got = await raised(to)
    assert type(got) is cls
    assert (got.message, got.reason, got.metadata, got.violations) == (
        sent.message,
        sent.reason,
        sent.metadata,
        sent.violations,
    )


async def test_a_method_that_an_older_server_does_not_know_has_a_reason_of_its_own(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (_, to):
        with pytest.raises(Internal) as caught:
            await to.unary_unary("/test.Echo/Later", _bytes, empty_pb2.Empty.FromString)(empty_pb2.Empty(), timeout=30)
    assert caught.value.reason == NOT_SERVED


async def test_a_subclass_travels_as_its_parent(tmp_path: Path) -> None:
    class Special(errors.Conflict):
        reason = "SPECIAL"

    async with echoing(tmp_path) as (echo, to):
        echo.error = Special("mine")
        got = await raised(to)
    assert (type(got), got.reason) == (errors.Conflict, "SPECIAL")


async def test_every_kind_of_call_is_translated(tmp_path: Path) -> None:
    async def requests() -> AsyncIterator[Any]:
        yield empty_pb2.Empty()

    async with echoing(tmp_path) as (echo, to):
        echo.error = errors.NotFound("not here")
        stream = to.unary_stream("/test.Echo/Stream", _bytes, empty_pb2.Empty.FromString)
        both = to.stream_stream("/test.Echo/Both", _bytes, empty_pb2.Empty.FromString)
        collect = to.stream_unary("/test.Echo/Collect", _bytes, empty_pb2.Empty.FromString)
        for call in (stream(empty_pb2.Empty(), timeout=30), both(requests(), timeout=30)):
            seen = []
            with pytest.raises(errors.NotFound, match="not here"):
                seen.extend([m async for m in _kept(translated_stream(call), seen)])
            assert len(seen) == 1
        with pytest.raises(errors.NotFound, match="not here"), translated():
            await collect(requests(), timeout=30)


async def _kept(stream: AsyncIterator[Any], seen: list[Any]) -> AsyncIterator[Any]:
    async for message in stream:
        seen.append(message)
        yield message


async def test_a_fault_of_ours_tells_no_details(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with echoing(tmp_path) as (echo, to):
        echo.error = ZeroDivisionError("secret")
        got = await raised(to)
    assert isinstance(got, Internal)
    assert "secret" not in got.message
    assert "/test.Echo/Unary failed" in got.message


@pytest.mark.parametrize("letter", ["x", "ü", "日"])
async def test_a_long_message_is_cut_and_not_lost(letter: str, tmp_path: Path) -> None:
    async with echoing(tmp_path) as (echo, to):
        echo.error = InvalidArgument(
            letter * 100_000, violations=[Violation(f"f{i}", letter * 3000) for i in range(100)]
        )
        got = await raised(to)
    assert isinstance(got, InvalidArgument)
    assert got.message.startswith(letter * 200)
    assert got.message.endswith(" ...")
    assert got.violations[0].field == "f0"


async def test_a_message_that_fits_is_whole(tmp_path: Path) -> None:
    text = "line\n" * 300
    async with echoing(tmp_path) as (echo, to):
        echo.error = InvalidArgument(text)
        assert (await raised(to)).message == text


async def test_nobody_there_is_said_at_once_with_the_address() -> None:
    [port] = free_ports(1)
    async with channel(f"127.0.0.1:{port}", peer="the state service") as to:
        got = await raised(to)
    assert isinstance(got, Unavailable)
    assert got.reason == "UNREACHABLE"
    assert f"the state service at 127.0.0.1:{port} cannot be reached: Connection refused" in got.message


async def test_unavailable_that_the_peer_says_itself_stays(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (echo, to):
        echo.error = Unavailable("not yet", reason="WARMING_UP")
        got = await raised(to)
    assert (got.message, got.reason) == ("not yet", "WARMING_UP")


async def test_a_channel_finds_a_server_that_comes_back() -> None:
    [port] = free_ports(1)
    echo = Echo()
    async with channel(f"127.0.0.1:{port}") as to:
        assert isinstance(await raised(to), Unavailable)
        async with serve(echo.service, port=port) as health:
            await health.ready()
            await to.channel_ready()
            assert await unary(to) == empty_pb2.Empty()


async def test_a_taken_port_is_named() -> None:
    [port] = free_ports(1)
    async with serve(port=port, label="demo"):
        with pytest.raises(Unavailable) as caught:
            async with serve(port=port, label="demo"):
                pass
    assert caught.value.reason == "PORT_TAKEN"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    checked_address("demo", host, tls=None, trust="loopback")


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.org", ""])
def test_off_loopback_needs_tls_or_a_mesh(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="tls_certificate and tls_key, or trust = mesh"):
        checked_address("demo", host, tls=None, trust="loopback")
    checked_address("demo", host, tls=None, trust="mesh")
    checked_address("demo", host, tls=Tls(tmp_path / "c", tmp_path / "k"), trust="loopback")


async def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with pytest.raises(InvalidArgument, match=r"demo\.tls_key: .*none\.key.*readable PEM file"):
        async with serve(port=port, label="demo", tls=Tls(tmp_path / "none.crt", tmp_path / "none.key")):
            pass
