"""What connectors may be: refused at create, in validate and preview, and again at run when it was stored before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.eventually import eventually
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
OWN, INSTALLATION = "keelman.policy.", "keelman.policy.installation."


def strict(folder: Path) -> dict[str, str]:
    """The installation's rules off loopback, with this folder as the cluster's own."""
    return {
        f"{INSTALLATION}paths.allowed": str(folder),
        f"{INSTALLATION}code.by.name": "denied",
        f"{INSTALLATION}hosts.denied": "localhost,127.*",
        f"{OWN}classes.denied": "*Mirror*",
    }


def forbidden(outside: Path) -> dict[str, tuple[dict[str, str], str]]:
    """Configurations that the rules refuse, each with the key of which."""
    source = {"connector.class": "FileStreamSource", "topic": "policy-lines"}
    spark = {"connector.class": "SparkSource", "topic": "policy-rows", "spark.format": "text"}
    sink = {"topics": "policy-lines"}
    return {
        "key-reader": ({**source, "file": str(outside / "secrets.key")}, "file"),
        "by-dots": ({**source, "file": str(outside / "inside" / ".." / "secrets.key")}, "file"),
        "by-link": ({**source, "file": str(outside / "inside" / "link")}, "file"),
        "writer": ({**sink, "connector.class": "FileStreamSink", "file": str(outside / "evil.py")}, "file"),
        "code": (
            {**spark, "spark.path": str(outside / "inside"), "spark.python.source": "evil:X"},
            "spark.python.source",
        ),
        "jars": ({**spark, "spark.path": str(outside / "inside"), "spark.packages": "a:b:1"}, "spark.packages"),
        "data-set": ({**spark, "spark.path": f"file:{outside}/*.key"}, "spark.path"),
        "port-probe": (
            {**source, "file": str(outside / "inside" / "in"), "producer.override.bootstrap.servers": "127.0.0.1:1"},
            "producer.override.bootstrap.servers",
        ),
        "mirror": (
            {
                "connector.class": "MirrorSource",
                "source.cluster.alias": "a",
                "target.cluster.alias": "b",
                "source.cluster.bootstrap.servers": "elsewhere:9092",
            },
            "connector.class",
        ),
    }


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a secret, and in it the folder that connectors may use, from which a link leads out."""
    folder = tmp_path / "outside"
    (folder / "inside").mkdir(parents=True)
    (folder / "secrets.key").write_text("planted-key\n")
    (folder / "inside" / "link").symlink_to(folder / "secrets.key")
    (folder / "inside" / "in").write_text("mine\n")
    return folder


async def create(worker: WorkerProcess, name: str, config: Mapping[str, str]) -> Any:
    return await worker.ask("POST", "/connectors", {"name": name, "config": dict(config)})


async def traces(worker: WorkerProcess, name: str) -> dict[str, str]:
    """The trace of the connector and of its tasks, of those that are FAILED."""
    status = (await worker.ask("GET", f"/connectors/{name}/status")).json()
    parts = {"connector": status["connector"], **{f"task {task['id']}": task for task in status["tasks"]}}
    return {part: entry["trace"] for part, entry in parts.items() if entry["state"] == "FAILED"}


async def test_what_a_policy_refuses_is_neither_created_nor_shown(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, outside: Path
) -> None:
    side, address = link
    worker = WorkerProcess(tmp_path / "w", bootstrap, "policy-create", address, strict(outside / "inside"))
    async with workers(worker):
        for name, (config, key) in forbidden(outside).items():
            answer = await create(worker, name, config)
            assert answer.status_code == 400, (name, answer.text)
            assert f"for configuration {key}: " in answer.json()["message"], answer.text
            assert "(an administrator allows it by keelman.policy." in answer.json()["message"]
            answer = await worker.ask("PUT", f"/connectors/{name}/config", config)
            assert answer.status_code == 400, (name, answer.text)
            plugin = config["connector.class"]
            infos = (
                await worker.ask("PUT", f"/connector-plugins/{plugin}/config/validate", {"name": name, **config})
            ).json()
            errors = {
                info["value"]["name"]: info["value"]["errors"] for info in infos["configs"] if info["value"]["errors"]
            }
            assert (list(errors), infos["error_count"]) == ([key], 1)
            answer = await worker.ask("POST", f"/connectors/{name}/preview", {"config": config})
            assert (answer.status_code, "planted" in answer.text) == (400, False), answer.text
        assert (await worker.ask("GET", "/connectors")).json() == []
        legal = {"connector.class": "FileStreamSource", "topic": "policy-lines", "file": str(outside / "inside" / "in")}
        assert (await create(worker, "legal", legal)).status_code == 201
        await worker.reaches("legal", "RUNNING", "RUNNING")
        changed = await worker.ask("PATCH", "/connectors/legal/config", {"file": str(outside / "secrets.key")})
        assert changed.status_code == 400, changed.text
        assert {run.ticket.connector for run in side.runs.values()} == {"legal"}


