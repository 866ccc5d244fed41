"""Logs of a worker cluster of a whole system, delivered to a folder, a bucket and a topic."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from confluent_kafka import Consumer, TopicPartition

from support.cli.system import FILE, LOOK_SECONDS, STRING, Keelman
from support.eventually import eventually
from support.servers.object_store import KEY, SECRET, ObjectStore, object_store

pytestmark = pytest.mark.e2e


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []


def objects(bucket: Any, folder: str) -> list[bytes]:
    keys = sorted(entry["path"] for page in obstore.list(bucket, prefix=folder) for entry in page)
    return b"".join(gzip.decompress(bytes(obstore.get(bucket, key).bytes())) for key in keys).splitlines()


def records(bootstrap: str, topic: str, key: bytes) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
            "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    actual_records: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(30)) is not None and not message.error():
            actual_records += [message.value() or b""] if message.key() == key else []
    finally:
        consumer.close()
    return actual_records


def events(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Time and first word of each line that has them, in a log or where it was delivered."""
    actual_events = []
    for line in lines:
        words = line.split()
        if line.startswith(b"[Worker-") and len(words) > 4 and words[1].startswith(b"[20"):
            actual_events.append((words[2][:12].replace(b",", b"."), words[4]))
        elif line[:2] == b"20" and b"Z [" in line[:32]:
            actual_events.append((line[11:23], line.partition(b"] ")[2].split()[0]))
    return actual_events


def holders(own: Keelman) -> set[Path]:
    """The files of a system that contain the secret key."""
    return {f for f in own.home.rglob("*") if f.is_file() and SECRET in f.read_text(errors="replace")}


@pytest.mark.slow
async def test_logs_of_a_system_are_delivered(own: Keelman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket is an S3 server's, whose keys only the state service has; it is created later than the cluster."""
    async with object_store(tmp_path / "s3") as server:
        for name in server.environment:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("KEELMAN_STATE_BUCKETS", server.endpoint)
        monkeypatch.setenv("KEELMAN_STATE_BUCKETS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("KEELMAN_STATE_BUCKETS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("KEELMAN_AGENT_LOG_OBJECT_SECONDS", "1")
        await _delivered(own, tmp_path, server)
        path = own.home / "state" / "secrets.toml"  # where `up` puts the settings that are secret
        await eventually(lambda: holders(own) == {path}, what="the agent's keys are gone with the last delivery there")
        for told in ("workloads", "wc", "nodes", "operations"):
            assert SECRET not in await own.ok("get", told, "-o", "json")


async def _delivered(own: Keelman, tmp_path: Path, server: ObjectStore) -> None:
    path = tmp_path / "input.txt"
    path.write_text("a\nb\n")
    await own.ok("up", "--detach", "--free-ports")
    node = own.system["node"]
    refused = await own.run("create", "wc", "logged", "--count", "1", "--log-group", "a/../b")
    assert "spec.log_delivery.file.group" in refused.err
    targets = ("--log-group", "a/b", "--log-bucket", "logs/c", "--log-topic", "logs")
    await own.ok("create", "wc", "logged", "--count", "1", "--start", "--wait", *targets)
    words = [f"connector.class={FILE}SourceConnector", "tasks.max=1", "topic=copied", f"file={path}"]
    words += [f"key.converter={STRING}", f"value.converter={STRING}"]
    settings = [w for word in words for w in ("--set", word)]
    await own.ok("create", "connector", "logged/lines", *settings, "--wait")

    async def log_problems() -> list[dict[str, str]]:
        log_problems: list[dict[str, str]] = (await own.item("wc", "logged"))["status"].get("log_problems", [])
        return log_problems

    problems = await eventually(
        log_problems, every=LOOK_SECONDS, what="the status names the logs that are not delivered"
    )
    assert {(problem["target"], problem["stream"]) for problem in problems} <= {
        ("s3", "logged-0"), ("s3", f"logged-slots-{node}"),
    }, problems  # fmt: skip
    assert all(
        f"{server.endpoint}, bucket logs: " in problem["message"] and problem["since"] for problem in problems
    ), problems
    bucket = await server.create("logs")

    async def is_over() -> bool:
        return not await log_problems()

    await eventually(is_over, every=LOOK_SECONDS, what="it is over once there is a bucket")
    before = (await own.items("workers"))[0]["process"]["pid"]
    os.kill(before, signal.SIGKILL)
    os.kill(own.pid_of("agent"), signal.SIGKILL)

    async def again() -> bool:
        (worker,) = await own.items("workers")
        running = worker["process"]["state"] == "WORKLOAD_STATE_RUNNING"
        return running and worker["process"]["pid"] != before

    await eventually(again, every=LOOK_SECONDS, what="the worker runs again")
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    log = own.home / "workloads" / "worker-logged-0" / "log"
    places: list[Callable[[], list[bytes]]] = [
        lambda: lines_of(own.home / "log-delivery" / "a" / "b" / "logged" / "logged-0"),
        lambda: objects(bucket, "c/logged/logged-0/"),
        lambda: records(servers, "logs", b"logged/logged-0"),
    ]
    for place in places:

        async def is_all_there(place: Callable[[], list[bytes]] = place) -> bool:
            actual_place = await asyncio.to_thread(place)
            return len(actual_place) >= len(lines_of(log)) > 0

        await eventually(is_all_there, what="all lines are delivered")
        lines = lines_of(log)
        actual_place = (await asyncio.to_thread(place))[: len(lines)]
        assert events(actual_place) == events(lines[: len(actual_place)])
    slots = own.home / "log-delivery" / "a" / "b" / "logged" / f"logged-slots-{node}"
    await eventually(lambda: any(b"connector=lines" in line for line in lines_of(slots)))
    assert all(b"worker_cluster=logged" in line for line in lines_of(slots) if b"] INFO" in line)

    keys = own.home / "agent" / "bucket-keys.json"
    assert keys in holders(own)
    assert keys.stat().st_mode & 0o777 == 0o600
    updated = await own.ok("update", "wc", "logged", "--log-group", "none", "--log-bucket", "none", "--wait")
    assert "RUNNING 1/1 workers" in updated
    (worker,) = await own.items("workers")
    assert worker["process"]["restarts"] <= 1, "a change reaches no process"
