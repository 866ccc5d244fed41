"""A preview shows what a connector would do and does nothing."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from support.connectors.numbers_wheel import CLASS
from support.kafka.topics import create_topic
from support.worker.processes import WorkerProcess
from support.worker.trials import PLAIN, WORD, asked, typed

pytestmark = pytest.mark.component


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
    answer = await asked(worker, "/connectors/unborn/preview", {"config": config, "records": 2})
    assert (answer["type"], answer["from"], len(answer["records"])) == ("source", "committed", 2)
    first = answer["records"][0]
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
    # The secret's value is in the record, but never shown.
    assert mark["record"]["value"]["value"]["word"].startswith("${file:")
    assert WORD not in json.dumps(answer)
    assert written["record"]["value"]["bytes"] == len(json.dumps({"line": "one", "word": WORD}, separators=(",", ":")))
    assert not {"preview-lines", "preview-routed"} & set(
        AdminClient({"bootstrap.servers": bootstrap}).list_topics().topics
    )


async def test_preview_of_a_third_partys_source(worker: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("7")
    config = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "preview-numbers", **PLAIN}
    answer = await asked(worker, "/connectors/numbers/preview", {"config": config, "records": 3})
    values = [record["steps"][-1]["record"]["value"]["text"] for record in answer["records"]]
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
    answer = await asked(worker, "/connectors/watcher/preview", {"records": 3})
    last = answer["records"]
    assert [entry["steps"][0]["record"]["offset"] for entry in last] == [17, 18, 19]
    assert [entry["outcome"] for entry in last] == ["given", "failed", "given"]
    assert last[1]["error"]["stage"] == "VALUE_CONVERTER"
    assert last[1]["error"]["then"] == "the task fails (errors.tolerance=none)"
    header = last[0]["steps"][0]["record"]["headers"][0]
    assert header == {"name": "raw", "value": {"bytes": 1, "base64": base64.b64encode(b"\xff").decode()}}
    tried = {**config, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}
    begun = await asked(worker, "/connectors/watcher/preview", {"from": "beginning", "records": 1, "config": tried})
    assert [record["steps"][1]["record"]["value"]["value"] for record in begun["records"]] == [{"n": 0}]
    printed = await typed("preview", "watcher", "--worker", worker.id, "--records", "2", capsys=capsys)
    assert [line.split()[:3] for line in printed.splitlines()][:2] == [
        ["record", "1:", "failed"],
        ["read", "topic", topic],
    ]
    assert "value.converter VALUE_CONVERTER: DataException: " in " ".join(printed.split())
    assert not (tmp_path / "out").exists()
    admin = AdminClient({"bootstrap.servers": bootstrap})  # a client that is garbage-collected ends without an answer
    groups = admin.list_consumer_groups().result(300)
    assert "connect-watcher" not in [group.group_id for group in groups.valid]


@pytest.mark.parametrize(
    ("name", "body", "status", "message"),
    [
        ("nobody", {}, 404, "Connector nobody not found"),
        ("nobody", {"records": 0}, 400, "records: 0 is not legal: a whole number from 1 to 100"),
        ("nobody", {"records": "5"}, 400, 'records: "5" is not legal'),
        ("nobody", {"record": 1}, 400, "record: unknown field: one of config, records, from"),
        ("nobody", [1], 400, "must be an object"),
        ("nobody", {"config": {"connector.class": "FileStreamSource"}}, 400, 'Missing required configuration "topic"'),
        ("nobody", {"config": {"connector.class": "Nothing"}}, 400, "Failed to find any class"),
        ("nobody", {"config": {"a": {}}}, 400, "config: Cannot deserialize"),
    ],
)
async def test_what_is_refused(worker: WorkerProcess, name: str, body: Any, status: int, message: str) -> None:
    answer = await worker.ask("POST", f"/connectors/{name}/preview", body)
    assert (answer.status_code, answer.json()["error_code"]) == (status, status)
    assert message in answer.json()["message"]
