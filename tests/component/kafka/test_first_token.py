"""Clients that start before the token server serves.

A copy run fails with a retriable error, callers get the reason, and the next attempt finds a token. No process counts
as dead meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from keelman.connectors.mirror.source import ASSIGNED, MirrorSource
from keelman.engine.clients import client_settings, portable, with_token
from keelman.engine.dead_letters.reader import survey
from keelman.engine.dead_letters.replay import replay
from keelman.engine.sink.ranges import Range, rows
from keelman.engine.slot.loops import SILENT_SECONDS
from keelman.kafka.security.oauth import ALLOWED_KEY, URL_KEY, allow_urls
from keelman.model.errors import KeelmanError, Unavailable
from support.brokers.secure_broker import SecureBroker
from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic
from support.servers.token_server import TokenServer, token_server
from support.waiting import until
from support.worker.processes import WorkerProcess, link_side, workers

pytestmark = pytest.mark.component
Properties = dict[str, str]


@pytest.fixture
def server() -> Iterator[TokenServer]:
    """A server that gives no tokens yet."""
    with token_server() as running:
        running.status = 503
        allow_urls(running.url)
        yield running


def bearer(broker: SecureBroker, url: str) -> Properties:
    """A worker's properties; a token server that gives no token is retried soon."""
    soon = {"sasl.login.retry.backoff.ms": "10", "sasl.login.retry.backoff.max.ms": "50"}
    return {**broker.with_tokens_of(url), **soon, ALLOWED_KEY: url}


def fill(broker: SecureBroker, topic: str, *values: bytes) -> None:
    create_topic(broker.at("PLAINTEXT"), topic)
    producer = Producer({"bootstrap.servers": broker.at("PLAINTEXT")})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(300) == 0


def told_then_given(server: TokenServer, ask: Callable[[], Any]) -> Any:
    """The answer once tokens are served; before that the error names the server."""
    with pytest.raises(Unavailable, match=rf"^{URL_KEY}: {server.url} answered 503"):
        ask()
    server.status = 200
    results: list[Any] = []

    def answered() -> bool:
        with contextlib.suppress(Unavailable):
            results.append(ask())
        return bool(results)

    until(answered, "the answer comes with a token")
    return results[0]


def spark_sink(broker: SecureBroker, url: str, folder: Path, topic: str) -> Any:
    config = {"name": topic, "connector.class": "SparkSink", "topics": topic}
    config |= {"spark.format": "parquet", "spark.path": str(folder)}
    return ticket("", config, worker_config=bearer(broker, url))


def test_a_spark_sink_tries_again(
    broker: SecureBroker, server: TokenServer, runs: Callable[..., Run], name: str, tmp_path: Path
) -> None:
    fill(broker, name, b"one")
    failed = runs(spark_sink(broker, server.url, tmp_path, name)).until_state("FAILED")
    assert (failed.retriable, failed.reason) == (True, "BROKER_LOST")
    assert failed.message == f"{URL_KEY}: {server.url} answered 503"
    server.status = 200

    def begun() -> list[Any]:
        run = runs(spark_sink(broker, server.url, tmp_path, name))
        update = run.until(lambda u: u.write.number or u.state == failed.state)
        return list(update.write.ranges)

    (started,) = until(begun, "it has Spark write")
    assert (started.topic, started.begin, started.end) == (name, 0, 1)


def test_a_spark_sink_lives_while_the_server_hangs(
    broker: SecureBroker, server: TokenServer, runs: Callable[..., Run], name: str, tmp_path: Path
) -> None:
    """A slot whose loop gives no sign of life is killed, with all its runs."""
    fill(broker, name, b"one")
    server.status = 200
    with server.held:
        run = runs(spark_sink(broker, server.url, tmp_path, name))
        until(lambda: server.asked, "it asks for a token")
        since = time.monotonic()
        until(lambda: run.loop.silent_seconds() < time.monotonic() - since, "its loop beats", SILENT_SECONDS)
    ranges = run.until(lambda u: u.write.number).write.ranges
    assert [(single_range.topic, single_range.begin, single_range.end) for single_range in ranges] == [(name, 0, 1)]