async def test_what_was_stored_before_the_policy_does_not_run(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, outside: Path
) -> None:
    side, address = link
    worker = WorkerProcess(tmp_path / "w", bootstrap, "policy-run", address)
    refused = {name: entry for name, entry in forbidden(outside).items() if name not in ("mirror", "by-dots")}
    legal = {"connector.class": "FileStreamSource", "topic": "policy-lines", "file": str(outside / "inside" / "in")}
    async with workers(worker):
        for name, (config, _) in refused.items():
            assert (await create(worker, name, config)).status_code == 201, name
        assert (await create(worker, "legal", legal)).status_code == 201
        for name in {*refused, "legal"} - {"port-probe"}:  # whose brokers are not there
            await worker.reaches(name, "RUNNING", "RUNNING")

        async def has_its_task() -> bool:
            return len(await worker.states("port-probe")) == 2

        await eventually(has_its_task, what="port-probe has its task")
        assert await worker.end() == 0
        side.runs.clear()
        worker.extra |= strict(outside / "inside")
        await worker.start()
        for name, (_, key) in refused.items():
            await worker.reaches(name, "FAILED", "FAILED")
            for part, trace in (await traces(worker, name)).items():
                assert f"for configuration {key}: " in trace, (name, part, trace)
                assert "(an administrator allows it by keelman.policy.installation." in trace
            answer = await worker.ask("POST", f"/connectors/{name}/preview", {})
            assert (answer.status_code, "planted" in answer.text) == (400, False), answer.text
            await worker.ask("POST", f"/connectors/{name}/restart?includeTasks=true")
        await worker.reaches("legal", "RUNNING", "RUNNING")
        for name in refused:
            await worker.reaches(name, "FAILED", "FAILED")
        assert {run.ticket.connector for run in side.runs.values()} == {"legal"}


async def test_internal_topics_are_nobody_s(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """Also with an open policy: in the keys of every connector, by a record of the config topic, in a preview."""
    side, address = link
    worker = WorkerProcess(tmp_path / "w", bootstrap, "policy-topics", address)
    create_topic(bootstrap, "demo.connect-configs")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("demo.connect-configs", b"password: planted-password", b"connector-x")
    producer.flush(300)
    sink = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out")}
    async with workers(worker):
        for topic in ("demo.connect-configs", "policy-topics-configs", "keelman.events.node.v1", "__consumer_offsets"):
            answer = await create(worker, "reader", {**sink, "topics": topic})
            assert (answer.status_code, f"topic {topic} is internal" in answer.text) == (400, True), answer.text
            answer = await create(worker, "writer", {"connector.class": "FileStreamSource", "topic": topic})
            assert (answer.status_code, f"topic {topic} is internal" in answer.text) == (400, True), answer.text
            more = {"config": {**sink, "topics": topic}, "from": "beginning"}
            answer = await worker.ask("POST", "/connectors/reader/preview", more)
            assert (answer.status_code, "planted" in answer.text) == (400, False), answer.text
        more = {"config": {**sink, "topics.regex": r"demo\..*|policy-topics-.*"}, "from": "beginning"}
        answer = await worker.ask("POST", "/connectors/reader/preview", more)
        assert (answer.status_code, answer.json()["records"]) == (200, [])

        properties = {**sink, "name": "stored", "topics": "demo.connect-configs", "tasks.max": "1"}
        producer.produce("policy-topics-configs", json.dumps({"properties": properties}).encode(), b"connector-stored")
        producer.flush(300)

        async def told() -> bool:
            answer = await worker.ask("GET", "/connectors/stored/status")
            return answer.status_code == 200 and "is internal" in str(answer.json()["connector"].get("trace"))

        await eventually(told, what="the stored connector is FAILED")
        answer = await worker.ask("POST", "/connectors/stored/preview", {"from": "beginning"})
        assert (answer.status_code, "planted" in answer.text) == (400, False), answer.text
        assert side.runs == {}


async def test_records_for_internal_topics_and_files_outside_are_refused_where_they_are_copied(
    bootstrap: str, spark: SparkService, tmp_path: Path, outside: Path
) -> None:
    """What no configuration tells: a topic that a transform makes, a pattern, a link that is made later."""
    worker = WorkerProcess(tmp_path / "w", bootstrap, "policy-copy", spark.address, strict(outside / "inside"))
    create_topic(bootstrap, "policy-copy.connect-status")
    create_topic(bootstrap, "policy-copy.mine")
    file, out = outside / "inside" / "in", outside / "inside" / "out"
    source = {"connector.class": "FileStreamSource", "file": str(file)}
    router = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "policy-copy.(.*)",
        "transforms.route.replacement": "policy-copy.connect-$1",
    }
    async with workers(worker):
        assert (await create(worker, "routed", {**source, "topic": "policy-copy.status", **router})).status_code == 201
        await worker.reaches("routed", "RUNNING", "FAILED")
        assert "topic policy-copy.connect-status is internal" in (await traces(worker, "routed"))["task 0"]
        assert (await create(worker, "mine", {**source, "topic": "policy-copy.mine"})).status_code == 201
        sink = {"connector.class": "FileStreamSink", "file": str(out), "topics.regex": r"policy-copy\..*"}
        assert (await create(worker, "all", sink)).status_code == 201
        await eventually(lambda: out.exists() and out.read_text() == "mine\n", what="the line is copied")

        async def tracked() -> Any:
            return (await worker.ask("GET", "/connectors/all/topics")).json()["all"]["topics"]

        assert await eventually(tracked, what="its topics are tracked") == ["policy-copy.mine"]
        linked = {**source, "file": str(outside / "inside" / "later"), "topic": "policy-copy.mine"}
        assert (await create(worker, "linked", linked)).status_code == 201
        await worker.reaches("linked", "RUNNING", "RUNNING")
        (outside / "inside" / "later").symlink_to(outside / "secrets.key")
        await worker.reaches("linked", "RUNNING", "FAILED")
        assert "it leads out of the folders" in (await traces(worker, "linked"))["task 0"]
        assert out.read_text() == "mine\n"
