"""The state of a watch's client after each answer, and the differences that count as changes."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from keelman.api.event.v1.event_pb2 import EVENT_TYPE_CREATED, EVENT_TYPE_DELETED, EVENT_TYPE_UPDATED, Event
from keelman.api.event.v1.watch_service_pb2 import WatchResponse
from keelman.model.errors import Unavailable
from keelman.rpc import watching
from keelman.rpc.watching import KnownResources
from keelman.runtime.backoff import Backoff


def event(revision: int, name: str, kind: int = EVENT_TYPE_UPDATED, text: str = "") -> Event:
    made_event = Event(revision=revision, name=name, type=kind)
    made_event.node.name, made_event.node.status.message = name, text
    return made_event


def snapshot(revision: int, *names: str, end: bool = True, text: str = "") -> WatchResponse:
    events = [event(revision, n, EVENT_TYPE_CREATED, text) for n in names]
    return WatchResponse(snapshot=True, snapshot_end=end, revision=revision if end else 0, events=events)


def told(events: list[Event]) -> list[tuple[int, str]]:
    return [(e.type, e.name) for e in events]


def test_a_snapshot_counts_once_it_is_whole() -> None:
    known_resources = KnownResources()
    assert known_resources.fold(snapshot(0, "a", end=False)) == []
    assert known_resources.begin() == 0
    assert told(known_resources.fold(snapshot(7, "b"))) == [
        (EVENT_TYPE_CREATED, "b")
    ]  # a was deleted before the second one was created
    assert (known_resources.begin(), [n for _, n in known_resources.resources]) == (7, ["b"])


def test_a_change_that_comes_again_is_none() -> None:
    known_resources = KnownResources()
    known_resources.fold(snapshot(7, "a"))
    answer = WatchResponse(revision=9, events=[event(8, "a", text="x"), event(9, "b", EVENT_TYPE_CREATED)])
    assert told(known_resources.fold(answer)) == [(EVENT_TYPE_UPDATED, "a"), (EVENT_TYPE_CREATED, "b")]
    assert known_resources.fold(answer) == []
    assert told(known_resources.fold(WatchResponse(revision=10, events=[event(10, "b", EVENT_TYPE_DELETED)]))) == [
        (EVENT_TYPE_DELETED, "b")
    ]
    assert [n for _, n in known_resources.resources] == ["a"]


def test_a_snapshot_that_comes_again_changes_what_differs() -> None:
    known_resources = KnownResources()
    known_resources.fold(snapshot(7, "a", "b", "c"))
    assert known_resources.fold(snapshot(0, "b", "a", end=False)) == []
    changes = known_resources.fold(snapshot(30, "d"))
    assert told(changes) == [(EVENT_TYPE_DELETED, "c"), (EVENT_TYPE_CREATED, "d")]
    assert changes[0].node.name == "c"
    assert told(known_resources.fold(snapshot(31, "a", text="new"))) == [
        (EVENT_TYPE_DELETED, "b"), (EVENT_TYPE_DELETED, "d"), (EVENT_TYPE_UPDATED, "a")
    ]  # fmt: skip
    assert known_resources.revision == 31


def test_where_the_watch_stands_moves_on_without_changes() -> None:
    known_resources = KnownResources()
    known_resources.fold(snapshot(7, "a"))
    assert known_resources.fold(WatchResponse(revision=700)) == []
    assert known_resources.begin() == 700


def test_an_event_of_a_noun_that_is_not_known_is_passed_over() -> None:
    known_resources = KnownResources()
    assert (
        known_resources.fold(WatchResponse(revision=3, events=[Event(revision=3, name="x", type=EVENT_TYPE_CREATED)]))
        == []
    )
    assert known_resources.revision == 3


async def test_a_stream_that_ends_is_begun_again_and_its_end_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    away: list[Unavailable] = []

    class Call:
        def __init__(self) -> None:
            begun.append(0)

        def cancel(self) -> None:
            begun[-1] += 1

        async def __aiter__(self) -> AsyncIterator[int]:
            if len(begun) in (1, 4):
                yield len(begun)
            raise Unavailable("the server has ended")

    monkeypatch.setattr(watching, "Backoff", lambda **_: Backoff(first=0.0, most=0.0))
    async with aclosing(watching._answers(Call, away.append)) as answers:
        assert [await anext(answers), await anext(answers)] == [1, 4]
    assert begun == [1, 1, 1, 1], "each call is given back"
    assert len(away) == 1, "once, until an answer came"
