"""Workers as a user starts them: with nothing but a broker, alone, and by the flags of Connect's first agents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from copy_harness import create_topic
from spark_kit import SparkService
from worker_kit import LinkSide

from keelman.connect.java_map import load_map
from keelman.runtime.ports import free_ports
from keelman.runtime.tether import tethered
from keelman.testing.eventually import eventually

pytestmark = pytest.mark.component

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

from standalone_steps import SOURCE, STEPS, Step, filled  # noqa: E402

STRINGS = {f"{role}.converter": "org.apache.kafka.connect.storage.StringConverter" for role in ("key", "value")}


class EndedError(Exception):
    """A worker ended that should have run; with its last words."""


@dataclass
class Started:
    """`keelman worker ...` in a folder of its own, which is its home too."""

    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    child: asyncio.subprocess.Process | None = None

    @property
    def output(self) -> str:
        """All that it wrote."""
        return (self.folder / "output.log").read_text(errors="replace")

    async def start(self, *words: str) -> Started:
        """Starts it and waits until it is healthy."""
        command = tethered([sys.executable, "-m", "keelman.cli", "worker", *words])
        plain = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_")}
        cache = {"KEELMAN_CACHE": os.environ["KEELMAN_CACHE"]} if "KEELMAN_CACHE" in os.environ else {}
        with (self.folder / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *command, stdout=output, stderr=output, env={**plain, **cache, "KEELMAN_HOME": str(self.folder)}
            )
        await eventually(self._healthy, seconds=90, what="the worker is healthy")
        return self

    async def _healthy(self) -> bool:
        assert self.child is not None
        if self.child.returncode is not None:
            raise EndedError(self.output[-2000:])
        try:
            return (await self.ask("GET", "/health")).status_code == 200
        except httpx.HTTPError:
            return False

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One REST request."""
        async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}{path}", json=body)

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Signals it and waits; its exit code."""
        assert self.child is not None
        if self.child.returncode is None:
            self.child.send_signal(number)
        async with asyncio.timeout(60):
            return await self.child.wait()

    def spark(self) -> psutil.Process:
        """The Spark service beside it."""
        assert self.child is not None
        found = [p for p in psutil.Process(self.child.pid).children() if title(p).startswith("keelman spark")]
        return found[0]

    def family(self) -> list[psutil.Process]:
        """All processes below it."""
        assert self.child is not None
        return psutil.Process(self.child.pid).children(recursive=True)


@contextlib.asynccontextmanager
async def folder_of(path: Path) -> AsyncIterator[Started]:
    """One that does not outlive its test."""
    path.mkdir(parents=True, exist_ok=True)
    started = Started(path)
    try:
        yield started
    finally:
        if started.child is not None and started.child.returncode is None:
            await started.end(signal.SIGKILL)


def properties(file: Path, values: dict[str, str]) -> str:
    """Writes a .properties file."""
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(file)


def lines(file: Path) -> list[str]:
    """The lines of a file that may not be there yet."""
    return file.read_text().splitlines() if file.exists() else []


def title(process: psutil.Process) -> str:
    """How a process calls itself; empty for one that ends."""
    with contextlib.suppress(psutil.Error, IndexError):
        return process.cmdline()[0]
    return ""


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them have ended."""
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


