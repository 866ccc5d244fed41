"""Third-party connectors in a worker with the real Spark service: from a wheel into a slot of their own, and faults."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from keelman.runtime.processes.process_trees import start_of
from support.connectors.numbers_wheel import CLASS, SINK_CLASS, numbers_wheel
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component
NUMBERS = 20_000
MOODY, MOODY_SINK = "com.acme.MoodyConnector", "com.acme.MoodySinkConnector"


async def copied(bootstrap: str) -> list[int]:
    """The committed records, in order."""
    return [int(message.value()) for message in await asyncio.to_thread(messages, bootstrap, "plugged-numbers")]


async def offset(worker: WorkerProcess) -> int:
    rows = (await worker.ask("GET", "/connectors/numbers/offsets")).json()["offsets"]
    return int(rows[0]["offset"]["next"]) if rows else 0


async def test_a_third_partys_source_copies_exactly_once(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    plugins, count, lines = tmp_path / "plugins", tmp_path / "count", tmp_path / "lines.txt"
    numbers_wheel(plugins)
    count.write_text(str(NUMBERS // 2))
    lines.write_text("one\n")
    config = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "plugged-numbers"}
    ours = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "plugged-lines"}
    ours["keelman.park.after.ms"] = "-1"
    for topic in ("plugged-numbers", "plugged-lines"):
        create_topic(bootstrap, topic)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "plugged", spark.address, {"plugin.path": str(plugins)})
    async with workers(worker), channel(spark.address) as opened:
        runs = CopyRunServiceStub(opened)

        async def slots() -> dict[str, str]:
            listed = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster="plugged"))
            return {run.connector: run.slot for run in listed.copy_runs}

        listed = (await worker.ask("GET", "/connector-plugins")).json()
        assert {"class": CLASS, "type": "source", "version": "7.1"} in listed
        path = "/connector-plugins/NumbersSource"
        keys = (await worker.ask("GET", f"{path}/config")).json()
        assert [(k["name"], k["required"], k["default_value"]) for k in keys[1:3]] == [
            ("topic", True, None),
            ("batch.size", False, "100"),
        ]
        bad = {**config, "name": "x", "batch.size": "0"}
        problem = "Invalid value 0 for configuration batch.size: Value must be at least 1"
        infos = (await worker.ask("PUT", f"{path}/config/validate", bad)).json()
        assert (infos["name"], infos["error_count"]) == (CLASS, 1)
        assert [c["value"]["errors"] for c in infos["configs"] if c["value"]["errors"]] == [[problem]]
        refused = await worker.ask("POST", "/connectors", {"name": "x", "config": bad})
        assert (refused.status_code, problem in refused.json()["message"]) == (400, True)

        assert (await worker.ask("POST", "/connectors", {"name": "ours", "config": ours})).status_code == 201
        response = await worker.ask("POST", "/connectors", {"name": "numbers", "config": config})
        assert (response.status_code, response.json()["type"]) == (201, "source")
        await worker.reaches("ours", "RUNNING", "RUNNING", seconds=300)
        await eventually(lambda: offset(worker), what="the first numbers are committed")
        pid, before = int((tmp_path / "pid").read_text()), await slots()
        assert before["numbers"] != before["ours"], "third-party code has a slot of its own"
        os.kill(pid, signal.SIGKILL)
        count.write_text(str(NUMBERS))
        await eventually(_is(worker, NUMBERS), what="all numbers are committed")
        assert int((tmp_path / "pid").read_text()) != pid
        assert await copied(bootstrap) == list(range(NUMBERS))
        assert (await slots())["ours"] == before["ours"], "what we ship was left alone"
        await worker.reaches("numbers", "RUNNING", "RUNNING", seconds=300)
        status = (await worker.ask("GET", "/connectors/numbers/status")).json()
        assert (status["type"], status["connector"]["version"]) == ("source", "7.1")
        assert await worker.end() == 0

        # The class is missing from plugin.path, and comes back.
        count.write_text(str(NUMBERS + 100))
        worker.extra["plugin.path"] = ""
        await worker.start()
        await worker.reaches("numbers", "FAILED", "FAILED", seconds=300)
        await worker.reaches("ours", "RUNNING", "RUNNING", seconds=300)
        trace = (await worker.ask("GET", "/connectors/numbers/status")).json()["connector"]["trace"]
        assert trace.startswith(
            "org.apache.kafka.connect.errors.ConnectException: Failed to find any class that implements Connector and "
            f"which name matches {CLASS}, available connectors are: "
        )
        assert await worker.end() == 0
        worker.extra["plugin.path"] = str(plugins)
        await worker.start()
        await eventually(_is(worker, NUMBERS + 100), what="it continues from its position")
        assert await copied(bootstrap) == list(range(NUMBERS + 100))
        await worker.reaches("numbers", "RUNNING", "RUNNING", seconds=300)
        assert await worker.end() == 0


@pytest.mark.slow
async def test_what_a_task_has_started_ends_with_its_slot(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    numbers_wheel(tmp_path / "plugins")
    (tmp_path / "count").write_text("10")
    create_topic(bootstrap, "leaving-numbers")
    left, slot = tmp_path / "left", tmp_path / "pid"
    config = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "leaving-numbers", "leaves": str(left)}
    plugins = {"plugin.path": str(tmp_path / "plugins")}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "leaving", spark.address, plugins)
    async with workers(worker):
        assert (await worker.ask("POST", "/connectors", {"name": "leaves", "config": config})).status_code == 201
        await eventually(lambda: _pid(left) and _pid(slot), what="a slot has started a process")
        first, killed = _pid(left), _pid(slot)
        assert start_of(first) is not None
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: start_of(first) is None, what="its slot was killed")
        await eventually(lambda: _pid(left) != first and _pid(slot) != killed, what="another slot has it")
        second = _pid(left)
        assert start_of(second) is not None
        assert (await worker.ask("DELETE", "/connectors/leaves")).status_code == 204
        await eventually(lambda: start_of(second) is None, what="its slot has ended")
        assert await worker.end() == 0


def _pid(file: Path) -> int:
    return int(file.read_text() or 0) if file.exists() else 0


def _is(worker: WorkerProcess, end: int) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return await offset(worker) == end

    return there


async def fails(worker: WorkerProcess, name: str, text: str, *, task: bool = False) -> None:
    """Waits until a connector, or its task, is FAILED with this text in the first line of its trace."""

    async def there() -> bool:
        status = (await worker.ask("GET", f"/connectors/{name}/status")).json()
        shown = status["tasks"][0] if task else status["connector"]
        assert shown["state"] == "FAILED", status
        return bool(shown["trace"].startswith(f"org.apache.kafka.connect.errors.ConnectException: {text}"))

    await eventually(there, what=f"{name}: {text}")


async def test_a_plugin_that_hangs_or_dies_leaves_the_others_alone(
    bootstrap: str, spark: SparkService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    plugins = tmp_path / "plugins"
    numbers_wheel(plugins)
    numbers_wheel(plugins, "acme_moody", MOODY, MOODY_SINK)
    (plugins / "broken.whl").write_text("no wheel")
    (tmp_path / "count").write_text("100")
    config = {"connector.class": MOODY, "folder": str(tmp_path), "topic": "few"}
    create_topic(bootstrap, "few")
    sink = {"connector.class": SINK_CLASS, "folder": str(tmp_path), "topics": "few"}
    # A hanging call lasts until a request's 90 s are over: the other tasks get less time to show that they run.
    extra = {"plugin.path": str(plugins), "keelman.plugin.answer.timeout.ms": "600000"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "moods", spark.address, extra)
    async with workers(worker):
        assert worker.output.count("plugin_broken") == 1
        # The dying call first: a hanging call keeps its plugin busy until it is killed.
        path = "/connector-plugins/MoodyConnector/config/validate"
        died = await worker.ask("PUT", path, {**config, "name": "x", "checked": "die"})
        assert (died.status_code, died.json()["message"]) == (
            500,
            f"plugin acme-moody 7.1, {MOODY}, validate: its process died with exit code 3",
        )
        response = await worker.ask("POST", "/connectors", {"name": "dies", "config": {**config, "configured": "die"}})
        assert response.status_code == 201
        await fails(
            worker, "dies", f"plugin acme-moody 7.1, {MOODY}, task_configs: its process died with exit code 3\n"
        )
        await worker.ask("DELETE", "/connectors/dies")
        sinks = {**sink, "connector.class": MOODY_SINK, "promised": "die"}
        await worker.ask("POST", "/connectors", {"name": "sinks", "config": sinks})
        died_of = (
            f"plugin acme-moody 7.1, {MOODY_SINK}, supports_exactly_once: its process died with exit code 3\nNext "
        )
        await fails(worker, "sinks", died_of, task=True)
        begun = time.monotonic()
        response = await worker.ask(
            "POST", "/connectors", {"name": "hangs", "config": {**config, "configured": "hang"}}
        )
        assert response.status_code == 201
        checked = worker.ask("PUT", path, {**config, "name": "x", "checked": "hang"}, timeout=300)
        checks = asyncio.ensure_future(checked)
        try:
            other = {**config, "connector.class": CLASS}
            response = await worker.ask("POST", "/connectors", {"name": "other", "config": other})
            assert response.status_code == 201
            assert (await worker.ask("POST", "/connectors", {"name": "few-out", "config": sink})).status_code == 201
            await worker.reaches("other", "RUNNING", "RUNNING", seconds=300)
            hang = (await worker.states("hangs") == ["RUNNING"], not checks.done())
            assert hang == (True, True) or time.monotonic() - begun > 80
            listed = (await worker.ask("GET", "/connector-plugins")).json()
            assert {CLASS, MOODY, SINK_CLASS} <= {entry["class"] for entry in listed}
            await worker.reaches("few-out", "RUNNING", "RUNNING", seconds=300)
            await eventually(lambda: (tmp_path / "out").read_text().split() == [str(n) for n in range(100)])
            assert await worker.end() == 0
        finally:
            checks.cancel()
            await asyncio.gather(checks, return_exceptions=True)
