"""A Java sink task is called as in Apache Kafka Connect: the same steps as there were recorded, call by call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import recorded.java.record_call_sinks as recording
from recorded.java.call_sink_steps import WORKER, play_all
from support.java.kit import needs_java, packed
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java(), pytest.mark.timeout(600)]

DIFFERENT: dict[str, list[str]] = {
    "reports a bad record, none is tolerated": [
        "start task-thread-NAME-0 []",
        "open [0] of [0]",
        "put 0@0-2 | report 1 | thrown ConnectException",
        "close [0] of [0]",
        "stop",
    ],
    "paused and resumed": [
        "start task-thread-NAME-0 []",
        "open [0] of [0]",
        "put 0@0-2",
        "preCommit {0=3} | flush {0=3}",
        "close [0] of [0]",
        "stop",
        "start task-thread-NAME-0 []",
        "open [0] of [0]",
        "put 0@3-4",
        "preCommit {0=5} | flush {0=5}",
        "close [0] of [0]",
        "stop",
    ],
}
"""Where a task here is called otherwise, and how; docs/java-plugins.md has the reasons."""


async def test_a_task_is_called_as_in_kafka_connect(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    own = {
        "plugin.path": str(await packed(tmp_path)),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.tasks.per.slot": "100",
        "keelman.restart.max.attempts": "0",
        "keelman.park.after.ms": "-1",
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "callsinks", spark.address, {**own, **WORKER})

    async def ask(method: str, path: str, body: Any) -> httpx.Response:
        return await worker.ask(method, path, body)

    expected = {**json.loads(recording.FILE.read_text()), **DIFFERENT}
    async with workers(worker):
        found = await play_all(bootstrap, ask, tmp_path / "calls")
        # On a busy host what is slow may bring a commit of nothing new between: it does not twice.
        if late := [name for name in expected if found[name] != expected[name]]:
            found |= await play_all(bootstrap, ask, tmp_path / "calls", late, turn="-again")
        assert await worker.end() == 0
    unlike = {name: (calls, found[name]) for name, calls in expected.items() if found[name] != calls}
    assert not unlike, "\n".join(f"{name}\n  expected {one}\n  found    {two}" for name, (one, two) in unlike.items())