async def test_a_worker_needs_nothing_but_a_broker(bootstrap: str, tmp_path: Path) -> None:
    create_topic(bootstrap, "alone-lines", 1)
    source, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    async with folder_of(tmp_path / "home") as worker:
        topics = {f"{kind}.storage.topic": f"starts-{kind}" for kind in ("config", "offset", "status")}
        given = {"bootstrap.servers": bootstrap, "group.id": "starts", **STRINGS, **topics, "no.such.key": "1"}
        file = properties(tmp_path / "w.properties", {**given, "listeners": f"http://127.0.0.1:{worker.port}"})
        await worker.start("run", file)
        told = worker.output
        for line in (f"REST       http://127.0.0.1:{worker.port}/", "group      starts", f"Kafka      {bootstrap}"):
            assert line in told
        assert "worker_properties_unknown keys=no.such.key" in told
        await worker.ask(
            "PUT", "/connectors/in/config", {"connector.class": SOURCE, "file": str(source), "topic": "alone-lines"}
        )
        sink = {"connector.class": "FileStreamSink", "file": str(copy), "topics": "alone-lines"}
        await worker.ask("PUT", "/connectors/out/config", sink)
        await eventually(lambda: lines(copy) == ["one", "two"], seconds=90)

        # Its Spark service dies: another takes its place.
        first = worker.spark()
        first.kill()
        await eventually(lambda: "spark_ended" in worker.output, seconds=30)
        with source.open("a") as more:
            more.write("three\n")
        await eventually(lambda: lines(copy) == ["one", "two", "three"], seconds=90)
        await eventually(lambda: worker.spark().pid != first.pid, seconds=30)

        # Ctrl-C drains, and takes the Spark service along.
        family = worker.family()
        assert await worker.end(signal.SIGINT) == 0
        assert gone(family)

        # kill -9 leaves nothing behind either, and a second worker comes up in its place.
        await worker.start("run", file)
        await eventually(lambda: len(worker.family()) > 1, seconds=60, what="the Spark service has its JVM")
        family = worker.family()
        await worker.end(signal.SIGKILL)
        await eventually(lambda: gone(family), seconds=20)


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
        given = {"bootstrap.servers": bootstrap, **STRINGS, "offset.flush.interval.ms": "100"}
        given |= {"listeners": f"http://127.0.0.1:{worker.port}", "offset.storage.file.filename": str(offsets)}
        file = properties(tmp_path / "w.properties", given)
        words = ("standalone", file, src, "--spark-address", spark.address)
        await worker.start(*words)
        await eventually(lambda: position(offsets) == 13, seconds=60, what="the file has the offset")
        await answers_as_recorded(worker, source)
        await worker.ask("DELETE", "/connectors/src")
        await worker.end(signal.SIGKILL)

        # What it has not written down when it is killed is copied again; nothing is lost.
        offsets.unlink()
        await worker.start(*words, str(sink))
        await eventually(lambda: set(lines(copy)) == {"first", "second"}, seconds=60)
        await eventually(lambda: position(offsets) == 13, seconds=60)
        await worker.end(signal.SIGKILL)
        with source.open("a") as more:
            more.write("third\n")
        await worker.start(*words, str(sink))
        await eventually(lambda: position(offsets) == 19, seconds=60)
        assert "third" in lines(copy)

        # A worker that ends writes down how far it has come.
        with source.open("a") as more:
            more.write("fourth\n")
        await eventually(lambda: lines(copy)[-1] == "fourth", seconds=60)
        assert await worker.end() == 0
        assert position(offsets) == 26

        # A connector that cannot be ends the worker, which says why.
        src = properties(tmp_path / "bad.properties", {**plain_source, "connector.class": "com.acme.No"})
        with contextlib.suppress(EndedError):  # it may be healthy for a moment
            await worker.start("standalone", file, src, "--spark-address", spark.address)
        assert worker.child is not None
        async with asyncio.timeout(60):
            assert await worker.child.wait() == 1
        assert "bad.properties: connector src cannot be created: Failed to find any class" in worker.output


DOCUMENTED = {
    "name": "couchbase-kafka-connector",
    "config": {
        "connector.class": "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector",
        "topic": "couchbase-kafka-connector",
        "schema.name": "couchbaseschema",
        "couchbase.nodes": "localhost",
        "couchbase.bucket": "PMCONCURRENCY",
        "dcp.maximum.drainrate": "1000",
        "couchbase.dcpConnectionBufferSize": "0",
        "tasks.max": "1",
    },
}
HOST = "[host where the connector is running]"
NO_COUCHBASE = (
    "Failed to find any class that implements Connector and which name matches "
    "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector, available connectors are: "
)


async def as_printed(port: int, line: str, body: Any = None) -> tuple[int, Any]:
    """Sends a request with the headers that the distributed agent's documentation shows; status and body."""
    raw = b"" if body is None else json.dumps(body, indent=4).encode()
    head = [f"{line} HTTP/1.1", f"Host: {HOST}"]
    if raw:
        head += ["Content-Type: application/json", "Accept: application/json", f"Content-Length: {len(raw)}"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*head, "Connection: close", "", ""]).encode() + raw)
    answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(answer[0].split()[1]), json.loads(answer[2]) if answer[2] else None


