"""Differences that `make operations` finds at rest: in the goals, in the workers' answers, in copy runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chaos.operations.settled import Told, differing, measured
from keelman.api.copy.v1 import copy_run_pb2 as wire
from keelman.runtime.exposition import Exposition, escaped
from keelman.worker.metrics import metric_names
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState

CONFIG = {"name": "x", "connector.class": "FileStreamSource", "tag": "1", "topic": "t"}
HERE, THERE = "here:1", "there:1"


def config(target: str = "STARTED", **task: str) -> ConfigState:
    state = ConfigState()
    written = [records.connector_record("x", CONFIG), *records.task_records("x", [{**CONFIG, **task}])]
    written += [records.commit_record("x", 1), records.target_record("x", target)]
    for offset, (key, value) in enumerate(written):
        state.apply(key.decode(), value, offset)
    return state


def scraped(worker: str, *, connector: str = "", task: str = "") -> set[Any]:
    out = Exposition()
    if connector:
        out.add(metric_names.CONNECTOR_STATE, 1, f'connector="{escaped("x")}",state="{connector}"')
    if task:
        out.add(metric_names.TASK_STATE, 1, f'connector="{escaped("x")}",task="0",state="{task}"')
    return measured(worker, b"".join(out.families()).decode())


def told() -> list[Told]:
    """The connector is here, its task there."""
    status = {
        "connector": {"state": "RUNNING", "worker_id": HERE},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": THERE}],
    }
    expanded = {"x": {"info": {"config": CONFIG}, "status": status}}
    return [
        Told(HERE, {"x"}, copy.deepcopy(expanded), {"x": ["t"]}, scraped(HERE, connector="RUNNING")),
        Told(THERE, {"x"}, copy.deepcopy(expanded), {"x": ["t"]}, scraped(THERE, task="RUNNING")),
    ]


def run(worker: str = THERE, state: Any = wire.COPY_RUN_STATE_RUNNING) -> wire.CopyRun:
    return wire.CopyRun(connector="x", task=0, worker_id=worker, state=state)


def test_metrics_are_read() -> None:
    assert len(scraped(HERE, connector="RUNNING", task="FAILED")) == 2


def test_nothing_differs() -> None:
    assert differing(config(), told(), [run()]) == []
    assert differing(config(), told(), []) == []  # parked


def everywhere(change: Callable[[dict[str, Any]], Any]) -> list[Told]:
    actual_everywhere = told()
    for connector in actual_everywhere:
        change(connector.expanded["x"])
    return actual_everywhere


def failed(expanded: dict[str, Any]) -> None:
    expanded["status"]["tasks"][0]["state"] = "FAILED"


@pytest.mark.parametrize(
    ("workers", "text"),
    [
        ([told()[0], replace(told()[1], names=set())], "lists"),
        ([told()[0], replace(told()[1], expanded={})], "expands"),
        ([told()[0], everywhere(failed)[1]], "there:1 tells"),
        ([told()[0], replace(told()[1], topics={"x": []})], "topics by there:1"),
        ([told()[0], replace(told()[1], places=set())], "by status, not by metrics"),
        ([replace(told()[0], places=scraped(HERE, connector="RUNNING", task="RUNNING")), told()[1]], "by metrics, not"),
        (everywhere(lambda e: e["info"].update(config={**CONFIG, "tag": "0"})), "in the topic"),
        (everywhere(failed), "1 running tasks were asked for"),
        (everywhere(lambda e: e["status"]["tasks"].clear()), "1 running tasks were asked for"),
        (everywhere(lambda e: e["status"]["connector"].update(state="PAUSED")), "STARTED was asked for"),
    ],
)
def test_what_workers_tell_differs(workers: list[Told], text: str) -> None:
    assert any(text in difference for difference in differing(config(), workers, []))


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (config("PAUSED"), "a pause was asked for"),
        (config("STOPPED"), "a stop was asked for"),
        (config(tag="0"), "task 0 is configured with"),
        (ConfigState(), "there are []"),
    ],
)
def test_what_is_asked_for_differs(state: ConfigState, text: str) -> None:
    assert any(text in difference for difference in differing(state, told(), []))


@pytest.mark.parametrize(
    "runs", [[run(HERE)], [run(), run()], [run(state=wire.COPY_RUN_STATE_DRAINING)], [run(), run(HERE)]]
)
def test_copy_runs_differ(runs: list[wire.CopyRun]) -> None:
    assert any("copy run of" in difference for difference in differing(config(), told(), runs))
