"""A broker's answers as they arrive at its socket: whole, in pieces, several at a time, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import CorrelationIdError, KafkaConnectionError
from aiokafka.protocol.admin import ApiVersionRequest_v0

from keelman.kafka.answers import CHUNK_BYTES, Answer, Occasion
from keelman.kafka.broker_client import ClientConnection
from support.eventually import eventually

SECONDS = 10.0
SUPPORTED = b"\0\0" + struct.pack(">i", 0)
"""An answer to ApiVersions 0 that lists no requests at all."""


class Echo:
    """A request whose answer is any bytes."""

    RESPONSE_TYPE = SimpleNamespace(decode=lambda data: data.read())

    def prepare(self, _versions: Any) -> Echo:
        """Returns itself."""
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> Any:
        """Number and version of an unknown request."""
        return SimpleNamespace(encode=lambda: struct.pack(">hhih", 99, 0, correlation_id, len(client_id)))

    def encode(self) -> bytes:
        """Returns no bytes."""
        return b""

    def parse_response_header(self, data: BytesIO) -> Any:
        """Reads the correlation id."""
        return SimpleNamespace(correlation_id=struct.unpack(">i", data.read(4))[0])


class Broken(Echo):
    """A request whose answer cannot be read."""

    RESPONSE_TYPE = SimpleNamespace(decode=lambda data: struct.unpack(">q", data.read()))


class Broker:
    """Accepts one connection. The test decides what is sent on it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def took(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the first request, for the versions."""
        self.reader, self.writer = reader, writer
        request = await self.asked()
        assert struct.unpack_from(">h", request)[0] == ApiVersionRequest_v0.API_KEY
        writer.write(frame(struct.unpack_from(">i", request, 4)[0], SUPPORTED))

    async def asked(self) -> bytes:
        """Reads the next request."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def numbers(self, count: int) -> list[int]:
        """The correlation ids of the next requests."""
        return [struct.unpack_from(">i", await self.asked(), 4)[0] for _ in range(count)]


def frame(number: int, text: bytes) -> bytes:
    return struct.pack(">ii", len(text) + 4, number) + text


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[ClientConnection, Broker]]:
    broker = Broker()
    async with asyncio.timeout(SECONDS), await asyncio.start_server(broker.took, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        connection = ClientConnection(host, port)
        await connection.connect()
        try:
            yield connection, broker
        finally:
            connection.close()
            broker.writer.close()


async def test_answers_come_in_pieces_and_several_at_a_time() -> None:
    async with connected() as (connection, broker):
        texts = [b"first", b"", b"x" * (CHUNK_BYTES - 8), b"y" * (3 * CHUNK_BYTES), b"z" * (CHUNK_BYTES - 3), b"last"]
        answers = [connection.ask(Echo()) for _ in texts]
        numbers = await broker.numbers(len(texts))
        sent = b"".join(map(frame, numbers, texts))
        for piece in (sent[:2], sent[2:7], sent[7:9], sent[9:]):  # within a size, within a frame, two of them
            broker.writer.write(piece)
            await broker.writer.drain()
            await asyncio.sleep(0)
        assert [bytes(answer) for answer in await asyncio.gather(*answers)] == texts
        assert not connection._requests


async def test_every_cut_is_as_good() -> None:
    async with connected() as (connection, broker):
        for cut in range(1, len(frame(0, b"answer") * 2)):
            answers = [connection.ask(Echo()) for _ in range(2)]
            sent = b"".join(frame(number, b"answer") for number in await broker.numbers(2))
            broker.writer.write(sent[:cut])
            await asyncio.sleep(0)
            broker.writer.write(sent[cut:])
            assert await asyncio.gather(*answers) == [b"answer"] * 2


async def test_a_frame_that_is_cut_off_by_the_end_fails_its_request() -> None:
    async with connected() as (connection, broker):
        answers = [connection.ask(Echo()), connection.ask(Echo())]
        numbers = await broker.numbers(2)
        broker.writer.write(frame(numbers[0], b"whole") + frame(numbers[1], b"cut off")[:-1])
        broker.writer.close()
        assert await answers[0] == b"whole"
        with pytest.raises(KafkaConnectionError) as failure:
            await answers[1]
        assert isinstance(failure.value.__cause__, EOFError)
        assert not connection.connected()
        with pytest.raises(KafkaConnectionError):
            connection.ask(Echo())


async def test_an_answer_to_another_request_closes_the_connection() -> None:
    async with connected() as (connection, broker):
        answers = [connection.ask(Echo()), connection.ask(Echo())]
        numbers = await broker.numbers(2)
        broker.writer.write(frame(numbers[1], b"too early"))
        with pytest.raises(CorrelationIdError, match=f"sent {numbers[0]}, came {numbers[1]}"):
            await answers[0]
        with pytest.raises(KafkaConnectionError):
            await answers[1]
        assert not connection.connected()


async def test_an_answer_that_nobody_waits_for_closes_the_connection() -> None:
    async with connected() as (connection, broker):
        broker.writer.write(frame(7, b"nobody asked"))
        await eventually(lambda: not connection.connected(), seconds=SECONDS)


@pytest.mark.parametrize(
    ("sent", "kind"), [(lambda number: frame(number, b"odd"), struct.error), (lambda _: b"\xff" * 4, ValueError)]
)
async def test_an_answer_that_cannot_be_read_closes_the_connection(
    sent: Callable[[int], bytes], kind: type[Exception]
) -> None:
    async with connected() as (connection, broker):
        answer = connection.ask(Broken())
        broker.writer.write(sent(*await broker.numbers(1)))
        with pytest.raises(KafkaConnectionError) as failure:
            await answer
        assert isinstance(failure.value.__cause__, kind)
        assert not connection.connected()


async def test_what_comes_after_its_request_was_given_up_is_passed_over() -> None:
    async with connected() as (connection, broker):
        given_up, failed, other = (connection.ask(Echo()) for _ in range(3))
        given_up.cancel()
        failed.set_exception(TimeoutError())
        broker.writer.write(b"".join(frame(number, b"late") for number in await broker.numbers(3)))
        assert await other == b"late"
        assert given_up.cancelled()
        assert isinstance(failed.exception(), TimeoutError)


async def test_who_waits_continues_in_the_turn_in_which_an_answer_comes() -> None:
    async with connected() as (connection, broker):
        heard: list[bytes] = []

        async def wait(answer: Answer) -> None:
            heard.append(await answer)

        first, second = connection.ask(Echo()), connection.ask(Echo())
        tasks = [asyncio.create_task(wait(first)), asyncio.create_task(wait(first))]
        second.add_done_callback(lambda _: heard.append(b"done"))
        await asyncio.sleep(0)
        numbers = await broker.numbers(2)
        protocol = connection._writer.transport.get_protocol()
        value = frame(numbers[0], b"1") + frame(numbers[1], b"2")
        protocol.get_buffer(-1)[: len(value)] = value
        asyncio.get_running_loop().call_soon(protocol.buffer_updated, len(value))
        await asyncio.sleep(0)
        assert heard == [b"1", b"1", b"done"]
        await asyncio.gather(*tasks)


async def test_one_that_closes_the_connection_hears_of_no_more_answers() -> None:
    async with connected() as (connection, broker):
        answers = [connection.ask(Echo()), connection.ask(Echo())]
        answers[0].add_done_callback(lambda _: connection.close())
        broker.writer.write(b"".join(frame(number, b"here") for number in await broker.numbers(2)))
        assert await answers[0] == b"here"
        with pytest.raises(KafkaConnectionError):
            await answers[1]


async def test_one_that_fails_keeps_no_other_from_its_answer() -> None:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))
    async with connected() as (connection, broker):
        answers = [connection.ask(Echo()), connection.ask(Echo())]
        answers[0].add_done_callback(lambda _: 1 // 0)
        broker.writer.write(b"".join(frame(number, b"here") for number in await broker.numbers(2)))
        assert await asyncio.gather(*answers) == [b"here", b"here"]
    assert [type(problem) for problem in problems] == [ZeroDivisionError]


async def test_a_time_limit_around_an_answer_ends_the_wait_alone() -> None:
    async with connected() as (connection, broker):
        answer = connection.ask(Echo())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(answer), 0.01)
        (number,) = await broker.numbers(1)
        broker.writer.write(frame(number, b"late"))
        assert await answer == b"late"


async def test_an_occasion_wakes_all_that_wait_and_is_no_concern_of_who_has_left() -> None:
    occasion = Occasion(asyncio.get_running_loop())
    woken: list[int] = []

    async def wait(number: int) -> None:
        await occasion.wait()
        woken.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    occasion.happen()
    assert woken == []
    await asyncio.gather(*tasks, return_exceptions=True)
    assert woken == [0, 2]
    late = asyncio.create_task(wait(4))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(lambda: occasion.happen(at_once=True))
    await asyncio.sleep(0)
    assert woken == [0, 2, 4]
    await late
