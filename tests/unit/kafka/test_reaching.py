"""Which of several brokers are called, and which count as silent."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError

from keelman.kafka import reaching
from keelman.kafka.reaching import connecting, first_answer, is_silent, note_silent, reach

LONG_SECONDS = 600.0


class Asked:
    """Brokers that answer with their number; those below 0 fail, those above 9 are silent."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.given_up: list[int] = []

    async def __call__(self, node: int) -> int:
        self.asked.append(node)
        if node < 0:
            raise KafkaConnectionError(f"refused by {node}")
        try:
            await asyncio.sleep(LONG_SECONDS if node > 9 else 0)
        except asyncio.CancelledError:
            self.given_up.append(node)
            raise
        return node


@pytest.mark.parametrize(
    ("nodes", "answer", "requests", "given_up"),
    [
        ((1, 2), 1, [1], []),
        ((-1, 2, 3), 2, [-1, 2], []),
        ((10, 2, 3), 2, [10, 2], [10]),
        ((10, -1, 11, 4), 4, [10, -1, 11, 4], [10, 11]),
    ],
)
async def test_the_first_that_answers_is_believed_and_a_silent_one_keeps_nobody_waiting(
    nodes: tuple[int, ...], answer: int, requests: list[int], given_up: list[int]
) -> None:
    ask = Asked()
    assert await first_answer(nodes, ask, seconds=0.02) == answer
    assert (ask.asked, sorted(ask.given_up)) == (requests, given_up)


async def test_where_nobody_answers_the_last_problem_is_raised() -> None:
    with pytest.raises(KafkaConnectionError, match="refused by -2"):
        await first_answer((-1, -2), Asked())
    with pytest.raises(KafkaError, match="no broker is known"):
        await first_answer((), Asked())


async def test_who_gives_up_gives_all_of_them_up() -> None:
    ask = Asked()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await first_answer((10, 11), ask, seconds=0.01)
    assert sorted(ask.given_up) == [10, 11]


def test_a_broker_counts_as_silent_until_it_takes_a_connection_or_some_time_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with pytest.raises(ConnectionRefusedError), connecting("a-host", 9092):
        raise ConnectionRefusedError  # at once: it may be back at once
    assert not is_silent("a-host", 9092)
    taken = connecting("a-host", 9092)
    taken.__enter__()
    now += 1.0
    assert not taken.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)
    assert is_silent("a-host", 9092)
    assert not is_silent("a-host", 9093)
    now += reaching.REMEMBERED_SECONDS
    assert not is_silent("a-host", 9092)
    note_silent("a-host", 9092)
    with connecting("a-host", 9092):
        assert is_silent("a-host", 9092)
    assert not is_silent("a-host", 9092)


async def test_a_process_that_was_held_up_takes_no_host_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "SILENT_SECONDS", 0.05)
    loop = asyncio.get_running_loop()
    real = loop.sock_connect

    async def held_up(connecting: socket.socket, address: object) -> None:
        await real(connecting, address)  # type: ignore[arg-type]
        loop.call_soon(time.sleep, 0.2)
        await asyncio.sleep(0.1)  # as long as a connection to another host takes, though it is made by now

    monkeypatch.setattr(loop, "sock_connect", held_up)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with await reach("127.0.0.1", port) as connection:
            assert connection.getpeername() == ("127.0.0.1", port)


async def test_an_address_whose_socket_cannot_be_set_up_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[socket.socket] = []

    def refused(connecting: socket.socket) -> None:
        tried.append(connecting)
        if len(tried) == 1:
            raise OSError("no such option")

    monkeypatch.setattr(reaching, "_bound", refused)
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", server.getsockname())

        async def two(*_: object, **__: object) -> list[object]:
            return [address, address]

        monkeypatch.setattr(loop, "getaddrinfo", two)
        with await reach("a-host", 9092) as connection:
            assert connection is tried[1]
    assert tried[0].fileno() == -1, "closed"


async def test_a_connection_whose_other_end_is_not_heard_is_given_up_by_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, await reach(*server.getsockname()) as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == reaching.UNHEARD_MS
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval = (
            connection.getsockopt(socket.IPPROTO_TCP, o) for o in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)
        )
        assert idle + interval <= reaching.UNHEARD_MS / 1000
