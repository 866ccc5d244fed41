"""The Couchbase connectors against a DCP server, their records in a real broker: each change once, whatever happens."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keelman.couchbase.connection import SILENT_INTERVALS
from keelman.couchbase.seeds import NOOP_SECONDS
from support.copying.harness import (
    OFFSET_TOPIC,
    Run,
    committed_offsets,
    copied_to_the_end,
    dies_at,
    hosted,
    ticket,
    until_all_copied,
)
from support.couchbase.copies import first, numbers, official
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component

VBUCKETS = 8


@pytest.fixture
def server() -> Iterator[CouchbaseServer]:
    """Eight vbuckets on two nodes."""
    with couchbase_server(vbuckets=VBUCKETS, nodes=2) as actual_couchbase_server:
        yield actual_couchbase_server


@pytest.fixture
def config(bootstrap: str, name: str, server: CouchbaseServer) -> dict[str, str]:
    """The configuration of a task of the official connector that reads all vbuckets to topic `name`."""
    create_topic(bootstrap, name)
    return official(name, server)


def running(runs: Callable[..., Run], bootstrap: str, config: dict[str, str]) -> Run:
    run = runs(ticket(bootstrap, config))
    run.until_state("RUNNING", seconds=300)
    return run


def assert_at_the_end(bootstrap: str, name: str, server: CouchbaseServer) -> None:
    """The committed offsets are those of the last changes."""
    actual_committed_offsets = committed_offsets(bootstrap, OFFSET_TOPIC, name)
    offsets = {
        int(json.loads(key)[1]["partition"]): json.loads(value)["bySeqno"] for key, value in actual_committed_offsets
    }
    assert offsets == {number: history.high for number, history in server.vbuckets.items() if history.high}


def test_each_change_once_over_kills_moves_and_cuts(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, tmp_path: Path
) -> None:
    log, written = tmp_path / "log", 0

    def put(count: int) -> None:
        nonlocal written
        for n in range(written, written + count):
            server.put(f"doc-{n}", {"n": n})
        written += count

    put(200)
    for point in ("record in an open transaction", "offsets in an open transaction", "transaction committed"):
        dies_at(bootstrap, config, log, (point, 1))
        put(100)
    with hosted(bootstrap, config, log) as process:
        until_all_copied(process, log)
        server.cut()
        put(100)
        server.move(3, 0)
        put(100)
        server.end_streams(4)
        put(100)
        server.malformed()
        put(100)
        until(lambda: sum(numbers(bootstrap, name).values()) == written, "all is copied")
    copied_to_the_end(bootstrap, config, tmp_path / "last")
    assert numbers(bootstrap, name) == Counter(range(written))
    assert_at_the_end(bootstrap, name, server)


@pytest.mark.parametrize("initial", [False, True])
def test_what_changes_between_two_runs_is_copied_where_the_first_met_no_change(  # noqa: PLR0917  fixtures
    bootstrap: str,
    name: str,
    config: dict[str, str],
    server: CouchbaseServer,
    runs: Callable[..., Run],
    initial: bool,
) -> None:
    """Earlier changes are not copied: the first run began after them."""
    config |= {"couchbase.stream.from": "SAVED_OFFSET_OR_NOW"}
    if initial:
        create_topic(bootstrap, f"{name}-begin")
        config |= {"couchbase.initial.offset.topic": f"{name}-begin"}
    server.put("before", {"n": 0}, vbucket=1)
    run = running(runs, bootstrap, config)
    until(lambda: len(committed_offsets(bootstrap, OFFSET_TOPIC, name)) == VBUCKETS, "where it begins is committed")
    run.drain()
    server.put("between", {"n": 1}, vbucket=1)
    run = running(runs, bootstrap, config)
    run.until_records(1)
    run.drain()
    assert numbers(bootstrap, name) == Counter([1])
    if initial:
        assert len(messages(bootstrap, f"{name}-begin")) == VBUCKETS, "of the first run alone"


def test_a_rollback_copies_the_last_history_whole(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    for n in range(10):
        server.put(f"doc-{n}", {"n": n}, vbucket=1)
    run = running(runs, bootstrap, {**config, "couchbase.persistence.polling.interval": "0"})
    run.until_records(10)
    server.fail_over(1, lost=4)  # 6 to 9 are gone
    for n in range(20, 25):
        server.put(f"doc-{n}", {"n": n}, vbucket=1)
    run.until_records(15)
    run.drain()
    assert numbers(bootstrap, name) == Counter([*range(10), *range(20, 25)])
    assert_at_the_end(bootstrap, name, server)


def test_a_rollback_in_the_middle_of_a_snapshot(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    """The oracle: of the last history nothing is lost, and only records taken before the rollback are doubled."""
    for n in range(200):
        server.put(f"doc-{n}", {"n": n}, vbucket=1)
    server.delay = 0.01
    run = running(runs, bootstrap, {**config, "couchbase.persistence.polling.interval": "0"})
    run.until_records(40)
    server.fail_over(1, lost=50)
    server.delay = 0.0
    for n in range(300, 320):
        server.put(f"doc-{n}", {"n": n}, vbucket=1)
    last = {*range(150), *range(300, 320)}
    until(lambda: last <= numbers(bootstrap, name).keys(), "the last history is copied")
    last_update = run.drain()
    taken, copied = set(range(150)), numbers(bootstrap, name)
    assert all(copied[n] == 1 for n in last - taken)
    assert max(copied.values()) == 2
    assert copied.keys() <= {*range(200), *range(300, 320)}
    assert last_update.progress.rollbacks == 1
    assert_at_the_end(bootstrap, name, server)


def test_a_map_that_comes_with_a_refusal(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    """A server that pushes no maps: the node that had a vbucket reports its new place."""
    server.features.discard(0x0D)
    run = running(runs, bootstrap, config)
    server.put("first", {"n": 1}, vbucket=3)
    run.until_records(1)
    server.move(3, 0)
    server.put("second", {"n": 2}, vbucket=3)
    run.until_records(2)
    run.drain()
    assert numbers(bootstrap, name) == Counter([1, 2])


def test_no_values_and_extended_attributes(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    server.put("doc", {"n": 1}, xattrs={"rev": 1}, snappy=True)
    run = running(runs, bootstrap, {**config, "couchbase.xattrs": "true"})
    run.until_records(1)
    run.drain()
    run = running(runs, bootstrap, {**config, "name": f"{name}-2", "couchbase.no.value": "true"})
    run.until_records(1)
    run.drain()
    assert [(m.key(), m.value()) for m in messages(bootstrap, name)] == [(b"doc", b'{"n": 1}'), (b"doc", None)]


def test_what_is_not_on_disk_everywhere_waits(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    server.persist(1, 0)
    run = running(runs, bootstrap, config)
    server.put("lost", {"n": 1}, vbucket=1)
    server.put("kept", {"n": 2}, vbucket=2)
    run.until_records(1)
    server.fail_over(1, lost=1)
    server.persist(1, None)
    server.put("instead", {"n": 3}, vbucket=1)
    run.until_records(2)
    run.drain()
    assert numbers(bootstrap, name) == Counter([2, 3])


def test_a_node_that_vanishes_and_comes_back(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    run = running(runs, bootstrap, config)
    server.kill(1)
    for n in range(40):
        server.put(f"doc-{n}", {"n": n})
    here = sum(history.high for history in server.vbuckets.values() if history.node == 0)
    run.until_records(here)
    server.revive(1)
    run.until_records(40)
    run.drain()
    assert numbers(bootstrap, name) == Counter(range(40))


@pytest.mark.slow
def test_a_node_that_falls_silent_is_left_by_a_running_copy(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    """The connections stay open without data: only a timeout shows it."""
    run = running(runs, bootstrap, config)
    server.put("first", {"n": 0})
    run.until_records(1)
    server.silence()
    begun = time.monotonic()
    for n in range(1, 40):
        server.put(f"doc-{n}", {"n": n})
    run.until_records(40, seconds=2 * SILENT_INTERVALS * NOOP_SECONDS)
    assert time.monotonic() - begun >= NOOP_SECONDS
    run.drain()
    assert numbers(bootstrap, name) == Counter(range(40))


def test_collections_to_topics_and_offsets_without_records(
    bootstrap: str, name: str, config: dict[str, str], server: CouchbaseServer, runs: Callable[..., Run]
) -> None:
    server.create_scope("inventory")
    for collection in ("airline", "hotel"):
        server.create_collection("inventory", collection)
        create_topic(bootstrap, f"{name}.{collection}")
    chosen = {
        **config,
        "couchbase.topic": f"{name}.${{collection}}",
        "couchbase.collections": "inventory.airline,inventory.hotel",
    }
    run = running(runs, bootstrap, chosen)
    for n in range(6):
        server.put(f"air-{n}", {"n": n}, scope="inventory", collection="airline", snappy=True)
        server.put(f"hotel-{n}", {"n": n}, scope="inventory", collection="hotel", xattrs={"rev": n})
        server.put(f"other-{n}", {"n": 100 + n})
    run.until_records(12)
    until(lambda: _is_at_the_end(bootstrap, name, server), "offsets without records are committed")
    run.drain()
    for collection in ("airline", "hotel"):
        assert numbers(bootstrap, f"{name}.{collection}") == Counter(range(6))


def _is_at_the_end(bootstrap: str, name: str, server: CouchbaseServer) -> bool:
    try:
        assert_at_the_end(bootstrap, name, server)
    except AssertionError:
        return False
    return True


def test_the_connector_of_2016(bootstrap: str, name: str, server: CouchbaseServer, runs: Callable[..., Run]) -> None:
    server.users["travel"] = ""
    create_topic(bootstrap, f"{name}-travel")
    server.put("doc-1", {"n": 1})
    server.put("doc-2", b"no JSON")
    server.delete("doc-3")
    run = running(runs, bootstrap, first(name, server))
    run.until_records(2)
    run.drain()
    trees = {m.key(): json.loads(m.value()) for m in messages(bootstrap, f"{name}-travel")}
    assert trees[b"doc-1"]["schema"]["name"] == "couchbaseschema"
    assert trees[b"doc-1"]["payload"] == {"bucket": "travel", "document": "doc-1", "body": '{"n": 1}'}
    assert trees[b"doc-2"]["payload"]["body"] == "no JSON"
