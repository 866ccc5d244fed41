"""A preview shows what a connector would do and does nothing; a replay sends dead letters back, each exactly once."""

import asyncio
import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.cli.main import main
from keelman.connect.bad_records.dead_letter import Whence, Why, context_headers
from keelman.connect.errors import ConnectError, DataError
from keelman.engine.topics import ensure_topic
from keelman.testing.eventually import eventually
from support.connectors.numbers_wheel import CLASS, numbers_wheel
from support.copying.harness import create_topic, messages
from support.places import RECORDED_FOLDER
from support.worker.processes import WorkerProcess, link_side, workers

pytestmark = pytest.mark.component
WORD = "tell-nobody-4711"
BEGUN_MS = round(time.time() * 1000)  # brokers delete records that are older than their retention
PLAIN = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture(scope="module")
async def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerProcess]:
    """One worker, whose copy runs copy nothing: all that is shown here is done without any."""
    folder = tmp_path_factory.mktemp("worker")
    secret = folder / "secret.properties"
    secret.write_text(f"word={WORD}\n")
    plugins = folder / "plugins"
    plugins.mkdir()
    numbers_wheel(plugins)
    extra = {
        "plugin.path": str(plugins),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "test.secret": str(secret),
    }
    async with link_side() as (_, address):
        process = WorkerProcess(folder, bootstrap, "trials", address, extra)
        async with workers(process):
            yield process


