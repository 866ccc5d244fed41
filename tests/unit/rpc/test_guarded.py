"""The caller of an open stream is judged again, and a stream ends as its source does."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from keelman.model.errors import PermissionDenied, Unauthenticated
from keelman.rpc import guarded
from keelman.rpc.guarded import Guarded, Incoming

METHOD = "/keelman.api.connect.v1.ConnectorService/WatchConnectors"
SECONDS = 5.0


class Judgements:
    """Counts judgements, and refuses the caller from a given one on."""

    def __init__(self, refuse_from: int | None = None) -> None:
        self.number = 0
        self._refuse_from = refuse_from

    async def admit(self, _: Incoming) -> None:
        self.number += 1
        if self._refuse_from is not None and self.number >= self._refuse_from:
            raise PermissionDenied("the token was taken back")


async def guarded_handler(handler: Any, judgements: Judgements) -> Any:
    async def continuation(_: Any) -> Any:
        return handler

    details = SimpleNamespace(method=METHOD, invocation_metadata=())
    return await Guarded(judgements.admit).intercept_service(continuation, details)


CONTEXT = SimpleNamespace(
    invocation_metadata=tuple, auth_context=dict, peer_identities=lambda: None, peer=lambda: "ipv4:127.0.0.1:1"
)


async def read(handler: Any, answers: list[int]) -> None:
    async with asyncio.timeout(SECONDS):
        async for answer in handler.unary_stream(None, CONTEXT):
            answers.append(answer)  # noqa: PERF401 - kept also when the stream fails


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "RECHECK_SECONDS", 0.01)


async def test_a_stream_whose_source_is_cancelled_is_cancelled() -> None:
    async def watch(request: Any, context: Any) -> AsyncIterator[int]:
        yield 1
        raise asyncio.CancelledError

    handler = await guarded_handler(grpc.unary_stream_rpc_method_handler(watch), Judgements())
    answers: list[int] = []
    with pytest.raises(asyncio.CancelledError):
        await read(handler, answers)
    assert answers == [1]


async def test_a_silent_stream_ends_when_its_caller_is_refused() -> None:
    closed = asyncio.Event()

    async def watch(request: Any, context: Any) -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    handler = await guarded_handler(grpc.unary_stream_rpc_method_handler(watch), Judgements(refuse_from=3))
    answers: list[int] = []
    with pytest.raises(PermissionDenied):
        await read(handler, answers)
    assert answers == [1]
    assert closed.is_set()


async def test_an_upload_is_judged_once_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "RECHECK_SECONDS", 60.0)

    async def upload(requests: AsyncIterator[int], context: Any) -> int:
        return sum([request async for request in requests])

    async def chunks() -> AsyncIterator[int]:
        for chunk in (1, 2, 3):
            yield chunk

    judgements = Judgements()
    handler = await guarded_handler(grpc.stream_unary_rpc_method_handler(upload), judgements)
    assert await handler.stream_unary(chunks(), CONTEXT) == 6
    assert judgements.number == 1


async def test_the_error_of_a_source_comes_after_its_messages() -> None:
    async def watch(request: Any, context: Any) -> AsyncIterator[int]:
        yield 1
        yield 2
        raise LookupError("broken")

    handler = await guarded_handler(grpc.unary_stream_rpc_method_handler(watch), Judgements())
    answers: list[int] = []
    with pytest.raises(LookupError, match="broken"):
        await read(handler, answers)
    assert answers == [1, 2]


class Call:
    """The context of a call that ends with a status."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode | None = None
        self.metadata: tuple[tuple[str, bytes], ...] = ()

    def set_code(self, code: grpc.StatusCode) -> None:
        self.code = code

    def set_details(self, details: str) -> None:
        self.details = details

    def set_trailing_metadata(self, metadata: tuple[tuple[str, bytes], ...]) -> None:
        self.metadata = metadata


async def test_a_stranger_waits_for_its_turn_and_is_refused_without_an_error() -> None:
    turns = asyncio.Semaphore(0)

    def screen(method: str, metadata: Any) -> None:
        raise Unauthenticated("the token is unknown", reason="UNKNOWN_TOKEN")

    async def turn() -> None:
        await turns.acquire()

    async def continuation(_: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: None)

    details = SimpleNamespace(method=METHOD, invocation_metadata=())
    guard = Guarded(Judgements().admit, screen, None, turn)
    waiting = asyncio.ensure_future(guard.intercept_service(continuation, details))
    await asyncio.sleep(0)
    assert not waiting.done()
    turns.release()
    handler, call = await waiting, Call()
    await handler.stream_stream(None, call)
    assert call.code is grpc.StatusCode.UNAUTHENTICATED
    assert call.details == "the token is unknown"
    assert b"UNKNOWN_TOKEN" in dict(call.metadata)["grpc-status-details-bin"]


async def test_a_caller_that_the_screen_knows_is_handed_on() -> None:
    seen: list[Any] = []

    async def admit(call: Incoming) -> None:
        seen.append(call.caller)

    async def answer(request: Any, context: Any) -> int:
        return 1

    async def continuation(_: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(answer)

    details = SimpleNamespace(method=METHOD, invocation_metadata=())
    handler = await Guarded(admit, lambda method, metadata: "ada").intercept_service(continuation, details)
    assert await handler.unary_unary(b"", CONTEXT) == 1
    assert seen == ["ada"]
