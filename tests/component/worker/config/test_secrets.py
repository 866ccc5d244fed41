"""Secrets of connectors: resolved on the worker, never shown, and followed when they change."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from keelman.kafka.groups.changes import GroupChanges
from keelman.kafka.tables.reading import read_topic
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.worker.processes import FAILED, RUNNING, LinkSide, Run, WorkerProcess, workers

PACKAGE = "org.apache.kafka.common.config.provider"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
OLD, NEW, OTHER = "old-pa55-of-orders", "new-pa55-of-orders", "pa55-of-others"
LITERAL, WORKERS = "literal-pa55", "pa55-of-the-worker"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The file that holds the secrets."""
    file = tmp_path / "secrets.properties"
    write(file)
    return file


def write(file: Path, orders: str = OLD, comment: str = "") -> None:
    """Writes the secrets as careful users do: to another file, which is moved into place."""
    new = file.with_suffix(".new")
    new.write_text(f"{comment}\norders={orders}\nothers={OTHER}\nworker={WORKERS}\n")
    new.replace(file)


@pytest.fixture
def worker(tmp_path: Path, bootstrap: str, link: tuple[LinkSide, str], name: str, secrets: Path) -> WorkerProcess:
    properties = {
        "config.providers": "file",
        "keelman.restart.backoff.ms": "60000",
        "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "metrics.password": f"${{file:{secrets}:worker}}",
    }
    return WorkerProcess(tmp_path / "worker", bootstrap, name, link[1], properties)


def source(name: str, secrets: Path, key: str, **more: str) -> dict[str, Any]:
    config = {"connector.class": SOURCE, "topic": f"t-{name}", "file": f"/in/{name}", "password": LITERAL, **more}
    return {"name": name, "config": {**config, "database.password": f"${{file:{secrets}:{key}}}"}}


async def running(side: LinkSide, connector: str, password: str) -> Run:
    """The connector's run, once it runs with this password."""

    def there() -> Run | None:
        return next((r for r in side.of(connector) if r.ticket.task_config["database.password"] == password), None)

    actual_running = await eventually(there, what=f"{connector} runs with its password")
    assert actual_running is not None
    return actual_running


async def shown(worker: WorkerProcess, *names: str) -> str:
    """Everything that the worker shows."""
    paths = ["/connectors?expand=status&expand=info", "/health", "/"]
    for name in names:
        paths += [
            f"/connectors/{name}{rest}" for rest in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics")
        ]
    texts = [(await worker.ask("GET", path)).text for path in paths]
    for topic in ("configs", "offsets", "status"):
        client = {"bootstrap.servers": worker.bootstrap}
        rows = await read_topic(client, f"{worker.group}-{topic}", client_id="test", seconds=300)
        texts += [f"{row.key!r} {row.value!r}" for row in rows]
    return "\n".join([*texts, worker.output])


def processes(worker: WorkerProcess) -> Iterator[str]:
    """Command lines and environments of the worker and of all its descendants."""
    assert worker.child is not None
    top = psutil.Process(worker.child.pid)
    for process in (top, *top.children(recursive=True)):
        for what in ("cmdline", "environ"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                yield Path(f"/proc/{process.pid}/{what}").read_bytes().decode(errors="replace")


async def offsets_by_references(worker: WorkerProcess, folder: Path) -> None:
    """If brokers and group are references, offsets are read and altered where the tasks store them."""
    (folder / "brokers").write_text(f"servers={worker.bootstrap}\ngroup=referred\n")
    servers, group = (f"${{file:{folder}/brokers:{key}}}" for key in ("servers", "group"))
    topic = f"{worker.group}-read"
    create_topic(worker.bootstrap, topic)
    writes = {"connector.class": SOURCE, "topic": "t", "file": "/in/o", "producer.override.bootstrap.servers": servers}
    reads = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(folder / "out"),
        "consumer.override.bootstrap.servers": servers,
        "consumer.override.group.id": group,
    }
    place = {"kafka_topic": topic, "kafka_partition": 0}
    cases: tuple[tuple[str, Any, Any, Any], ...] = (
        ("writes", writes, {"filename": "/in/o"}, {"position": 3}),
        ("reads", reads, place, {"kafka_offset": 2}),
    )
    for name, config, partition, offset in cases:
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        assert (await worker.ask("POST", "/connectors", body)).status_code == 201
        await worker.reaches(name, "STOPPED")
        expected = {"offsets": [{"partition": partition, "offset": offset}]}
        altered = await worker.ask("PATCH", f"/connectors/{name}/offsets", expected)
        assert altered.status_code == 200, altered.text
        assert (await worker.ask("GET", f"/connectors/{name}/offsets")).json() == expected
    changes = GroupChanges({"bootstrap.servers": worker.bootstrap}, "referred", client_id="test")
    assert await changes.offsets() == {(topic, 0): 2}
    for name in ("writes", "reads"):
        reset = await worker.ask("DELETE", f"/connectors/{name}/offsets")
        assert reset.status_code == 200, reset.text
        assert (await worker.ask("GET", f"/connectors/{name}/offsets")).json() == {"offsets": []}
    assert await changes.offsets() == {}


