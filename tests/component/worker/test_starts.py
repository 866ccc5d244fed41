"""A worker with nothing but a broker: its start, its Spark service, its end."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from keelman.runtime.processes.ports import free_ports
from support.connectors.numbers_wheel import CLASS, numbers_wheel
from support.eventually import eventually
from support.kafka.three_brokers import write
from support.kafka.topics import create_topic
from support.spark.cluster import Cluster
from support.worker.starts import STRINGS, Started, folder_of, gone, lines, properties

pytestmark = pytest.mark.component
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


async def test_a_worker_needs_nothing_but_a_broker(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    create_topic(bootstrap, "alone-lines", 1)
    source, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    numbers_wheel(tmp_path / "plugins")
    (tmp_path / "count").write_text("10")
    async with folder_of(tmp_path / "home") as worker:
        topics = {f"{kind}.storage.topic": f"starts-{kind}" for kind in ("config", "offset", "status")}
        fields = {"bootstrap.servers": bootstrap, "group.id": "starts", **STRINGS, **topics, "no.such.key": "1"}
        fields |= {"listeners": f"http://127.0.0.1:{worker.port}", "plugin.path": str(tmp_path / "plugins")}
        file = properties(tmp_path / "w.properties", fields)
        await worker.start("run", file)
        output = worker.output
        for line in (f"REST       http://127.0.0.1:{worker.port}/", "group      starts", f"Kafka      {bootstrap}"):
            assert line in output
        assert "worker_properties_unknown keys=no.such.key" in output
        await worker.ask(
            "PUT", "/connectors/in/config", {"connector.class": SOURCE, "file": str(source), "topic": "alone-lines"}
        )
        sink = {"connector.class": "FileStreamSink", "file": str(copy), "topics": "alone-lines"}
        response = await worker.ask("PUT", "/connectors/out/config", {**sink, "fiel": "x"})
        assert response.headers["keelman-notes"] == '["fiel: unknown, did you mean file?"]'
        assert "keelman-notes" not in (await worker.ask("GET", "/connectors/out")).headers
        logged = "connector_keys_unknown connector=out keys='fiel: unknown, did you mean file?'"
        await eventually(lambda: logged in " ".join(worker.output.split()))
        await eventually(lambda: lines(copy) == ["one", "two"])

        # Its Spark service dies: the worker starts another.
        first = worker.spark()
        first.kill()
        await eventually(lambda: "spark_ended" in worker.output)
        with source.open("a") as more:
            more.write("three\n")
        await eventually(lambda: lines(copy) == ["one", "two", "three"])
        await eventually(lambda: worker.spark().pid != first.pid)

        # Ctrl-C drains, and ends the Spark service too.
        family = worker.family()
        assert await worker.end(signal.SIGINT) == 0
        await eventually(lambda: gone(family), what="its child processes have ended")

        # A second worker starts in its place. kill -9 leaves no process behind either, not even of third-party code.
        await worker.start("run", file)
        left = tmp_path / "left"
        numbers = {"connector.class": CLASS, "folder": str(tmp_path), "topic": "alone-lines", "leaves": str(left)}
        await worker.ask("PUT", "/connectors/numbers/config", numbers)
        await eventually(lambda: lines(left), what="its slot has started a process")
        family = [*worker.family(), psutil.Process(int(lines(left)[0]))]
        await worker.end(signal.SIGKILL)
        await eventually(lambda: gone(family))


@pytest.mark.slow
async def test_a_worker_whose_master_is_nobodys_address_says_so_and_answers(bootstrap: str, tmp_path: Path) -> None:
    async with folder_of(tmp_path / "home") as worker:
        worker.more["KEELMAN_SPARK_MASTER"] = "spark://127.0.0.1:1"
        topics = {f"{kind}.storage.topic": f"no-master-{kind}" for kind in ("config", "offset", "status")}
        fields = {"bootstrap.servers": bootstrap, "group.id": "no-master", **STRINGS, **topics}
        fields |= {"listeners": f"http://127.0.0.1:{worker.port}"}
        await worker.spawn("run", properties(tmp_path / "w.properties", fields))
        source = {"connector.class": SOURCE, "file": str(tmp_path / "in.txt"), "topic": "no-master-lines"}
        await eventually(lambda: _made(worker, source), what="it answers requests")

        async def told() -> bool:
            health = await worker.ask("GET", "/health")
            assert health.status_code == 503
            return "ended: no Spark on spark://127.0.0.1:1" in health.json()["message"]

        await eventually(told, what="its health has the reason")
        (task,) = (await worker.ask("GET", "/connectors/in/status")).json()["tasks"]
        assert task["state"] == "UNASSIGNED"
        assert task["trace"].startswith(f"No worker of the group can run it now: 127.0.0.1:{worker.port}: no Spark")
        assert await worker.end(signal.SIGINT) == 0


@pytest.mark.slow
async def test_a_worker_whose_cluster_has_no_executor_says_so_until_there_is_one(
    bootstrap: str, tmp_path: Path
) -> None:
    """A standalone master runs; its workers come and go."""
    create_topic(bootstrap, "no-executor-lines")
    cluster = Cluster(tmp_path, free_ports(1)[0])
    try:
        await cluster.start(workers=0, cores=0)
        async with folder_of(tmp_path / "home") as worker:
            worker.more |= {"KEELMAN_SPARK_MASTER": cluster.master}
            worker.more["KEELMAN_SPARK_SPARK_PROPERTIES"] = str(cluster.properties())
            topics = {f"{kind}.storage.topic": f"no-executor-{kind}" for kind in ("config", "offset", "status")}
            fields = {"bootstrap.servers": bootstrap, "group.id": "no-executor", **STRINGS, **topics}
            fields |= {"listeners": f"http://127.0.0.1:{worker.port}"}
            await worker.start("run", properties(tmp_path / "w.properties", fields))
            config = {"connector.class": SINK, "file": str(tmp_path / "out.txt"), "topics": "no-executor-lines"}
            await worker.ask("PUT", "/connectors/out/config", config)

            async def unable() -> bool:
                health = await worker.ask("GET", "/health")
                return health.status_code == 503 and "gives it no executor" in health.json()["message"]

            async def unassigned() -> bool:
                tasks = (await worker.ask("GET", "/connectors/out/status")).json()["tasks"]
                return bool(tasks) and tasks[0]["state"] == "UNASSIGNED" and "no executor" in tasks[0]["trace"]

            await eventually(unable, what="its health has the reason")
            await eventually(unassigned, what="its task has the reason")
            write(bootstrap, "no-executor-lines", [b"one", b"two"])
            cluster.work("worker-0", cores=4)
            await eventually(lambda: lines(tmp_path / "out.txt") == ["one", "two"], what="it copies")
            assert (await worker.ask("GET", "/health")).status_code == 200
            cluster.end("worker-0")
            await eventually(unable, what="its health has the reason again")
            assert await worker.end(signal.SIGINT) == 0
    finally:
        cluster.stop()


async def _made(worker: Started, config: dict[str, str]) -> bool:
    return (await worker.ask("PUT", "/connectors/in/config", config)).status_code == 201
