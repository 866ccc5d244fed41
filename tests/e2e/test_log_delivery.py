"""Logs of a worker cluster of a whole system, delivered to a folder, a bucket and a topic, and its metrics."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from keelman.testing.eventually import eventually
from support.system_kit import FILE, STRING, Keelman

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []


def objects(folder: Path) -> list[bytes]:
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.rglob("*.log.gz"))).splitlines()


def records(bootstrap: str, topic: str, key: bytes) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
            "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(30)) is not None and not message.error():
            found += [message.value() or b""] if message.key() == key else []
    finally:
        consumer.close()
    return found


def events(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Time and first word of each line that has them, in a log or where it was delivered."""
    found = []
    for line in lines:
        words = line.split()
        if line.startswith(b"[Worker-") and len(words) > 4 and words[1].startswith(b"[20"):
            found.append((words[2][:12].replace(b",", b"."), words[4]))
        elif line[:2] == b"20" and b"Z [" in line[:32]:
            found.append((line[11:23], line.partition(b"] ")[2].split()[0]))
    return found


async def test_logs_of_a_system_are_delivered_and_its_connectors_measured(
    own: Keelman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_STATE_BUCKETS", str(tmp_path / "buckets"))
    monkeypatch.setenv("KEELMAN_AGENT_LOG_OBJECT_SECONDS", "1")
    given = tmp_path / "input.txt"
    given.write_text("a\nb\n")
    await own.ok("up", "--detach", "--free-ports")
    node = own.system["node"]
    refused = await own.run("create", "wc", "logged", "--count", "1", "--log-group", "a/../b")
    assert "spec.log_delivery.file.group" in refused.err
    targets = ("--log-group", "a/b", "--log-bucket", "logs/c", "--log-topic", "logs")
    await own.ok("create", "wc", "logged", "--count", "1", "--start", "--wait", *targets)
    words = [f"connector.class={FILE}SourceConnector", "tasks.max=1", "topic=copied", f"file={given}"]
    words += [f"key.converter={STRING}", f"value.converter={STRING}"]
    settings = [w for word in words for w in ("--set", word)]
    await own.ok("create", "connector", "logged/lines", *settings, "--wait")

    before = (await own.items("workers"))[0]["process"]["pid"]
    os.kill(before, signal.SIGKILL)
    os.kill(own.pid_of("agent"), signal.SIGKILL)

    async def again() -> bool:
        (worker,) = await own.items("workers")
        running = worker["process"]["state"] == "WORKLOAD_STATE_RUNNING"
        return running and worker["process"]["pid"] != before

    await eventually(again, seconds=120, what="the worker runs again")
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    log = own.home / "workloads" / "worker-logged-0" / "log"
    places: list[Callable[[], list[bytes]]] = [
        lambda: lines_of(own.home / "log-delivery" / "a" / "b" / "logged" / "logged-0"),
        lambda: objects(tmp_path / "buckets" / "logs" / "c" / "logged" / "logged-0"),
        lambda: records(servers, "logs", b"logged/logged-0"),
    ]
    for place in places:

        async def is_all_there(place: Callable[[], list[bytes]] = place) -> bool:
            found = await asyncio.to_thread(place)
            return len(found) >= len(lines_of(log)) > 0

        await eventually(is_all_there, seconds=60, what="all lines are delivered")
        wanted = lines_of(log)
        found = (await asyncio.to_thread(place))[: len(wanted)]
        assert events(found) == events(wanted[: len(found)])
    slots = own.home / "log-delivery" / "a" / "b" / "logged" / f"logged-slots-{node}"
    await eventually(lambda: any(b"connector=lines" in line for line in lines_of(slots)), seconds=60)
    assert all(b"worker_cluster=logged" in line for line in lines_of(slots) if b"] INFO" in line)

    async def measured() -> dict[str, float]:
        async with httpx.AsyncClient(trust_env=False) as client:
            text = (await client.get(f"{own.system['http']}/metrics", timeout=30)).text
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return {s.name: s.value for s in samples if s.labels.get("ConnectorName") == "lines"}

    async def is_running() -> bool:
        return (await measured()).get("RunningTaskCount") == 1

    await eventually(is_running, seconds=60)
    found_metrics = await measured()
    assert found_metrics["WorkerCount"] == 1
    assert found_metrics["ErroredTaskCount"] == 0
    assert 0 < found_metrics["MemoryUtilization"] < 100
    assert {"CpuUtilization", "TaskStartupSuccessPercentage", "RebalanceTimeAvg"} <= found_metrics.keys()

    updated = await own.ok("update", "wc", "logged", "--log-group", "none", "--log-bucket", "none", "--wait")
    assert "RUNNING 1/1 workers" in updated
    (worker,) = await own.items("workers")
    assert worker["process"]["restarts"] <= 1, "a change reaches no process"
