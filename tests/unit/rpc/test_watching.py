"""What a watch's client knows after each answer, and what it takes for a change."""

from keelman.api.event.v1.event_pb2 import EVENT_TYPE_CREATED, EVENT_TYPE_DELETED, EVENT_TYPE_UPDATED, Event
from keelman.api.event.v1.watch_service_pb2 import WatchResponse
from keelman.rpc.watching import Known


def event(revision: int, name: str, kind: int = EVENT_TYPE_UPDATED, text: str = "") -> Event:
    made = Event(revision=revision, name=name, type=kind)
    made.node.name, made.node.status.message = name, text
    return made


def snapshot(revision: int, *names: str, end: bool = True, text: str = "") -> WatchResponse:
    events = [event(revision, n, EVENT_TYPE_CREATED, text) for n in names]
    return WatchResponse(snapshot=True, snapshot_end=end, revision=revision if end else 0, events=events)


def told(events: list[Event]) -> list[tuple[int, str]]:
    return [(e.type, e.name) for e in events]


def test_a_snapshot_counts_once_it_is_whole() -> None:
    known = Known()
    assert known.fold(snapshot(0, "a", end=False)) == []
    assert known.begin() == 0
    assert told(known.fold(snapshot(7, "b"))) == [(EVENT_TYPE_CREATED, "b")]  # a went before the second one was made
    assert (known.begin(), [n for _, n in known.resources]) == (7, ["b"])


def test_a_change_that_comes_again_is_none() -> None:
    known = Known()
    known.fold(snapshot(7, "a"))
    answer = WatchResponse(revision=9, events=[event(8, "a", text="x"), event(9, "b", EVENT_TYPE_CREATED)])
    assert told(known.fold(answer)) == [(EVENT_TYPE_UPDATED, "a"), (EVENT_TYPE_CREATED, "b")]
    assert known.fold(answer) == []
    assert told(known.fold(WatchResponse(revision=10, events=[event(10, "b", EVENT_TYPE_DELETED)]))) == [
        (EVENT_TYPE_DELETED, "b")
    ]
    assert [n for _, n in known.resources] == ["a"]


def test_a_snapshot_that_comes_again_changes_what_differs() -> None:
    known = Known()
    known.fold(snapshot(7, "a", "b", "c"))
    assert known.fold(snapshot(0, "b", "a", end=False)) == []
    changes = known.fold(snapshot(30, "d"))
    assert told(changes) == [(EVENT_TYPE_DELETED, "c"), (EVENT_TYPE_CREATED, "d")]
    assert changes[0].node.name == "c"
    assert told(known.fold(snapshot(31, "a", text="new"))) == [
        (EVENT_TYPE_DELETED, "b"), (EVENT_TYPE_DELETED, "d"), (EVENT_TYPE_UPDATED, "a")
    ]  # fmt: skip
    assert known.revision == 31


def test_where_the_watch_stands_moves_on_without_changes() -> None:
    known = Known()
    known.fold(snapshot(7, "a"))
    assert known.fold(WatchResponse(revision=700)) == []
    assert known.begin() == 700


def test_an_event_of_a_noun_that_is_not_known_is_passed_over() -> None:
    known = Known()
    assert known.fold(WatchResponse(revision=3, events=[Event(revision=3, name="x", type=EVENT_TYPE_CREATED)])) == []
    assert known.revision == 3