async def test_the_flags_of_the_first_agents(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    create_topic(bootstrap, "flags", 1)
    async with folder_of(tmp_path / "home") as worker:
        flags = ["-brokers", bootstrap, "-group", "flags", "-cluster", "first", "-registry", "http://127.0.0.1:8081"]
        flags += ["-offsets", "flags-offsets", "-configs=flags-configs", f"--port={worker.port}"]
        await worker.start(*flags, "--spark-address", link[1])
        for line in (
            "cluster    first",
            "topics     flags-configs, flags-offsets, flags-status",
            "http://127.0.0.1:8081",
        ):
            assert line in worker.output
        # The documented requests, in their order; the class is not there.
        one = "couchbase-kafka-connector"
        for line, body in (("POST /connectors", DOCUMENTED), (f"POST /connectors/{one}/config", DOCUMENTED["config"])):
            status, told = await as_printed(worker.port, line, body)
            assert (status, told["error_code"]) == (400, 400), line
            assert told["message"].startswith(NO_COUCHBASE), line
        assert await as_printed(worker.port, f"DELETE /connectors/{one}") == (
            404,
            {"error_code": 404, "message": f"Connector {one} not found"},
        )
        # With a class that is.
        config = {"connector.class": SOURCE, "file": "/nowhere/in", "topic": "flags"}
        status, told = await as_printed(worker.port, "POST /connectors/known/config", config)
        assert (status, told["config"], told["name"]) == (201, {**config, "name": "known"}, "known")
        status, told = await as_printed(worker.port, "POST /connectors/known/config", {**config, "batch.size": "7"})
        assert (status, told["config"]["batch.size"]) == (200, "7")
        assert await as_printed(worker.port, "DELETE /connectors/known") == (204, None)
        assert await worker.end() == 0


def position(offsets: Path) -> int | None:
    """What a file of offsets says of its only source."""
    entries = load_map(offsets.read_bytes()) if offsets.exists() else {}
    return next((json.loads(value)["position"] for value in entries.values() if value is not None), None)


# Where Connect falls over its own feet, ours says what is wrong.
BETTER = {
    "/connectors/none/restart": (404, "Unknown connector: none"),
    "/connectors/none/stop": (404, "Unknown connector none"),
}


async def answers_as_recorded(worker: Started, source: Path) -> None:
    """Every step of the record is answered as Connect's standalone worker answered it."""
    recorded = iter(json.loads((RECORDED / "standalone.json").read_text()))
    for method, path, body in STEPS:
        if path.startswith("until "):
            await eventually(partial(has_state, worker, path.removeprefix("until "), body))
            continue
        answer = next(recorded)
        wanted = answer["status"], plain(answer["body"])
        if path in BETTER:
            status, message = BETTER[path]
            wanted = status, {"error_code": status, "message": message}
        step = partial(agrees, worker, source, (method, path, body), wanted)
        # What tasks do shows a moment later, as in Connect.
        await (eventually(step, seconds=20, what=f"{method} {path}") if method == "GET" else step())


async def has_state(worker: Started, path: str, state: str) -> bool:
    """Whether a status says so of its connector."""
    return bool((await worker.ask("GET", path)).json()["connector"]["state"] == state)


async def agrees(worker: Started, source: Path, step: Step, wanted: tuple[int, Any]) -> bool:
    """Raises AssertionError unless the answer is as it should be."""
    method, path, body = step
    answer = await worker.ask(method, path, filled(body, {"{input}": str(source)}))
    words = {str(source): "{input}", f"127.0.0.1:{worker.port}": "{worker}"}
    told = plain(filled(answer.json() if answer.content else None, words))
    assert (answer.status_code, told) == wanted, step
    return True


def plain(value: Any) -> Any:
    """Without what our offsets say beside Connect's."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "mark"}
    return [plain(one) for one in value] if isinstance(value, list) else value