def test_what_spark_reads_ranges_with_tells_why(broker: SecureBroker, server: TokenServer, name: str) -> None:
    fill(broker, name, b"one")
    java = bearer(broker, server.url)
    properties = portable({**client_settings(java, "consumer"), "group.id": name}, java)
    batches = told_then_given(server, lambda: list(rows([Range(name, 0, 0, 1)], properties)))
    assert [value for batch in batches for value in batch.column("value").to_pylist()] == [b"one"]


def test_dead_letters_are_read_once_there_is_a_token(broker: SecureBroker, server: TokenServer, name: str) -> None:
    fill(broker, name, b"one")
    request = {"seconds": 20.0, "records": 1, **letters_of(broker, server.url, name)}
    assert told_then_given(server, lambda: survey(request))["letters"] == 1


def test_a_replay_begins_once_there_is_a_token(broker: SecureBroker, server: TokenServer, name: str) -> None:
    fill(broker, name, b"one")
    more: dict[str, Any] = {"to": "", "stage": "", "exception": "", "since_ms": None, "most": 10, "cursor": None}
    request = {"seconds": 20.0, "sink": True, "dry_run": False, **more, **letters_of(broker, server.url, name)}
    assert told_then_given(server, lambda: replay(request))["cursor"] is None


def test_a_mirror_says_why_and_looks_again(broker: SecureBroker, server: TokenServer, name: str) -> None:
    fill(broker, name, b"one")
    config = {"connector.class": "MirrorSource", "topics": name, "emit.offset-syncs.enabled": "false"}
    config |= {"source.cluster.alias": "there", "target.cluster.alias": "here", "sync.topic.acls.enabled": "false"}
    config |= {f"source.cluster.{key}": value for key, value in bearer(broker, server.url).items()}
    config |= {"target.cluster.bootstrap.servers": broker.at("PLAINTEXT"), "replication.factor": "1", "name": name}
    assert MirrorSource.settled([(config, [])]) == [False]
    told_then_given(server, lambda: MirrorSource.tend(config))
    tasks = MirrorSource.task_configs(config, 1)
    assert [task[ASSIGNED] for task in tasks] == [f"{name}-0"]
    assert MirrorSource.settled([(config, tasks)]) == [True]


async def test_a_worker_says_that_a_preview_may_come_later(
    broker: SecureBroker, server: TokenServer, name: str, tmp_path: Path
) -> None:
    fill(broker, name, b"one")
    config = {"connector.class": "FileStreamSink", "topics": name, "file": str(tmp_path / "out")}
    config |= {f"consumer.override.{key}": value for key, value in bearer(broker, server.url).items()}
    async with link_side() as (_, address):
        worker = WorkerProcess(tmp_path, broker.at("PLAINTEXT"), name, address, {ALLOWED_KEY: server.url})
        async with workers(worker):

            async def told() -> tuple[int, dict[str, Any]]:
                request = {"config": config, "from": "beginning"}
                answer = await worker.ask("POST", f"/connectors/{name}/preview", request)
                return answer.status_code, answer.json()

            words = f"the preview of {name}: {URL_KEY}: {server.url} answered 503"
            assert await told() == (503, {"error_code": 503, "message": words})
            server.status = 200
            status, answer = await told()
            assert (status, len(answer["records"])) == (200, 1), answer


def letters_of(broker: SecureBroker, url: str, topic: str) -> dict[str, Any]:
    config = {"connector.class": "FileStreamSink", "topics": "none", "file": "none"}
    config |= {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": topic}
    worker = {**bearer(broker, url), "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    return {"name": topic, "config": config, "worker_config": {**worker, "key.converter": worker["value.converter"]}}


def test_who_waits_for_a_token_may_be_told_to_stop(broker: SecureBroker, server: TokenServer) -> None:
    def stop() -> None:
        if server.asked:
            raise KeelmanError("stop")

    with server.held, pytest.raises(KeelmanError, match="stop"):
        with_token(client_settings(bearer(broker, server.url), "consumer"), stop)
