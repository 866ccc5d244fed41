"""How a client of changes handles pushed maps and connections that end."""

import asyncio
import json
from typing import Any, cast

import pytest

from keelman.couchbase import cluster as cluster_module
from keelman.couchbase.changes import OWN_WINDOW_BYTES, StreamOptions, VbucketChanges
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import COLLECTION_DROPPED, Connection
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.couchbase.frames import RESPONSE, Frame, Opcode, ResponseStatus
from keelman.couchbase.seeds import BucketAccess, Seed
from keelman.couchbase.vbucket import Event, HistoryPlace, Vbucket
from support.fake_time import FakeTimeLoop

NODE = NodeAddress("one", 11210)


def new() -> tuple[BucketCluster, VbucketChanges]:
    """A client that starts without offsets."""
    cluster = BucketCluster(BucketAccess([Seed("one")], "travel"))
    return cluster, VbucketChanges(cluster, StreamOptions(), lambda: None)


def pushed(revision: int, *vbuckets: list[int], uuid: str = "") -> bytes:
    """A map as servers push it."""
    fields = {"rev": revision, "name": "travel", "uuid": uuid, "nodeLocator": "vbucket",
             "nodesExt": [{"services": {"kv": 11210}}],
             "vBucketServerMap": {"vBucketMap": list(vbuckets)}}  # fmt: skip
    return json.dumps(fields).encode()


def test_a_map_without_vbuckets_replaces_none_that_has_them() -> None:
    cluster, _ = new()
    assert cluster.take_map(pushed(1), NODE)
    assert cluster.take_map(pushed(2, [0]), NODE)
    assert not cluster.take_map(pushed(3), NODE)
    assert cluster.map is not None
    assert cluster.map.active(0) == NODE
    assert cluster.take_map(pushed(4, [0], [0]), NODE)


async def test_only_the_vbuckets_of_a_connection_that_ends_have_a_problem() -> None:
    _, changes = new()
    with_streams, idle = (
        cast("Connection", type("Ended", (), {"where": f"{name}:1", "address": NodeAddress(name, 1)})())
        for name in ("one", "two")
    )
    changes._vbuckets[3] = Vbucket(3)
    changes._ended[3] = with_streams, asyncio.get_running_loop().create_future()
    changes.lost(idle, "the server ended the connection")
    assert changes.problem == ""
    changes.lost(with_streams, "the server ended the connection")
    assert changes.problem == "one:1: the server ended the connection"
    assert changes.resting() is None


def test_a_bucket_that_was_made_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[dict[str, Any]] = []
    log = type("Log", (), {"warning": lambda _, name, **value: warned.append({"name": name, **value})})
    monkeypatch.setattr(cluster_module, "_log", log())
    cluster, _ = new()
    for revision, uuid in ((1, "a"), (2, "a"), (3, "b")):
        assert cluster.take_map(pushed(revision, [0], uuid=uuid), NODE)
    assert warned == [{"name": "couchbase_bucket_is_another", "bucket": "travel", "uuid": "b", "before": "a"}]


def test_without_flow_control_the_window_is_our_own() -> None:
    assert StreamOptions(buffer_bytes=0).window == OWN_WINDOW_BYTES
    assert StreamOptions(buffer_bytes=5).window == 5


class Scripted(VbucketChanges):
    """A client whose servers answer as scripted: a status and when, or None for an unreachable node.

    It records for how long each refusal has lasted, and ends with the script.
    """

    def __init__(self, script: list[tuple[float, int | None]]) -> None:
        super().__init__(new()[0], StreamOptions(), lambda: None)
        self.script, self.refused_for = script, list[tuple[int, float]]()

    async def _ask(self, vbucket: Vbucket, changed: asyncio.Event) -> tuple[Connection, Frame] | None:
        if not self.script:
            raise CouchbaseError("the script ends")
        seconds, status = self.script.pop(0)
        await asyncio.sleep(seconds)
        if status is None:
            changed.set()
            raise AwayError("away")
        connection = type("Asked", (), {"where": "one:11210", "forget": lambda _, number: None})()
        return cast("Connection", connection), Frame(RESPONSE, Opcode.STREAM_REQUEST, 0, status, 0, 0, b"", b"", b"")

    async def _refused(self, connection: Connection, vbucket: Vbucket, answer: Frame, **fields: Any) -> None:
        self.refused_for.append((answer.status, fields["seconds"]))

    def _roll_back(self, vbucket: Vbucket, seqno: int) -> None:
        """Does nothing, since no change was read."""


