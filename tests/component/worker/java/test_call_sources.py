"""A Java source task is called as in Apache Kafka Connect, whatever its worker's REST orders and its group does.

The steps that were recorded there run through workers and are compared call by call. So are a sink's two tasks while a
worker comes and goes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recorded.java.call_sink_steps import GROUP, play_all
from recorded.java.record_call_sinks import recorded
from recorded.java.record_source_calls import unlike
from recorded.java.sink_play import exchanged
from recorded.java.source_calls_steps import IN_A_GROUP, THROUGH_A_WORKER, WORKER, Case, play
from support.java.kit import needs_java, packed
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]

DIFFERENT: dict[bool, dict[str, list[str]]] = {
    True: {
        # A paused task has left its slot; Connect keeps it, and does not call it.
        "paused and resumed": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own 2 sees 0", "gives own 0-1"),
            *("commitRecord own 0-1 there sees 2", "commit own sees 2", "wait1 own", "commit own sees 2", "stop own"),
            *("start own task-thread-NAME-0 step 1 next 2", "commit own sees 2", "poll own 3 sees 2", "gives own 2-4"),
            *("commitRecord own 2-4 there sees 5", "commit own sees 5", "idle own", "commit own sees 5"),
        ],
        # The first task keeps running: nothing has changed for it.
        "one task, two, one": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own 2 sees 0", "gives own 0-1"),
            *("commitRecord own 0-1 there sees 2", "commit own sees 2", "wait1 own", "commit own sees 2"),
            *("commit own sees 2", "poll own 3 sees 2", "gives own 2-4", "commitRecord own 2-4 there sees 5"),
            *("commit own sees 5", "wait2 own", "commit own sees 5", "commit own sees 5", "poll own 1 sees 5"),
            *("gives own 5-5", "commitRecord own 5-5 there sees 6", "commit own sees 6", "idle own"),
            *("commit own sees 6", "task 1"),
            *("start own task-thread-NAME-1 step 0 next 0", "poll own 2 sees 0", "gives own 0-1"),
            *("commitRecord own 0-1 there sees 2", "commit own sees 2", "wait1 own", "commit own sees 2"),
            *("commit own sees 2", "poll own 3 sees 2", "gives own 2-4", "commitRecord own 2-4 there sees 5"),
            *("commit own sees 5", "wait2 own", "commit own sees 5", "stop own"),
        ],
        # It is restarted for the owner that its group names; with Connect it stays FAILED.
        "another has its transactional id": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own 2 sees 0", "gives own 0-1"),
            *("commitRecord own 0-1 there sees 2", "commit own sees 2", "wait1 own", "commit own sees 2"),
            *("commit own sees 2", "poll own 3 sees 2", "gives own 2-4", "stop own"),
            *("start own task-thread-NAME-0 step 1 next 2", "commit own sees 2", "poll own 3 sees 2", "gives own 2-4"),
            *("commitRecord own 2-4 there sees 5", "commit own sees 5", "idle own", "commit own sees 5"),
        ],
    },
    False: {
        "paused and resumed": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own 2", "gives own 0-1", "wait1 own", "commit own"),
            *("stop own", "start own task-thread-NAME-0 step 1 next 2", "poll own 3", "gives own 2-4", "idle own"),
            *("commitRecord other 0-4 there", "commit other"),
        ],
        "one task, two, one": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own 2", "gives own 0-1", "wait1 own", "poll own 3"),
            *("gives own 2-4", "wait2 own", "poll own 1", "gives own 5-5", "idle own"),
            *("commitRecord other 0-5 there", "commit other", "task 1"),
            *("start own task-thread-NAME-1 step 0 next 0", "poll own 2", "gives own 0-1", "wait1 own", "poll own 3"),
            *("gives own 2-4", "wait2 own", "commit own", "stop own", "commitRecord other 0-4 there", "commit other"),
        ],
    },
}
"""Where a task here is called otherwise, by whether it is exactly-once; docs/java-plugins.md has the reasons."""

SINKS = {
    # Its tasks are static members of their group: the remaining task keeps its partitions and gets no calls.
    "another worker joins and leaves": [
        *("0: start task-thread-NAME-0 []", "0: open [0, 1] of [0, 1]", "0: put 0@0-6 1@0-6"),
        *("0: preCommit {0=7, 1=7} | flush {0=7, 1=7}", "0: close [0, 1] of [0, 1]", "0: stop"),
        *("1: start task-thread-NAME-1 []", "1: open [2, 3] of [2, 3]", "1: put 2@0-2 3@0-2"),
        *("1: preCommit {2=3, 3=3} | flush {2=3, 3=3}", "1: close [2, 3] of [2, 3]", "1: stop"),
        *("1: start task-thread-NAME-1 []", "1: open [2, 3] of [2, 3]", "1: put 2@3-4 3@3-4"),
        *("1: preCommit {2=5, 3=5} | flush {2=5, 3=5}", "1: close [2, 3] of [2, 3]", "1: stop"),
        *("1: start task-thread-NAME-1 []", "1: open [2, 3] of [2, 3]", "1: put 2@5-6 3@5-6"),
        *("1: preCommit {2=7, 3=7} | flush {2=7, 3=7}", "1: close [2, 3] of [2, 3]", "1: stop"),
    ],
}
"""The same for a sink."""


class Workers:
    """Workers of the plugins in a folder, and the notes of their tasks."""

    def __init__(self, bootstrap: str, spark: str, folder: Path, plugins: Path) -> None:
        self._bootstrap, self._spark, self._folder, self._plugins = bootstrap, spark, folder, plugins

    def make(self, name: str, *, exactly_once: bool) -> WorkerProcess:
        """A worker of the group for this guarantee."""
        own = {
            "plugin.path": str(self._plugins),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "exactly.once.source.support": "enabled" if exactly_once else "disabled",
            "keelman.plugin.tasks.per.slot": "100",
            "keelman.restart.max.attempts": "0",
            "keelman.park.after.ms": "-1",
            **GROUP,
            **WORKER,
        }
        folder = self._folder / name
        return WorkerProcess(folder, self._bootstrap, f"callsources-{exactly_once}", self._spark, own)

    async def play(self, worker: WorkerProcess, cases: Mapping[str, Case], **fields: Any) -> dict[str, list[str]]:
        """The notes of these cases."""

        return await play(worker.ask, self._bootstrap, self._folder / "calls", cases, group=worker.group, **fields)


async def test_a_task_is_called_as_in_kafka_connect(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    started_workers = Workers(bootstrap, spark.address, tmp_path, await packed(tmp_path))
    first, other = (started_workers.make(name, exactly_once=True) for name in ("one", "other"))
    least = started_workers.make("least", exactly_once=False)

    async def bounce() -> None:
        assert await first.end() == 0
        await first.start()

    acts = {"bounce": bounce, "join": other.start, "leave": other.end}
    try:
        async with workers(first, least):
            in_transactions, without = await asyncio.gather(
                started_workers.play(first, THROUGH_A_WORKER[True], name="call-once", exactly_once=True),
                started_workers.play(least, THROUGH_A_WORKER[False], name="call-least", exactly_once=False),
            )
            await least.end()
            sinks = await play_all(bootstrap, first.ask, tmp_path / "calls", acts=acts)
            for n, (name, case) in enumerate(IN_A_GROUP.items()):
                fields = {"name": f"call-group-{n}", "exactly_once": True, "acts": acts}
                in_transactions |= await started_workers.play(first, {name: case}, **fields)
    finally:
        await other.kill()
    answer = {
        True: unlike(in_transactions, {**THROUGH_A_WORKER[True], **IN_A_GROUP}, exactly_once=True),
        False: unlike(without, THROUGH_A_WORKER[False], exactly_once=False),
    }
    wrong = {
        name: calls for once in answer for name, calls in answer[once].items() if calls != DIFFERENT[once].get(name)
    }
    for name, calls in sinks.items():
        if calls not in (SINKS[name], exchanged(SINKS[name])):  # either task may move
            wrong[f"sink: {name}"] = calls
        assert recorded()[name] not in (SINKS[name], exchanged(SINKS[name]))
    assert not wrong, json.dumps(wrong, indent=1)
    assert answer == DIFFERENT