async def asked(worker: WorkerProcess, path: str, body: Any = None) -> dict[str, Any]:
    answer = await worker.ask("POST", path, body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert await asyncio.to_thread(main, words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


async def test_preview_of_a_source(worker: WorkerProcess, bootstrap: str, tmp_path: Path) -> None:
    lines = tmp_path / "in"
    lines.write_text("one\ntwo\nthree\n")
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": "preview-lines",
        **PLAIN,
        "transforms": "hoist,mark,route,drop",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.mark.static.field": "word",
        "transforms.mark.static.value": f"${{file:{worker.extra['test.secret']}:word}}",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)-lines",
        "transforms.route.replacement": "$1-routed",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "none",
        "predicates": "none",
        "predicates.none.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    found = await asked(worker, "/connectors/unborn/preview", {"config": config, "records": 2})
    assert (found["type"], found["from"], len(found["records"])) == ("source", "committed", 2)
    first = found["records"][0]
    assert first["outcome"] == "written"
    read, hoist, mark, route, drop, written = first["steps"]
    assert read["record"]["value"] == {"schema": "string", "value": "one"}
    assert hoist["record"]["value"] == {"schema": "struct<line:string>", "value": {"line": "one"}}
    assert route["record"]["topic"] == "preview-routed" == written["record"]["topic"]
    assert drop["predicate"] == {
        "alias": "none",
        "class": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        "holds": False,
        "negate": False,
    }
    assert drop["applied"] is False
    # The value of the secret stands in the record, and is shown to nobody.
    assert mark["record"]["value"]["value"]["word"].startswith("${file:")
    assert WORD not in json.dumps(found)
    assert written["record"]["value"]["bytes"] == len(json.dumps({"line": "one", "word": WORD}, separators=(",", ":")))
    assert not {"preview-lines", "preview-routed"} & set(
        AdminClient({"bootstrap.servers": bootstrap}).list_topics().topics
    )


async def test_preview_of_a_third_partys_source(worker: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("7")
    config = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "preview-numbers", **PLAIN}
    found = await asked(worker, "/connectors/numbers/preview", {"config": config, "records": 3})
    values = [one["steps"][-1]["record"]["value"]["text"] for one in found["records"]]
    assert len(values) == 3
    assert [int(json.loads(value)) for value in values] == [0, 1, 2]


async def test_preview_of_a_sink_and_of_what_fails(
    worker: WorkerProcess, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = "preview-read"
    create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for n in range(20):
        value = b"{" if n == 18 else json.dumps({"n": n}).encode()
        producer.produce(topic, value, b"k%d" % n, headers=[("raw", b"\xff")])
    producer.flush()
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": topic, **PLAIN}
    created = await worker.ask("POST", "/connectors", {"name": "watcher", "config": config})
    assert created.status_code == 201, created.text
    found = await asked(worker, "/connectors/watcher/preview", {"records": 3})
    last = found["records"]
    assert [one["steps"][0]["record"]["offset"] for one in last] == [17, 18, 19]
    assert [one["outcome"] for one in last] == ["given", "failed", "given"]
    assert last[1]["error"]["stage"] == "VALUE_CONVERTER"
    assert last[1]["error"]["then"] == "the task fails (errors.tolerance=none)"
    header = last[0]["steps"][0]["record"]["headers"][0]
    assert header == {"name": "raw", "value": {"bytes": 1, "base64": base64.b64encode(b"\xff").decode()}}
    tried = {**config, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}
    begun = await asked(worker, "/connectors/watcher/preview", {"from": "beginning", "records": 1, "config": tried})
    assert [one["steps"][1]["record"]["value"]["value"] for one in begun["records"]] == [{"n": 0}]
    told = await typed("preview", "watcher", "--worker", worker.id, "--records", "2", capsys=capsys)
    assert [line.split()[:3] for line in told.splitlines()][:2] == [
        ["record", "1:", "failed"],
        ["read", "topic", topic],
    ]
    assert "value.converter VALUE_CONVERTER: DataException: " in " ".join(told.split())
    assert not (tmp_path / "out").exists()
    admin = AdminClient({"bootstrap.servers": bootstrap})  # one that nobody holds ends without an answer
    groups = admin.list_consumer_groups().result(60)
    assert "connect-watcher" not in [one.group_id for one in groups.valid]


@pytest.mark.parametrize(
    ("name", "body", "status", "told"),
    [
        ("nobody", {}, 404, "Connector nobody not found"),
        ("nobody", {"records": 0}, 400, "records: 0 is not legal: a whole number from 1 to 100"),
        ("nobody", {"records": "5"}, 400, 'records: "5" is not legal'),
        ("nobody", {"record": 1}, 400, "record: there is no such field: config, records, from"),
        ("nobody", [1], 400, "must be an object"),
        ("nobody", {"config": {"connector.class": "FileStreamSource"}}, 400, 'Missing required configuration "topic"'),
        ("nobody", {"config": {"connector.class": "Nothing"}}, 400, "Failed to find any class"),
        ("nobody", {"config": {"a": {}}}, 400, "config: Cannot deserialize"),
    ],
)
async def test_what_is_refused(worker: WorkerProcess, name: str, body: Any, status: int, told: str) -> None:
    answer = await worker.ask("POST", f"/connectors/{name}/preview", body)
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    assert told in answer.json()["message"]


def write_letters(bootstrap: str, topic: str, letters: list[tuple[bytes | None, bytes | None, list[Any]]]) -> None:
    """Puts dead letters into their topic, which is made if need be: key, value, headers."""
    if topic not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics:
        create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for n, (key, value, headers) in enumerate(letters):
        producer.produce(topic, value, key, headers=headers, timestamp=BEGUN_MS + n)
        if n % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def letter(
    value: bytes, at: int, *, connector: str, topic: str, stage: str = "VALUE_CONVERTER"
) -> tuple[Any, Any, Any]:
    """One as a sink leaves it."""
    error = Why(stage, "org.apache.kafka.connect.json.JsonConverter", DataError.java_name, "bad", "trace")
    told = context_headers(Whence(topic, at % 2, at), error, connector=connector, task=0)
    return b"k%d" % at, value, [("own", b"kept"), *told]


async def test_replay_of_a_sink(
    worker: WorkerProcess, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin, letters = "replay-origin", "replay-letters"
    create_topic(bootstrap, origin, 2)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": origin,
        **PLAIN,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
    }
    created = await worker.ask("POST", "/connectors", {"name": "mended", "config": config})
    assert created.status_code == 201, created.text
    mine = {"connector": "mended", "topic": origin}
    write_letters(
        bootstrap,
        letters,
        [
            *(letter(b'{"n":%d}' % n, n, **mine) for n in range(4)),
            letter(b"{", 4, **mine),
            letter(b'{"n":5}', 5, connector="another", topic=origin),
            letter(b'{"n":6}', 6, **mine, stage="TASK_PUT"),
        ],
    )
    path = "/connectors/mended/dead-letters"
    told = (await worker.ask("GET", f"{path}?records=1")).json()
    assert (told["letters"], told["waiting"], told["of_other_connectors"], told["complete"]) == (6, 6, 1, True)
    assert told["kinds"][0] == {"stage": "VALUE_CONVERTER", "exception": DataError.java_name, "letters": 5}
    assert (told["newest"][0]["stage"], told["newest"][0]["origin"]["offset"]) == ("TASK_PUT", 6)

    tried = json.loads(await typed("replay", "mended", "--dry-run", "--worker", worker.id, "-o", "json", capsys=capsys))
    assert (tried["sent"], tried["failed"], tried["examples"][0]["why"][:15]) == (5, 1, "VALUE_CONVERTER")
    assert messages(bootstrap, origin) == []
    chosen = await asked(worker, f"{path}/replay", {"stage": "TASK_PUT"})
    assert (chosen["sent"], chosen["filtered"]) == (1, 5), chosen
    rest = await asked(worker, f"{path}/replay", {"most": 3})
    assert (rest["sent"], rest["failed"]) == (3, 0), rest
    write_letters(bootstrap, letters, [letter(b'{"n":7}', 7, **mine)])
    rest = await asked(worker, f"{path}/replay")
    assert (rest["sent"], rest["failed"], rest["cursor"]) == (2, 1, None), rest

    sent = messages(bootstrap, origin)
    assert sorted(one.value() for one in sent) == [b'{"n":%d}' % n for n in (0, 1, 2, 3, 6, 7)]
    for one in sent:
        n = json.loads(one.value())["n"]
        assert (one.key(), one.partition(), one.headers()) == (b"k%d" % n, n % 2, [("own", b"kept")])
        assert BEGUN_MS <= one.timestamp()[1] < BEGUN_MS + 7
    assert (await worker.ask("GET", path)).json()["waiting"] == 1
    elsewhere = await worker.ask("POST", f"{path}/replay", {"to": "no such topic"})
    assert (elsewhere.status_code, elsewhere.json()["message"][:3]) == (400, "to:")
    missing = await worker.ask("POST", f"{path}/replay", {"to": "no-such-topic"})
    assert (missing.status_code, "to: there is no topic 'no-such-topic'" in missing.json()["message"]) == (400, True)


async def test_replay_of_a_source(worker: WorkerProcess, bootstrap: str, tmp_path: Path) -> None:
    letters = "replay-source-letters"
    config = {
        "connector.class": "FileStreamSource",
        "file": str(tmp_path / "none"),
        "topic": "replay-plain",
        **PLAIN,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "transforms": "hoist,route",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "(.*)-plain",
        "transforms.route.replacement": "$1-mended",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    created = await worker.ask("POST", "/connectors", {"name": "source", "config": config})
    assert created.status_code == 201, created.text
    why = Why("TRANSFORMATION", "org.acme.Broken", DataError.java_name, None, "trace")
    whence = Whence("replay-plain", source_partition={"filename": "f"}, source_offset={"position": 4})

    def told(**more: Any) -> list[Any]:
        return context_headers(whence, why, connector="source", task=0, **more)

    value = b'{"schema":{"type":"string","optional":false},"payload":"one"}'
    write_letters(
        bootstrap,
        letters,
        [
            (None, value, told(value_format="json")),
            (None, b"as text", told(value_format="text")),
            (None, None, told(record_bytes=9_999_999)),
        ],
    )
    found = await asked(worker, "/connectors/source/dead-letters/replay")
    assert (found["sent"], found["lost"]) == (1, 2)
    assert [one.value() for one in messages(bootstrap, "replay-mended")] == [b'{"line":"one"}']
    again = await asked(worker, "/connectors/source/dead-letters/replay")
    assert (again["sent"], again["lost"]) == (0, 2)


async def test_what_brokers_refuse_stays_and_neither_counts_nor_ends_a_replay(
    worker: WorkerProcess, bootstrap: str, tmp_path: Path
) -> None:
    letters, to = "refused-letters", "refused-to"
    made = NewTopic(to, 1, 1, config={"cleanup.policy": "compact", "max.message.bytes": "1000"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([made])[to].result()
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": "refused-origin",
        **PLAIN,
        "errors.deadletterqueue.topic.name": letters,
    }
    created = await worker.ask("POST", "/connectors", {"name": "refused", "config": config})
    assert created.status_code == 201, created.text
    # A compacted topic takes no record without a key, this one none over 1,000 bytes, and no three of these at once.
    small, large, without_key = b"s" * 300, b"l" * 2_000, None
    wanted = [(without_key, small), (b"0", large), *((b"%d" % n, small) for n in range(1, 6)), (without_key, small)]
    write_letters(bootstrap, letters, [(key, value, []) for key, value in wanted])
    path = "/connectors/refused/dead-letters/replay"
    first = await asked(worker, path, {"to": to, "most": 4})
    assert (first["sent"], first["failed"], first["cursor"]) == (4, 2, None), first
    whys = [one["why"] for one in first["examples"]]
    assert whys[0].startswith("INVALID_RECORD")
    assert "max.message.bytes of the topic is 1000" in whys[1]
    rest = await asked(worker, path, {"to": to})
    assert (rest["sent"], rest["failed"], rest["cursor"]) == (1, 3, None), rest
    assert [one.key() for one in messages(bootstrap, to)] == [b"1", b"2", b"3", b"4", b"5"]


async def test_killed_in_the_middle_of_a_replay(worker: WorkerProcess, bootstrap: str, tmp_path: Path) -> None:
    """What is in the group's offsets is in the topic and nothing else is; the next replay goes on from there."""
    origin, letters, count = "killed-origin", "killed-letters", 16_000
    create_topic(bootstrap, origin, 2)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": origin,
        **PLAIN,
        "errors.deadletterqueue.topic.name": letters,
    }
    created = await worker.ask("POST", "/connectors", {"name": "killed", "config": config})
    assert created.status_code == 201, created.text
    write_letters(bootstrap, letters, [letter(b"%d" % n, n, connector="killed", topic=origin) for n in range(count)])
    request = {
        "name": "killed",
        "config": config,
        "worker_config": worker.properties(),
        "sink": True,
        "to": "",
        "stage": "",
        "exception": "",
        "since_ms": None,
        "most": 12_000,  # the next has something to send however late this one is killed
        "dry_run": False,
        "cursor": None,
        "seconds": 120,
    }
    script = "import json, sys; from keelman.engine.dead_letters.replay import replay; replay(json.loads(sys.argv[1]))"
    with (tmp_path / "replay.log").open("wb") as output:
        child = subprocess.Popen([sys.executable, "-c", script, json.dumps(request)], stdout=output, stderr=output)
    try:
        looking = Consumer({"bootstrap.servers": bootstrap, "group.id": "look"})
        part = TopicPartition(origin, 0)
        await eventually(lambda: looking.get_watermark_offsets(part, 10)[1] > 0, seconds=120, what="some are sent")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    looking.close()
    body: dict[str, Any] = {}
    sent = 0
    while True:
        told = await asked(worker, "/connectors/killed/dead-letters/replay", body)
        sent += told["sent"]
        if told["cursor"] is None:
            break
        body = {"cursor": told["cursor"]}
    assert 0 < sent <= count, "the killed replay was not in the middle"
    assert sorted(int(one.value()) for one in messages(bootstrap, origin)) == list(range(count))


RECORDED = json.loads((RECORDED_FOLDER / "worker" / "topic_creation.json").read_text())
REFUSED = [one for one in RECORDED if one["states"] == ["RUNNING", "FAILED"]]


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: one["name"])
def test_a_topic_that_brokers_refuse_ends_the_task_with_its_name_and_why(bootstrap: str, one: dict[str, Any]) -> None:
    topic = "t-" + one["name"].replace(" ", "-")
    with pytest.raises(ConnectError) as refused:
        ensure_topic(topic, lambda _topic: 0, {"bootstrap.servers": bootstrap}, {}, one["config"])
    assert f"{refused.value.java_name}: {refused.value}" == one["traces"][0][0]


async def test_a_connector_with_illegal_groups_fails_with_the_text_as_recorded(worker: WorkerProcess) -> None:
    (one,) = (one for one in RECORDED if one["name"] == "a bad pattern")
    config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "groups", **one["config"]}
    created = await worker.ask("POST", "/connectors", {"name": "groups", "config": config})
    assert created.status_code == 201, created.text
    await worker.reaches("groups", "FAILED")
    trace = (await worker.ask("GET", "/connectors/groups/status")).json()["connector"]["trace"]
    assert trace.splitlines()[0] == one["traces"][0][0]
