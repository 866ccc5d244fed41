"""A cluster's life in requests, for the records that it leaves in the three topics.

Played by `record_topics.py` on Apache Kafka Connect and by a test on our worker. `{folder}` is replaced by a folder
with the file `in`, of three lines. After each step its `until` is waited for: connector to states, connector first; or
the source's offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from support.eventually import eventually

LINES = "one\ntwo\nthree\n"
GROUP = "recorded"
CONFIGS, OFFSETS, STATUS = (f"{GROUP}-{kind}" for kind in ("configs", "offsets", "status"))
PARTITIONS = {CONFIGS: 1, OFFSETS: 5, STATUS: 5}
PROPERTIES = {
    "offset.storage.partitions": "5",
    "status.storage.partitions": "5",
    "exactly.once.source.support": "enabled",
    "offset.flush.interval.ms": "500",
}
SOURCE = {"connector.class": "FileStreamSource", "file": "{folder}/in", "topic": "recorded-lines"}
SINK = {"connector.class": "FileStreamSink", "file": "{folder}/out", "topics": "recorded-lines"}
# Values that JSON can write in more than one way, in the order of the request.
ODD = {"zz": 'ü € \U0001f600 " \\ / <&> \u001f \u007f \t', "a": "", "empty=": " x ", "batch.size": "10"}


@dataclass(frozen=True)
class Step:
    """One request, and the states that are waited for after it."""

    method: str
    path: str
    body: Any = None
    until: dict[str, list[str]] = field(default_factory=dict)
    position: int | None = None
    gone: str = ""
    tasks: dict[str, str] = field(default_factory=dict)
    """Connector to `batch.size` in its first task's configuration."""
    topics: dict[str, list[str]] = field(default_factory=dict)
    """Connector to the topics that it is known to use."""


RUNS = ["RUNNING", "RUNNING"]
STEPS = (
    Step(
        "POST",
        "/connectors",
        {"name": "in", "config": {**SOURCE, **ODD}, "initial_state": "PAUSED"},
        {"in": ["PAUSED"]},
    ),
    Step("PUT", "/connectors/in/resume", None, {"in": RUNS}, position=len(LINES)),
    Step("PUT", "/connectors/in/pause", None, {"in": ["PAUSED", "PAUSED"]}),
    Step("PUT", "/connectors/in/resume", None, {"in": RUNS}),
    Step("PUT", "/connectors/in/config", {**SOURCE, "batch.size": "20"}, {"in": RUNS}, tasks={"in": "20"}),
    Step("PATCH", "/connectors/in/config", {"batch.size": "30", "b": "c"}, {"in": RUNS}, tasks={"in": "30"}),
    Step("POST", "/connectors/in/restart", None, {"in": RUNS}),
    Step("POST", "/connectors/in/restart?includeTasks=true&onlyFailed=false", None, {"in": RUNS}),
    Step("POST", "/connectors/in/tasks/0/restart", None, {"in": RUNS}),
    Step(
        "POST",
        "/connectors",
        {"name": "out ü", "config": SINK},
        {"out%20%C3%BC": RUNS},
        topics={"out%20%C3%BC": ["recorded-lines"]},
    ),
    Step("PUT", "/admin/loggers/org.example?scope=cluster", {"level": "DEBUG"}),
    Step("PUT", "/connectors/in/stop", None, {"in": ["STOPPED"]}),
    Step(
        "PATCH",
        "/connectors/in/offsets",
        {"offsets": [{"partition": {"filename": "{folder}/in"}, "offset": {"position": 4}}]},
    ),
    Step("DELETE", "/connectors/in/offsets"),
    Step("PUT", "/connectors/in/resume", None, {"in": RUNS}, position=len(LINES)),
    Step("DELETE", "/connectors/in", gone="in"),
    Step("POST", "/connectors", {"name": "in", "config": SOURCE}, {"in": RUNS}),
    Step("PUT", "/connectors/out%20%C3%BC/stop", None, {"out%20%C3%BC": ["STOPPED"]}),
    Step("DELETE", "/connectors/out%20%C3%BC", gone="out%20%C3%BC"),
)

Ask = Callable[[str, str, Any], Awaitable[Any]]


def placed(value: Any, folder: Path) -> Any:
    """The value with the folder's name inserted."""
    if isinstance(value, str):
        return value.replace("{folder}", str(folder))
    if isinstance(value, dict):
        return {k: placed(v, folder) for k, v in value.items()}
    return [placed(v, folder) for v in value] if isinstance(value, list) else value


async def prepare(bootstrap: str, folder: Path) -> None:
    """Creates the file to read and its topic."""
    (folder / "in").write_text(LINES)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic("recorded-lines", 1, 1)])
    finally:
        await admin.close()


async def play(ask: Ask, folder: Path) -> None:
    """Does every step, each once the step before has settled. `ask` returns an httpx response."""
    for step in STEPS:
        await asyncio.sleep(0)
        answer = await ask(step.method, step.path, placed(step.body, folder))
        assert answer.status_code < 300, f"{step.method} {step.path}: {answer.status_code} {answer.text}"
        await eventually(lambda step=step: settled(ask, step), seconds=60, what=f"{step.method} {step.path} is done")


async def settled(ask: Ask, step: Step) -> bool:
    """Whether the states that the step waits for are reached."""
    for name, states in step.until.items():
        answer = await ask("GET", f"/connectors/{name}/status", None)
        if answer.status_code != 200:
            return False
        status = answer.json()
        if [status["connector"]["state"], *(task["state"] for task in status["tasks"])] != states:
            return False
    for name, size in step.tasks.items():
        tasks = (await ask("GET", f"/connectors/{name}/tasks", None)).json()
        if [task["config"].get("batch.size") for task in tasks] != [size]:
            return False
    for name, topics in step.topics.items():
        used = (await ask("GET", f"/connectors/{name}/topics", None)).json()
        if list(used.values()) != [{"topics": topics}]:
            return False
    if step.position is not None:
        rows = (await ask("GET", "/connectors/in/offsets", None)).json()["offsets"]
        return [row["offset"]["position"] for row in rows] == [step.position]
    return not step.gone or (await ask("GET", f"/connectors/{step.gone}/status", None)).status_code == 404


async def written(bootstrap: str, topic: str) -> list[list[Any]]:
    """All committed records of a topic, partition by partition in order: partition, key, value."""
    reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False)
    await reader.start()
    try:
        parts = [TopicPartition(topic, n) for n in range(PARTITIONS[topic])]
        reader.assign(parts)
        await reader.seek_to_beginning(*parts)
        ends = await reader.end_offsets(parts)
        rows: list[list[Any]] = []
        while any([await reader.position(tp) < ends[tp] for tp in parts]):
            for tp, batch in (await reader.getmany(timeout_ms=500)).items():
                rows += [[tp.partition, r.offset, r.key.decode(), r.value and r.value.decode()] for r in batch]
        return [[p, key, value] for p, _, key, value in sorted(rows, key=lambda row: row[:2])]
    finally:
        await reader.stop()
