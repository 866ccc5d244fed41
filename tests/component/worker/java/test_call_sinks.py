"""A Java sink task is called as in Apache Kafka Connect: the same steps that were recorded there, call by call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from recorded.java.call_sink_steps import SCENARIOS, WORKER, play_all
from recorded.java.record_call_sinks import recorded
from support.java.kit import needs_java, packed
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]

DIFFERENT: dict[str, list[str]] = {
    "one task, two, one": [
        *("0: start task-thread-NAME-0 []", "0: open [0, 1, 2, 3] of [0, 1, 2, 3]"),
        *("0: put 0@0-2 1@0-2 2@0-2 3@0-2", "0: preCommit {0=3, 1=3, 2=3, 3=3} | flush {0=3, 1=3, 2=3, 3=3}"),
        *("0: close [0, 1, 2, 3] of [0, 1, 2, 3]", "0: open [0, 1] of [0, 1]"),
        *("0: put 0@3-4 1@3-4", "0: preCommit {0=5, 1=5} | flush {0=5, 1=5}"),
        *("0: close [0, 1] of [0, 1]", "0: open [0, 1, 2, 3] of [0, 1, 2, 3]"),
        *("0: put 0@5-6 1@5-6 2@5-6 3@5-6", "0: preCommit {0=7, 1=7, 2=7, 3=7} | flush {0=7, 1=7, 2=7, 3=7}"),
        *("0: close [0, 1, 2, 3] of [0, 1, 2, 3]", "0: stop"),
        *("1: start task-thread-NAME-1 []", "1: open [2, 3] of [2, 3]"),
        *("1: put 2@3-4 3@3-4", "1: preCommit {2=5, 3=5} | flush {2=5, 3=5}", "1: close [2, 3] of [2, 3]", "1: stop"),
    ],
    "more partitions": [
        *("0: start task-thread-NAME-0 []", "0: open [0] of [0]", "0: put 0@0-2", "0: preCommit {0=3} | flush {0=3}"),
        *("0: close [0] of [0]", "0: open [0, 1] of [0, 1]"),
        *("0: put 0@3-4 1@3-4", "0: preCommit {0=5, 1=5} | flush {0=5, 1=5}", "0: close [0, 1] of [0, 1]", "0: stop"),
        *("1: start task-thread-NAME-1 []", "1: open [1] of [1]", "1: put 1@0-2", "1: preCommit {1=3} | flush {1=3}"),
        *("1: close [1] of [1]", "1: open [2, 3] of [2, 3]", "1: put 2@0-4 3@0-4"),
        *("1: preCommit {2=5, 3=5} | flush {2=5, 3=5}", "1: close [2, 3] of [2, 3]", "1: stop"),
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

    calls = {**recorded(), **DIFFERENT}
    expected = {name: calls[name] for name, value in SCENARIOS.items() if not value.alone}
    async with workers(worker):
        actual_play_all = await play_all(bootstrap, ask, tmp_path / "calls", list(expected))
        # On a busy host slow calls may cause a commit of nothing new between: that does not happen twice.
        if late := [name for name in expected if actual_play_all[name] != expected[name]]:
            actual_play_all |= await play_all(bootstrap, ask, tmp_path / "calls", late, turn="-again")
        assert await worker.end() == 0
    unlike = {
        name: (calls, actual_play_all[name]) for name, calls in expected.items() if actual_play_all[name] != calls
    }
    assert not unlike, "\n".join(
        f"{name}\n  expected {first}\n  found    {second}" for name, (first, second) in unlike.items()
    )
