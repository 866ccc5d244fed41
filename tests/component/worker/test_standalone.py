"""A standalone worker: its files, its offsets, and its answers, compared with a record of Connect's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.java.maps import load_map
from recorded.worker.standalone_steps import SOURCE, STEPS, Step, filled
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.places import RECORDED_FOLDER
from support.spark.service import SparkService
from support.worker.starts import STRINGS, EndedError, Started, folder_of, lines, properties

pytestmark = pytest.mark.component


async def test_a_standalone_worker(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    create_topic(bootstrap, "alone", 1)
    source, copy, offsets = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "offsets"
    source.write_text("first\nsecond\n")
    plain_source = {"name": "src", "connector.class": SOURCE, "file": str(source), "topic": "alone"}
    src = properties(tmp_path / "src.properties", plain_source)
    sink = tmp_path / "sink.json"
    config = {"connector.class": "FileStreamSink", "file": str(copy), "topics": "alone"}
    sink.write_text(json.dumps({"name": "sink", "config": config}))
    async with folder_of(tmp_path / "home") as worker:
        fields = {"bootstrap.servers": bootstrap, **STRINGS, "offset.flush.interval.ms": "100"}
        fields |= {"listeners": f"http://127.0.0.1:{worker.port}", "offset.storage.file.filename": str(offsets)}
        file = properties(tmp_path / "w.properties", fields)
        words = ("standalone", file, src, "--spark-address", spark.address)
        await worker.start(*words)
        await eventually(lambda: position(offsets) == 13, what="the file has the offset")
        await answers_as_recorded(worker, source)
        await worker.ask("DELETE", "/connectors/src")
        await worker.end(signal.SIGKILL)

        # Records whose offsets were not written before the kill are copied again; nothing is lost.
        offsets.unlink()
        await worker.start(*words, str(sink))
        await eventually(lambda: set(lines(copy)) == {"first", "second"})
        await eventually(lambda: position(offsets) == 13)
        await worker.end(signal.SIGKILL)
        with source.open("a") as more:
            more.write("third\n")
        await worker.start(*words, str(sink))
        await eventually(lambda: position(offsets) == 19)
        await eventually(lambda: "third" in lines(copy))

        # A worker that ends in order writes its offsets.
        with source.open("a") as more:
            more.write("fourth\n")
        await eventually(lambda: lines(copy)[-1] == "fourth")
        assert await worker.end() == 0
        assert position(offsets) == 26

        # An invalid connector ends the worker, which reports the reason.
        src = properties(tmp_path / "bad.properties", {**plain_source, "connector.class": "com.acme.No"})
        with contextlib.suppress(EndedError):  # it may be healthy for a moment
            await worker.start("standalone", file, src, "--spark-address", spark.address)
        assert worker.child is not None
        async with asyncio.timeout(300):
            assert await worker.child.wait() == 1
        assert "bad.properties: connector src cannot be created: Failed to find any class" in worker.output


def position(offsets: Path) -> int | None:
    """The position of the only source in a file of offsets."""
    entries = load_map(offsets.read_bytes()) if offsets.exists() else {}
    return next((json.loads(value)["position"] for value in entries.values() if value is not None), None)


# Where Connect fails with an internal error, our worker names the problem.
BETTER = {
    "/connectors/none/restart": (404, "Unknown connector: none"),
    "/connectors/none/stop": (404, "Unknown connector none"),
}


async def answers_as_recorded(worker: Started, source: Path) -> None:
    """Every step of the record gets the same answer as from Connect's standalone worker."""
    recorded = iter(json.loads((RECORDED_FOLDER / "worker" / "standalone.json").read_text()))
    for method, path, body in STEPS:
        if path.startswith("until "):
            await eventually(partial(has_state, worker, path.removeprefix("until "), body))
            continue
        answer = next(recorded)
        expected = answer["status"], plain(answer["body"])
        if path in BETTER:
            status, message = BETTER[path]
            expected = status, {"error_code": status, "message": message}
        step = partial(agrees, worker, source, (method, path, body), expected)
        # Changes of tasks show a moment later, as in Connect.
        await (eventually(step, what=f"{method} {path}") if method == "GET" else step())


async def has_state(worker: Started, path: str, state: str) -> bool:
    """Whether a status shows this state of its connector."""
    return bool((await worker.ask("GET", path)).json()["connector"]["state"] == state)


async def agrees(worker: Started, source: Path, step: Step, expected: tuple[int, Any]) -> bool:
    """Raises AssertionError unless the answer is as expected."""
    method, path, body = step
    answer = await worker.ask(method, path, filled(body, {"{input}": str(source)}))
    words = {str(source): "{input}", f"127.0.0.1:{worker.port}": "{worker}"}
    document = plain(filled(answer.json() if answer.content else None, words))
    assert (answer.status_code, document) == expected, step
    return True


def plain(value: Any) -> Any:
    """The value without the fields of our offsets that Connect's do not have."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "mark"}
    return [plain(member) for member in value] if isinstance(value, list) else value
