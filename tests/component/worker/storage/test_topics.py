"""The three topics byte for byte: our worker's records in a cluster's life, compared with Kafka Connect's."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka.tables.reading import Row, read_topic
from recorded.worker.topics_steps import CONFIGS, GROUP, OFFSETS, PROPERTIES, STATUS, play, prepare, written
from support.eventually import eventually
from support.places import RECORDED_FOLDER
from support.spark.service import SparkService
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = pytest.mark.component
RECORDED = json.loads((RECORDED_FOLDER / "worker" / "topics.json").read_text())
FOLDER = Path("/tmp/keelman-topics")  # as recorded: it is in keys, so partitions depend on it


def shown(rows: list[list[Any]]) -> list[tuple[int, str, str | None]]:
    """Records without the parts that differ from run to run, and with the properties sorted by name.

    Java's maps give the properties in an order that depends on how each map was built; no reader relies on it.
    """
    return [(partition, key, None if value is None else plain(value)) for partition, key, value in rows]


def plain(value: str) -> str:
    """The text with its properties sorted, each of them byte for byte unchanged."""
    data = json.loads(value)
    assert ": " not in value.split('"', 1)[0]
    if "properties" in data:
        # A connector's uid is beside its properties, where Connect does not look.
        value = re.sub(r',"keelman\.uid":"[-0-9a-f]{36}"\}$', "}", value)
        # Each property exactly as in the text, including escapes.
        inner = value.removeprefix('{"properties":{').removesuffix("}}")
        inners = [
            inner[inner.index(key) :] for key in (f"{json.dumps(k, ensure_ascii=False)}:" for k in data["properties"])
        ]
        starts = sorted((inner.index(text) for text in inners), reverse=True)
        members, end = [], len(inner)
        for start in starts:
            members.append(inner[start:end].rstrip(","))
            end = start
        return '{"properties":{' + ",".join(sorted(members)) + "}}"
    for name in ("key", "creation-timestamp"):
        if name in data:
            data[name] = type(data[name])()
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def as_connect(rows: list[tuple[int, str, str | None]]) -> list[tuple[int, str, str | None]]:
    """The records without those that only ours writes and Connect does not need.

    Tombstones of tasks and their commits: Connect does not delete those records, and they come back with the name. The
    restart of a connector alone: Connect sends it to its worker directly, ours through the topic, which is not
    replayed.
    """
    alone = '{"include-tasks":false,"only-failed":false}'
    rows = [row for row in rows if row[2] is not None or not row[1].startswith(("task-", "commit-"))]
    return [row for row in rows if row[2] != alone]


def moves(rows: list[list[Any]]) -> list[tuple[int, str, Any]]:
    """Each change of an offset.

    Our worker writes an offset again after a fence, so that the last record of every key is a committed one, and adds a
    mark that identifies the file.
    """
    actual_moves: list[tuple[int, str, Any]] = []
    for partition, key, value in rows:
        data = value and {k: v for k, v in json.loads(value).items() if k != "mark"}
        if not actual_moves or actual_moves[-1] != (partition, key, data):
            actual_moves.append((partition, key, data))
    return actual_moves


def last_of_each(rows: list[list[Any]]) -> dict[tuple[int, str], Any]:
    """Partition and key to the newest record; a status without the parts that differ from run to run."""
    answer: dict[tuple[int, str], Any] = {}
    for partition, key, value in rows:
        data = value and json.loads(value)
        if data and "topic" in data:
            data["topic"]["discoverTimestamp"] = data["topic"]["task"] = 0
        elif data:
            data |= {"worker_id": "", "generation": 0, "version": ""}
        answer[partition, key] = data and json.dumps(data)
    return answer


async def test_what_it_writes_is_what_connect_writes(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)  # a sink appends to the output of an earlier run
    FOLDER.mkdir()
    await prepare(bootstrap, FOLDER)
    worker = WorkerProcess(tmp_path, bootstrap, GROUP, spark.address, PROPERTIES)
    async with workers(worker):
        await play(worker.ask, FOLDER)
        assert await worker.end() == 0
    ours = {topic: await written(bootstrap, topic) for topic in (CONFIGS, OFFSETS, STATUS)}
    (tmp_path / "written.json").write_text(json.dumps(ours, indent=1, ensure_ascii=False))
    assert as_connect(shown(ours[CONFIGS])) == shown(RECORDED[CONFIGS])
    assert moves(ours[OFFSETS]) == moves(RECORDED[OFFSETS])
    assert last_of_each(ours[STATUS]) == last_of_each(RECORDED[STATUS])


async def test_a_restart_is_shown_and_a_level_is_written_as_the_client_spells_it(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path, name: str
) -> None:
    """As Kafka Connect 4.3 does; the level is shown by its own name."""
    worker = WorkerProcess(tmp_path, bootstrap, name, link[1], {"status.storage.partitions": "1"})
    source = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
    async with workers(worker):
        await worker.ask("PUT", "/connectors/c/config", source)
        await worker.reaches("c", "RUNNING", "RUNNING", seconds=300)

        async def records(kind: str) -> list[Row]:
            return await read_topic({"bootstrap.servers": bootstrap}, f"{name}-{kind}", client_id="test", seconds=300)

        async def states() -> list[str]:
            rows = await records("status")
            return [json.loads(row.value)["state"] for row in rows if row.key == b"status-connector-c" and row.value]

        for path in ("/connectors/c/restart", "/connectors/c/restart?includeTasks=true"):
            before = await states()
            assert (await worker.ask("POST", path)).status_code in (202, 204)

            async def shown_so(before: list[str] = before) -> bool:
                return await states() == [*before, "RESTARTING", "RUNNING"]

            await eventually(shown_so, what="it is restarted")
        await worker.reaches("c", "RUNNING", "RUNNING", seconds=300)

        level = {"level": "Warn"}
        assert (await worker.ask("PUT", "/admin/loggers/org.acme?scope=cluster", level)).status_code == 204
        values = [row.value for row in await records("configs") if row.key == b"logger-cluster-org.acme"]
        assert values == [b'{"level":"Warn"}']
        assert (await worker.ask("GET", "/admin/loggers/org.acme")).json()["level"] == "WARN"
        assert await worker.end() == 0
