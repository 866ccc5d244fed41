"""Patterns that other engines would try for years, at each place of a worker that takes one: it answers meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keelman.connect.config.providers import ConfigProviderError, EnvVarProvider
from keelman.connect.errors import ConfigValueError
from keelman.connect.topic_creation import TopicCreation
from keelman.engine.sink.consumer.subscription import Subscription
from support.kafka.topics import create_topic
from support.worker.processes import WorkerProcess, link_side, workers
from support.worker.trials import PLAIN, asked

pytestmark = pytest.mark.component
SLOW, GIVEN_UP = "(a+)+b", r"((a+)\2?)+b"
NAME = "a" * 200
SECONDS = 60.0
PARTS = "org.apache.kafka.connect.transforms"
ROUTED = {"transforms": "r", "transforms.r.type": f"{PARTS}.RegexRouter", "transforms.r.replacement": "x"}
MATCHED = {
    "transforms": "f", "transforms.f.type": f"{PARTS}.Filter", "transforms.f.predicate": "p", "predicates": "p",
    "predicates.p.type": f"{PARTS}.predicates.TopicNameMatches",
}  # fmt: skip
CREATED = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1"}
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": NAME, **PLAIN}
SINK = {"connector.class": "FileStreamSink", "file": "/nowhere/out", **PLAIN}
MIRROR = {"connector.class": "MirrorSource", "source.cluster.alias": "far"}
VALIDATED = {
    "topics.regex": {**SINK, "errors.deadletterqueue.topic.name": NAME},
    "topics": MIRROR,
    "topics.exclude": MIRROR,
    "config.properties.exclude": MIRROR,
    "transforms.r.regex": {**SOURCE, **ROUTED},
    "predicates.p.pattern": {**SOURCE, **MATCHED},
}
"""A configuration for each key with a pattern that is validated; those of `topic.creation` are not, as in Connect."""


@pytest.fixture(scope="module")
async def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerProcess]:
    """A worker whose own property has such patterns, too; one topic has the name that all are tried with."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic in (NAME, "aab"):
        create_topic(bootstrap, topic, 1)
        producer.produce(topic, b"{}")
    producer.flush()
    extra = {"access.control.allow.origin": f"{SLOW},{GIVEN_UP},http://usual[.]example"}
    async with link_side() as (_, address):
        process = WorkerProcess(tmp_path_factory.mktemp("worker"), bootstrap, "patterns", address, extra)
        async with workers(process):
            yield process


@pytest.fixture(autouse=True)
def in_time() -> AsyncIterator[None]:
    """Each test takes seconds."""
    begun = time.monotonic()
    yield  # type: ignore[misc]
    assert time.monotonic() - begun < SECONDS


async def errors(worker: WorkerProcess, config: dict[str, str], key: str) -> list[str]:
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    answer = await worker.ask("PUT", path, {"name": "slow", "tasks.max": "1", **config})
    assert answer.status_code == 200, answer.text
    found: dict[str, list[str]] = {
        info["value"]["name"]: info["value"]["errors"] for info in answer.json()["configs"] if info["value"]
    }
    return found[key]


@pytest.mark.parametrize("key", VALIDATED)
async def test_a_pattern_in_validate(worker: WorkerProcess, key: str) -> None:
    config = VALIDATED[key]
    assert await errors(worker, {**config, key: SLOW}, key) == [], "as in Kafka Connect"
    given_up = await errors(worker, {**config, key: GIVEN_UP}, key)
    assert all("takes too long to match" in error for error in given_up), given_up
    assert len(given_up) == (key == "topics.regex"), "the only one that is matched with a text"
    assert "nested too deeply" in " ".join(await errors(worker, {**config, key: "(" * 3000}, key))


@pytest.mark.parametrize("key", ["transforms.r.regex", "predicates.p.pattern", "topics.regex"])
async def test_a_pattern_in_a_preview(worker: WorkerProcess, key: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\n")
    config = {name: text for name, text in VALIDATED[key].items() if not name.startswith("errors.")}
    if key != "topics.regex":
        config["file"] = str(tmp_path / "in")
    answer = await asked(worker, "/connectors/slow/preview", {"config": {**config, key: SLOW}, "records": 1})
    assert [record["outcome"] for record in answer["records"]] == ["given" if key == "topics.regex" else "written"]
    refused = await worker.ask("POST", "/connectors/slow/preview", {"config": {**config, key: GIVEN_UP}, "records": 1})
    assert "takes too long to match" in refused.text


@pytest.mark.parametrize("key", ["topics", "topics.exclude"])
async def test_a_pattern_of_topics_to_mirror(worker: WorkerProcess, bootstrap: str, key: str) -> None:
    config = {
        **MIRROR, "source.cluster.bootstrap.servers": bootstrap, "target.cluster.bootstrap.servers": bootstrap,
        "replication.factor": "1", "offset-syncs.topic.replication.factor": "1", "topics": NAME, "tasks.max": "1",
    }  # fmt: skip
    name = f"mirror-{key}"
    created = await worker.ask("PUT", f"/connectors/{name}/config", {**config, key: SLOW})
    assert created.status_code == 201, created.text
    await worker.reaches(name, "RUNNING", "RUNNING")
    changed = await worker.ask("PUT", f"/connectors/{name}/config", {**config, key: GIVEN_UP})
    assert changed.status_code == 200, changed.text
    answers = [worker.ask("GET", "/connectors") for _ in range(5)]
    assert {answer.status_code for answer in await asyncio.gather(*answers)} == {200}
    assert (await worker.ask("DELETE", f"/connectors/{name}")).status_code == 204


async def test_a_pattern_of_origins(worker: WorkerProcess) -> None:
    for origin, allowed in ((NAME, None), ("a" * 8000, None), ("http://USUAL.example", "http://USUAL.example")):
        answer = await worker.ask("GET", "/", headers={"Origin": origin})
        assert answer.headers.get("access-control-allow-origin") == allowed


def test_a_pattern_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "x")
    assert EnvVarProvider({"allowlist.pattern": SLOW}).get("", [NAME]) == {}
    with pytest.raises(ConfigProviderError, match=r"allowlist\.pattern .* takes too long to match"):
        EnvVarProvider({"allowlist.pattern": GIVEN_UP})
    with pytest.raises(ConfigProviderError, match="Unclosed group"):
        EnvVarProvider({"allowlist.pattern": "("})


def test_a_pattern_in_a_copy_run() -> None:
    assert Subscription({"topics.regex": SLOW}).names([NAME, "aab"]) == ["aab"]
    for key in ("include", "exclude"):
        patterns = {"topic.creation.g.include": ".*", f"topic.creation.g.{key}": SLOW}
        creation = TopicCreation({**CREATED, **patterns, "topic.creation.groups": "g"})
        assert creation.groups[0].matches(NAME) is (key == "exclude")
    with pytest.raises(ConfigValueError, match="nested too deeply"):
        Subscription({"topics.regex": "(" * 3000})
