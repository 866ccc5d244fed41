"""The Couchbase connectors against a DCP server, their records in a real broker: each change once, whatever happens."""

import json
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keelman.testing.certificates import Authority
from support.copy_harness import (
    OFFSET_TOPIC,
    Run,
    committed_offsets,
    copied_to_the_end,
    create_topic,
    dies_at,
    hosted,
    messages,
    ticket,
    until,
    until_all_copied,
)
from support.couchbase.server import CouchbaseServer, couchbase_server

pytestmark = pytest.mark.component

HANDLERS = "com.couchbase.connect.kafka.handler.source."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
VBUCKETS = 8


@pytest.fixture
def server() -> Iterator[CouchbaseServer]:
    """Eight vbuckets on two nodes."""
    with couchbase_server(vbuckets=VBUCKETS, nodes=2) as found:
        yield found


@pytest.fixture
def config(bootstrap: str, name: str, server: CouchbaseServer) -> dict[str, str]:
    """Of a task of the official connector that reads all vbuckets to topic `name`."""
    create_topic(bootstrap, name)
    return {
        "connector.class": "com.couchbase.connect.kafka.CouchbaseSourceConnector",
        "couchbase.seed.nodes": server.seeds,
        "couchbase.username": "Administrator",
        "couchbase.password": "password",
        "couchbase.bucket": "travel",
        "couchbase.source.handler": f"{HANDLERS}RawJsonSourceHandler",
        "couchbase.topic": name,
        "couchbase.partitions": f"0..{VBUCKETS - 1}",
        "key.converter": TEXT,
        "value.converter": BYTES,
        "name": name,
    }


def running(runs: Callable[..., Run], bootstrap: str, config: dict[str, str]) -> Run:
    run = runs(ticket(bootstrap, config))
    run.until_state("RUNNING", seconds=120)
    return run


def numbers(bootstrap: str, topic: str) -> Counter[int]:
    """How often each document's number was copied; deletions have none."""
    return Counter(json.loads(m.value())["n"] for m in messages(bootstrap, topic) if m.value() is not None)


def assert_at_the_end(bootstrap: str, name: str, server: CouchbaseServer) -> None:
    """The committed offsets are those of the last changes."""
    found = committed_offsets(bootstrap, OFFSET_TOPIC, name)
    offsets = {int(json.loads(key)[1]["partition"]): json.loads(value)["bySeqno"] for key, value in found}
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
    config = {
        "connector.class": "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector",
        "topic": f"{name}-",
        "schema.name": "couchbaseschema",
        "couchbase.nodes": server.seeds,
        "couchbase.buckets": "travel",
        "dcp.maximum.drainrate": "1000",
        "couchbase.dcpConnectionBufferSize": "0",
        "couchbase.partitions": f"0..{VBUCKETS - 1}",
        "key.converter": TEXT,
        "value.converter": JSON,
        "name": name,
    }
    server.put("doc-1", {"n": 1})
    server.put("doc-2", b"no JSON")
    server.delete("doc-3")
    run = running(runs, bootstrap, config)
    run.until_records(2)
    run.drain()
    found = {m.key(): json.loads(m.value()) for m in messages(bootstrap, f"{name}-travel")}
    assert found[b"doc-1"]["schema"]["name"] == "couchbaseschema"
    assert found[b"doc-1"]["payload"] == {"bucket": "travel", "document": "doc-1", "body": '{"n": 1}'}
    assert found[b"doc-2"]["payload"]["body"] == "no JSON"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"couchbase.password": "wrong"}, "refuses user 'Administrator'"),
        ({"couchbase.bucket": "none"}, "no bucket 'none'"),
        ({"couchbase.scope": "nowhere"}, "no scope 'nowhere'"),
        ({"couchbase.seed.nodes": "127.0.0.1:1"}, "127.0.0.1:1"),
        ({"couchbase.enable.tls": "true"}, "127.0.0.1"),
    ],
)
def test_what_cannot_be_is_said_at_once(
    bootstrap: str, config: dict[str, str], runs: Callable[..., Run], more: dict[str, str], said: str
) -> None:
    run = runs(ticket(bootstrap, {**config, **more}))
    update = run.until(lambda update: bool(update.message), seconds=30)
    assert said in update.message


def test_over_tls_with_a_password_or_a_wrong_authority(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path, config: dict[str, str]
) -> None:
    authority = Authority()
    issued = authority.issue("node", "127.0.0.1")
    (tmp_path / "chain.pem").write_text(issued.chain_pem)
    (tmp_path / "key.pem").write_text(issued.key_pem)
    (tmp_path / "trusted.pem").write_text(authority.pem)
    (tmp_path / "other.pem").write_text(Authority("other").pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    with couchbase_server(vbuckets=VBUCKETS, tls=context) as server:
        server.put("doc", {"n": 1})
        secured = {**config, "couchbase.seed.nodes": server.seeds, "couchbase.enable.tls": "true"}
        trust = "couchbase.trust.certificate.path"
        wrong = runs(ticket(bootstrap, {**secured, trust: str(tmp_path / "other.pem")}))
        assert "certificate" in wrong.until(lambda update: bool(update.message), seconds=30).message.lower()
        run = running(runs, bootstrap, {**secured, trust: str(tmp_path / "trusted.pem")})
        run.until_records(1)
        run.drain()
    assert numbers(bootstrap, name) == Counter([1])
