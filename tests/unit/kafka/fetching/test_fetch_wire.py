"""Fetch 11 and its answer, compared with the library's."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest
from aiokafka.protocol.fetch import FetchRequest_v7, FetchRequest_v11, FetchResponse_v7, FetchResponse_v11

from keelman.kafka.fetching.fetch_wire import Fetch11, FetchAnswer, FetchedPart
from keelman.kafka.fetching.session import FetchSession
from keelman.kafka.fetching.settings import FetchSettings

SETTINGS = FetchSettings(min_bytes=3, answer_bytes=5_000, partition_bytes=700, rack="north")
WANTED = {("orders", 0): (17, 4), ("orders", 2): (0, -1), ("märkte", 1): (1 << 40, 0)}
PARTS = [
    FetchedPart(("orders", 0), 0, 20, 19, [(7, 17), (8, 18)], -1, b"records"),
    FetchedPart(("orders", 2), 6, -1, -1, [], 3, b""),
    FetchedPart(("märkte", 1), 0, 1 << 41, 1 << 41, [], -1, b"more"),
]


def asked(*versions: int) -> tuple[FetchSession, object]:
    """A session whose third request is made for a broker of these versions: two partitions were left."""
    session = FetchSession(SETTINGS, isolation=1)
    session.request({**WANTED, ("old", 5): (1, 1), ("old", 6): (1, 1)}, 100)
    session.answered(FetchAnswer(0, 99, []))
    return session, session.request(WANTED, 250).prepare({1: versions})


def test_a_request_is_as_the_library_writes_it() -> None:
    _, request = asked(4, 18)
    topics = [("märkte", [(1, 0, 1 << 40, -1, 700)])]
    assert isinstance(request, Fetch11)
    # A request of a session names changed partitions only; here none has changed.
    assert request.positions == {}
    full = Fetch11(SETTINGS, isolation=1, wait_ms=250, session=(99, 1), positions=WANTED, forgotten=request.forgotten)
    topics = [("orders", [(0, 4, 17, -1, 700), (2, -1, 0, -1, 700)]), *topics]
    theirs = FetchRequest_v11(-1, 250, 3, 5_000, 1, 99, 1, topics, [("old", [5, 6])], "north")
    assert full.encode() == theirs.encode()
    header = full.build_request_header(correlation_id=12, client_id="me").encode()
    assert header == theirs.build_request_header(correlation_id=12, client_id="me").encode()


def answer(kind: type[FetchResponse_v7] | type[FetchResponse_v11], code: int = 0) -> bytes:
    newest = kind is FetchResponse_v11
    topics: dict[str, list[tuple[object, ...]]] = {}
    for (topic, number), error, high, stable, aborted, near, data in PARTS:
        replica = (near,) if newest else ()
        entries = (number, error, high, stable, 0, aborted or None, *replica, data or None)
        topics.setdefault(topic, []).append(entries)
    return bytes(kind(0, code, 99, list(topics.items())).encode())


@pytest.mark.parametrize("large", [False, True])
def test_an_answer_is_as_the_library_writes_it(large: bool) -> None:
    data = BytesIO((bytearray if large else bytes)(struct.pack(">i", 12) + answer(FetchResponse_v11)))
    session, request = asked(4, 18)
    assert request.parse_response_header(data).correlation_id == 12  # type: ignore[attr-defined]
    assert session.answered(FetchAnswer.decode(data)) == PARTS


def test_an_older_broker_is_asked_as_the_library_does() -> None:
    session, request = asked(4, 9)
    assert isinstance(request, FetchRequest_v7)
    parts = session.answered(FetchResponse_v7.decode(BytesIO(answer(FetchResponse_v7))))
    assert parts == [part._replace(near=-1) for part in PARTS]


@pytest.mark.parametrize("cut", [3, 20, 60, 100])
def test_an_answer_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises((struct.error, ValueError)):
        FetchAnswer.decode(BytesIO(answer(FetchResponse_v11)[:cut]))