async def test_a_secret_rotates_and_only_its_tasks_restart(
    worker: WorkerProcess, link: tuple[LinkSide, str], secrets: Path
) -> None:
    side, _ = link
    async with workers(worker):
        for body in (
            source("orders", secrets, "orders"),
            source("others", secrets, "others"),
            source("still", secrets, "orders", **{"config.action.reload": "none"}),
        ):
            answer = await worker.ask("POST", "/connectors", body)
            assert answer.status_code == 201, answer.text
            assert answer.json()["config"]["database.password"].startswith("${file:")
        before = await running(side, "orders", OLD)
        others, still = await running(side, "others", OTHER), await running(side, "still", OLD)
        assert before.ticket.hidden[OLD] == f"${{file:{secrets}:orders}}"
        assert before.ticket.hidden[LITERAL] == "[hidden]"
        assert before.ticket.worker_config.get("metrics.password") in (None, WORKERS)

        write(secrets, comment="# written again, nothing changed")
        os.utime(secrets)
        write(secrets, NEW)
        after = await running(side, "orders", NEW)
        assert before.cut == "", "drained, not cut"
        assert [r.ticket.run_uid for r in side.runs.values() if r.ticket.connector == "orders"] == [
            before.ticket.run_uid,
            after.ticket.run_uid,
        ]
        assert (others.state, still.state) == (RUNNING, RUNNING)
        assert "secret_changed" in worker.output
        assert f"${{file:{secrets}:orders}}" in worker.output

        # Whatever error a task reports at its end, its trace is without secrets.
        side.fail(after, retriable=False, trace=f"x.Y: cannot log in with {NEW} nor {OLD} nor {LITERAL}\n", reason="X")
        await worker.reaches("orders", "RUNNING", "FAILED")
        trace = (await worker.ask("GET", "/connectors/orders/tasks/0/status")).json()["trace"]
        assert f"cannot log in with ${{file:{secrets}:orders}} nor ${{file:{secrets}:orders}} nor [hidden]" in trace

        assert after.state == FAILED
        # A literal in the configuration is stored and read back by the user's choice: it is in no log and no trace.
        everything = (await shown(worker, "orders", "others", "still")).replace(f'"password":"{LITERAL}"', "")
        for secret in (OLD, NEW, OTHER, WORKERS, LITERAL):
            assert secret not in everything, everything[max(0, everything.index(secret) - 300) :][:600]
            assert not any(secret in text for text in processes(worker))


async def test_what_cannot_be_read_is_said_without_values(
    worker: WorkerProcess, link: tuple[LinkSide, str], secrets: Path, tmp_path: Path
) -> None:
    side, _ = link
    worker.extra["keelman.secrets.policy"] = "references"
    async with workers(worker):
        path = "/connector-plugins/FileStreamSource/config/validate"
        config = source("c", secrets, "orders")["config"] | {"name": "c"}
        bad = config | {"topic": f"${{file:{secrets}:others}}", "batch.size": f"${{file:{secrets}:orders}}"}
        answer = (await worker.ask("PUT", path, bad)).json()
        values = {config["value"]["name"]: config["value"] for config in answer["configs"]}
        assert values["topic"]["value"] == f"${{file:{secrets}:others}}"
        size = f"Invalid value ${{file:{secrets}:orders}} for configuration batch.size: Not a number of type INT"
        assert values["batch.size"]["errors"] == [size]
        (refused,) = values["password"]["errors"]
        assert "takes secrets as references only (keelman.secrets.policy=references)" in refused
        assert answer["error_count"] == 2

        refusal = await worker.ask("POST", "/connectors", source("c", secrets, "orders"))
        assert refusal.status_code == 400
        assert (
            "Invalid value [hidden] for configuration password: this worker takes secrets" in refusal.json()["message"]
        )

        lost = config | {"password": f"${{file:{tmp_path}/absent:k}}"}
        answer_lost = await worker.ask("PUT", "/connectors/c/config", lost)
        assert (answer_lost.status_code, answer_lost.json()["message"]) == (
            500,
            f"Could not read properties from file {tmp_path}/absent",
        )
        late = tmp_path / "absent"
        late.write_text("k=late-pa55\n")
        response = await worker.ask("PUT", "/connectors/c/config", lost)
        assert response.status_code == 201, response.text
        await running(side, "c", OLD)
        await offsets_by_references(worker, tmp_path)
        everything = await shown(worker, "c")
        for secret in (OLD, OTHER, LITERAL, "late-pa55"):
            assert secret not in everything + answer_lost.text + refusal.text + str(answer)
