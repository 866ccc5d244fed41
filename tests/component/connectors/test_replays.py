"""A replay sends dead letters back, each exactly once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.connect.bad_records.dead_letter import RecordOrigin, Why, context_headers
from keelman.connect.errors import DataError
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.worker.processes import WorkerProcess
from support.worker.trials import PLAIN, asked, typed

pytestmark = pytest.mark.component
BEGUN_MS = round(time.time() * 1000)  # brokers delete records that are older than their retention


def write_letters(bootstrap: str, topic: str, letters: list[tuple[bytes | None, bytes | None, list[Any]]]) -> None:
    """Writes dead letters into their topic, which is created if need be: key, value, headers."""
    if topic not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=300).topics:
        create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for n, (key, value, headers) in enumerate(letters):
        producer.produce(topic, value, key, headers=headers, timestamp=BEGUN_MS + n)
        if n % 1000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0


def letter(
    value: bytes, at: int, *, connector: str, topic: str, stage: str = "VALUE_CONVERTER"
) -> tuple[Any, Any, Any]:
    """A dead letter as a sink writes it."""
    error = Why(stage, "org.apache.kafka.connect.json.JsonConverter", DataError.java_name, "bad", "trace")
    headers = context_headers(RecordOrigin(topic, at % 2, at), error, connector=connector, task=0)
    return b"k%d" % at, value, [("own", b"kept"), *headers]


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
    document = (await worker.ask("GET", f"{path}?records=1")).json()
    assert (document["letters"], document["waiting"], document["of_other_connectors"], document["complete"]) == (
        6,
        6,
        1,
        True,
    )
    assert document["kinds"][0] == {"stage": "VALUE_CONVERTER", "exception": DataError.java_name, "letters": 5}
    assert (document["newest"][0]["stage"], document["newest"][0]["origin"]["offset"]) == ("TASK_PUT", 6)

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
    assert sorted(message.value() for message in sent) == [b'{"n":%d}' % n for n in (0, 1, 2, 3, 6, 7)]
    for item in sent:
        n = json.loads(item.value())["n"]
        assert (item.key(), item.partition(), item.headers()) == (b"k%d" % n, n % 2, [("own", b"kept")])
        assert BEGUN_MS <= item.timestamp()[1] < BEGUN_MS + 7
    assert (await worker.ask("GET", path)).json()["waiting"] == 1
    elsewhere = await worker.ask("POST", f"{path}/replay", {"to": "no such topic"})
    assert (elsewhere.status_code, elsewhere.json()["message"][:3]) == (400, "to:")
    missing = await worker.ask("POST", f"{path}/replay", {"to": "no-such-topic"})
    assert (missing.status_code, "to: no topic 'no-such-topic'" in missing.json()["message"]) == (400, True)


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
    reason = Why("TRANSFORMATION", "org.acme.Broken", DataError.java_name, None, "trace")
    whence = RecordOrigin("replay-plain", source_partition={"filename": "f"}, source_offset={"position": 4})

    def told(**more: Any) -> list[Any]:
        return context_headers(whence, reason, connector="source", task=0, **more)

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
    answer = await asked(worker, "/connectors/source/dead-letters/replay")
    assert (answer["sent"], answer["lost"]) == (1, 2)
    assert [message.value() for message in messages(bootstrap, "replay-mended")] == [b'{"line":"one"}']
    again = await asked(worker, "/connectors/source/dead-letters/replay")
    assert (again["sent"], again["lost"]) == (0, 2)


async def test_what_brokers_refuse_stays_and_neither_counts_nor_ends_a_replay(
    worker: WorkerProcess, bootstrap: str, tmp_path: Path
) -> None:
    letters, to = "refused-letters", "refused-to"
    target_topic = NewTopic(to, 1, 1, config={"cleanup.policy": "compact", "max.message.bytes": "1000"})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([target_topic])[to].result()
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out"),
        "topics": "refused-origin",
        **PLAIN,
        "errors.deadletterqueue.topic.name": letters,
    }
    created = await worker.ask("POST", "/connectors", {"name": "refused", "config": config})
    assert created.status_code == 201, created.text
    # A compacted topic accepts no record without a key, this one none over 1,000 bytes, and no three of these at once.
    small, large, without_key = b"s" * 300, b"l" * 2_000, None
    expected = [(without_key, small), (b"0", large), *((b"%d" % n, small) for n in range(1, 6)), (without_key, small)]
    write_letters(bootstrap, letters, [(key, value, []) for key, value in expected])
    path = "/connectors/refused/dead-letters/replay"
    first = await asked(worker, path, {"to": to, "most": 4})
    assert (first["sent"], first["failed"], first["cursor"]) == (4, 2, None), first
    whys = [example["why"] for example in first["examples"]]
    assert whys[0].startswith("INVALID_RECORD")
    assert "max.message.bytes of the topic is 1000" in whys[1]
    rest = await asked(worker, path, {"to": to})
    assert (rest["sent"], rest["failed"], rest["cursor"]) == (1, 3, None), rest
    assert [message.key() for message in messages(bootstrap, to)] == [b"1", b"2", b"3", b"4", b"5"]


async def test_killed_in_the_middle_of_a_replay(worker: WorkerProcess, bootstrap: str, tmp_path: Path) -> None:
    """The topic has exactly the records before the group's offsets; the next replay continues from there."""
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
        await eventually(lambda: looking.get_watermark_offsets(part, 10)[1] > 0, what="some are sent")
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    looking.close()
    body: dict[str, Any] = {}
    sent = 0
    while True:
        answer = await asked(worker, "/connectors/killed/dead-letters/replay", body)
        sent += answer["sent"]
        if answer["cursor"] is None:
            break
        body = {"cursor": answer["cursor"]}
    assert 0 < sent <= count, "the killed replay was not in the middle"
    assert sorted(int(message.value()) for message in messages(bootstrap, origin)) == list(range(count))