def refused_for(*script: tuple[float, int | None]) -> list[tuple[int, float]]:
    """The refusals that the client recorded, on fake time."""

    async def work() -> list[tuple[int, float]]:
        changes = Scripted(list(script))
        await changes._follow(Vbucket(1))
        assert str(changes._failure) == "the script ends"
        return changes.refused_for

    return FakeTimeLoop().run(work(), most_seconds=10_000)


BUSY, LATE, UNKNOWN = ResponseStatus.BUSY, ResponseStatus.TEMPORARY_FAILURE, ResponseStatus.UNKNOWN_COLLECTION


def test_a_refusal_lasts_over_all_of_its_kind() -> None:
    assert refused_for((0, BUSY), (100, LATE), (100, BUSY)) == [(BUSY, 0), (LATE, 100), (BUSY, 200)]


def test_a_collection_is_unknown_only_since_that_was_answered() -> None:
    assert refused_for((0, BUSY), (100, UNKNOWN), (20, UNKNOWN)) == [(BUSY, 0), (UNKNOWN, 0), (UNKNOWN, 20)]


@pytest.mark.parametrize("between", [ResponseStatus.ROLLBACK, None])
def test_what_is_between_two_refusals_ends_the_first(between: ResponseStatus | None) -> None:
    assert refused_for((0, BUSY), (100, between), (100, BUSY), (7, BUSY)) == [(BUSY, 0), (BUSY, 0), (BUSY, 7)]


async def test_a_stream_that_is_left_for_a_dropped_collection_is_closed_before_the_next() -> None:
    _, changes = new()
    closed: list[int] = []

    class Left:
        where = "one:11210"

        def forget(self, number: int) -> None:
            """Ignores events."""

        async def close_stream(self, number: int) -> None:
            closed.append(number)

    connection = cast("Connection", Left())
    ended = asyncio.get_running_loop().create_future()
    changes._ended[3] = connection, ended
    ended.set_result(COLLECTION_DROPPED)
    assert await changes._until_end(connection, Vbucket(3)) == COLLECTION_DROPPED
    assert closed == [3]


async def test_changes_that_a_server_took_back_before_they_were_taken_are_dropped_and_acknowledged() -> None:
    _, changes = new()
    acknowledged: list[int] = []
    connection = cast(
        "Connection", type("Acknowledging", (), {"acknowledge": lambda _, size: acknowledged.append(size)})()
    )

    def event(vbucket: int, seqno: int) -> Event:
        return Event(
            Opcode.MUTATION, vbucket, seqno, HistoryPlace(1, 1, 9), None, b"key", b"", 0, 0, 0, 0, 0, 0, size=10 * seqno
        )

    came = [event(vbucket, seqno) for seqno in range(1, 6) for vbucket in (3, 4)]
    changes._vbuckets[3], changes._taken[3] = Vbucket(3), 0
    changes._queue.append((connection, came))
    changes._roll_back(changes._vbuckets[3], 2)
    assert acknowledged == [10 * (3 + 4 + 5)]
    taken = changes.take(100)
    assert [event.seqno for event in taken if event.vbucket == 3] == [1, 2]
    assert [event.seqno for event in taken if event.vbucket == 4] == [1, 2, 3, 4, 5]
    assert changes.taken_back == 0
