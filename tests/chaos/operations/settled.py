"""The differences between the requested and the actual state, once no more requests arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from chaos.operations.connectors import tasks_of
from chaos.operations.kept import PAUSED, STARTED, STOPPED
from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import copy_run_service_pb2 as service
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.kafka.tables.reading import read_topic
from keelman.rpc.channels import channel
from keelman.worker.storage.config_state import ConfigState
from support.worker.groups import Workers

SHOWN = {STARTED: "RUNNING", PAUSED: "PAUSED", STOPPED: "STOPPED"}
METRIC = re.compile(r'^keelman_(?:task|connector)_state\{connector="([^"]+)"(?:,task="(\d+)")?,state="(\w+)"\} 1', re.M)
HANDED_ON = ("tag", "patched", "topic", "topics", "tasks.max")
"""The keys that every class passes to its tasks unchanged."""
LOOK_SECONDS = 30.0


class Place(NamedTuple):
    """A connector or, with a number, one of its tasks: the worker that runs it and its state."""

    connector: str
    task: int | None
    worker: str
    state: str


@dataclass
class Told:
    """The state that one worker reports."""

    id: str
    names: set[str]
    expanded: dict[str, Any]
    topics: dict[str, list[str]]
    places: set[Place]


async def config_topic(bootstrap: str, group: str) -> ConfigState:
    """The state that is stored in the group's config topic."""
    state = ConfigState()
    rows = await read_topic(
        {"bootstrap.servers": bootstrap}, f"{group}-configs", client_id="look", seconds=LOOK_SECONDS
    )
    for row in rows:
        state.apply(row.key.decode(), row.value, row.offset)
    return state


async def differences(workers: Workers, bootstrap: str, spark: str, group: str, names: list[str]) -> list[str]:
    """The differences, one line each, for these connectors, whether they exist or not. Raises httpx.HTTPError."""
    config = await config_topic(bootstrap, group)
    told = [await _told(workers, number, names) for number in range(len(workers.processes))]
    async with channel(spark) as link:
        request = service.ListCopyRunsRequest(worker_cluster=group, page_size=1000)
        runs = list((await CopyRunServiceStub(link).ListCopyRuns(request)).copy_runs)
    return differing(config, told, runs)


def differing(config: ConfigState, told: list[Told], runs: list[copy.CopyRun]) -> list[str]:
    """The differences between the config topic, the workers' reports and the Spark service's copy runs. Pure."""
    actual_differing = [*_among_workers(config, told), *_metrics(told), *_runs(told[0], runs)]
    for name in config.connectors.keys() & told[0].expanded.keys():
        actual_differing += _connector(config, name, told[0].expanded[name])
    return actual_differing


async def _told(workers: Workers, number: int, names: list[str]) -> Told:
    worker = workers.processes[number]
    listed = (await worker.ask("GET", "/connectors")).json()
    expanded = (await worker.ask("GET", "/connectors?expand=info&expand=status")).json()
    topics = {name: (await worker.ask("GET", f"/connectors/{name}/topics")).json()[name]["topics"] for name in names}
    places = measured(worker.id, (await worker.ask("GET", "/metrics")).text)
    return Told(worker.id, set(listed), expanded, topics, places)


def measured(worker: str, metrics: str) -> set[Place]:
    """The connectors and tasks in the text of a worker's metrics."""
    result = METRIC.findall(metrics)
    return {Place(name, int(task) if task else None, worker, state) for name, task, state in result}


def _among_workers(config: ConfigState, told: list[Told]) -> Iterator[str]:
    """All workers report the same, and exactly the existing connectors."""
    for item in told:
        for what, result in (("lists", item.names), ("expands", item.expanded.keys())):
            if result != config.connectors.keys():
                yield f"{item.id} {what} {sorted(result)}, there are {sorted(config.connectors)}"
        for name, expanded in item.expanded.items():
            if expanded != told[0].expanded.get(name):
                yield f"{name}: {item.id} tells {expanded}, {told[0].id} {told[0].expanded.get(name)}"
        for name, topics in item.topics.items():
            if topics != told[0].topics[name]:
                yield f"{name}: topics by {item.id} {topics}, by {told[0].id} {told[0].topics[name]}"
            if topics and name not in config.connectors:
                yield f"{name}: is deleted, and has topics {topics} by {item.id}"


def _metrics(told: list[Told]) -> Iterator[str]:
    """Each connector and task is in the metrics of the worker that runs it by its status, and of no other."""
    places = {place for item in told for place in item.places}
    present = set()
    for name, expanded in told[0].expanded.items():
        status = expanded["status"]
        present.add(Place(name, None, status["connector"]["worker_id"], status["connector"]["state"]))
        present |= {Place(name, task["id"], task["worker_id"], task["state"]) for task in status["tasks"]}
    for place in places - present:
        yield f"by metrics, not by status: {place}"
    for place in present - places:
        if place.state != "STOPPED":
            yield f"by status, not by metrics: {place}"


def _runs(told: Told, runs: list[copy.CopyRun]) -> Iterator[str]:
    """A task has at most one copy run, by its own worker, and only while it runs."""
    running = {
        (name, task["id"], task["worker_id"])
        for name, expanded in told.expanded.items()
        for task in expanded["status"]["tasks"]
        if task["state"] == "RUNNING"
    }
    for run in runs:
        at = run.connector, run.task, run.worker_id
        if run.state != copy.COPY_RUN_STATE_RUNNING or at not in running:
            yield f"copy run of {at} is {copy.CopyRunState.Name(run.state)}; it is running: {at in running}"
        running.discard(at)


def _rests(task: dict[str, Any]) -> bool:
    """Whether a task of a paused connector rests: it is paused, or it has failed and no restart is due."""
    restart = task.get("keelman", {}).get("restart", {})
    return task["state"] == "PAUSED" or (task["state"] == "FAILED" and "next" not in restart)


def _connector(config: ConfigState, name: str, expanded: dict[str, Any]) -> Iterator[str]:
    """The connector has the requested state, and its tasks run with its current configuration."""
    connector, target = config.connectors[name], config.target(name)
    status = expanded["status"]
    states = [task["state"] for task in status["tasks"]]
    if expanded["info"]["config"] != connector:
        yield f"{name}: told config {expanded['info']['config']}, in the topic {connector}"
    if status["connector"]["state"] != SHOWN[target]:
        yield f"{name}: {target} was asked for, it is {status['connector']}"
    if target == STARTED and states != ["RUNNING"] * tasks_of(connector):
        yield f"{name}: {tasks_of(connector)} running tasks were asked for, they are {status['tasks']}"
    if target == PAUSED and not all(map(_rests, status["tasks"])):
        yield f"{name}: a pause was asked for, tasks are {status['tasks']}"
    if target == STOPPED and states:
        yield f"{name}: a stop was asked for, tasks are {status['tasks']}"
    if target == STARTED:
        for number, task in enumerate(config.tasks.get(name, ())):
            if any(task.get(key) != connector.get(key) for key in HANDED_ON):
                yield f"{name}: task {number} is configured with {dict(task)}, the connector with {connector}"
