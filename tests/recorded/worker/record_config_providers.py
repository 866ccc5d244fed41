"""Records how a real Apache Kafka Connect worker uses config providers.

Run it by itself: `python -m recorded.worker.record_config_providers`. Writes config_providers.json beside it. Needs
Java and the Maven artifacts of support.servers.connect_worker.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from keelman.kafka.tables.reading import read_topic
from recorded.one_a_line import one_a_line
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

RECORD = Path(__file__).with_name("config_providers.json")
PROVIDER = "org.apache.kafka.common.config.provider"
SECRET = "pa55-of-the-record"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
VALIDATE_KEYS = (
    "topic",
    "file",
    "batch.size",
    "tasks.max",
    "ssl.key.password",
    "sasl.jaas.config",
    "ssl.keystore.password",
)


def worker_properties(folder: Path) -> dict[str, str]:
    """Worker properties in addition to the usual ones; `fill` must have written `folder`."""
    return {
        "config.providers": "file, dir,env,nowhere",
        "config.providers.file.class": f"{PROVIDER}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": f"{folder}/secrets",
        "config.providers.dir.class": f"{PROVIDER}.DirectoryConfigProvider",
        "config.providers.dir.param.allowed.paths": f"{folder}/secrets",
        "config.providers.env.class": f"{PROVIDER}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "RECORDED_.*",
        "access.control.allow.methods": "${file:" + str(folder) + "/secrets/p.properties:methods}",
    }


def fill(folder: Path) -> None:
    """Writes the files that providers read."""
    secrets = folder / "secrets"
    secrets.mkdir(parents=True)
    (secrets / "p.properties").write_text(
        f"topic=t-recorded\nsize=many\npassword={SECRET}\nnested=${{env:RECORDED_TOPIC}}\nmethods=GET\nempty=\n"
        "class=FileStreamSource\n"
    )
    (secrets / "token").write_text(f"{SECRET}\n")
    (folder / "outside.properties").write_text("topic=outside\n")
    os.environ["RECORDED_TOPIC"] = "t-of-env"
    os.environ["OTHER_TOPIC"] = "t-hidden"


def requests(folder: Path) -> list[tuple[str, str, str, Any]]:
    """Name, method, path, body."""
    file = "${file:" + str(folder) + "/secrets/p.properties:%s}"

    def source(**changes: str) -> dict[str, str]:
        return {"connector.class": SOURCE, "name": "recorded", "file": str(folder / "in"), **changes}

    def validated(name: str, **changes: str) -> tuple[str, str, str, Any]:
        return name, "PUT", "/connector-plugins/FileStreamSource/config/validate", source(**changes)

    def made(name: str, **changes: str) -> tuple[str, str, str, Any]:
        return name, "PUT", f"/connectors/{name}/config", {**source(**changes), "name": name}

    mirror = {"connector.class": MIRROR, "name": "m", "source.cluster.alias": "a", "target.cluster.alias": "b"}
    return [
        validated("validate: resolved", topic=file % "topic"),
        validated("validate: resolved into an error", **{"topic": "t", "batch.size": file % "size"}),
        validated("validate: within other text", topic="a-" + file % "topic" + "-${env:RECORDED_TOPIC}-z"),
        validated("validate: missing key", topic=file % "absent"),
        validated("validate: empty value", topic=file % "empty"),
        validated("validate: not resolved twice", topic=file % "nested"),
        validated("validate: unknown provider", topic="${vault:a:b}"),
        validated("validate: provider without class", topic="${nowhere:a:b}"),
        validated("validate: provider and key only", topic="${file:topic}"),
        validated("validate: missing file", topic="${file:" + str(folder) + "/secrets/absent.properties:topic}"),
        validated("validate: path not allowed", topic="${file:" + str(folder) + "/outside.properties:topic}"),
        validated("validate: up and out", topic="${file:" + str(folder) + "/secrets/../outside.properties:topic}"),
        validated("validate: directory", topic="${dir:" + str(folder) + "/secrets:token}"),
        validated("validate: no directory", topic="${dir:" + str(folder) + "/secrets/token:x}"),
        validated("validate: environment", topic="${env:RECORDED_TOPIC}"),
        validated("validate: environment not allowed", topic="${env:OTHER_TOPIC}"),
        validated("validate: environment with a path", topic="${env:x:RECORDED_TOPIC}"),
        validated("validate: class", **{"topic": "t", "connector.class": file % "class"}),
        validated("validate: override", **{"topic": "t", "producer.override.sasl.jaas.config": file % "password"}),
        validated("validate: bad override", **{"topic": "t", "producer.override.linger.ms": file % "password"}),
        (
            "validate: password",
            "PUT",
            "/connector-plugins/MirrorSourceConnector/config/validate",
            {
                **mirror,
                "ssl.key.password": file % "password",
                "ssl.keystore.password": SECRET,
                "sasl.jaas.config": SECRET,
            },
        ),
        (
            "validate: no class",
            "PUT",
            "/connector-plugins/FileStreamSource/config/validate",
            {"topic": file % "password"},
        ),
        made("good", topic=file % "topic", other=file % "password", unrelated="x"),
        made("lost", topic="${file:" + str(folder) + "/secrets/absent.properties:topic}"),
        made("unknown", topic="${vault:a:b}"),
        ("good: config", "GET", "/connectors/good/config", None),
        ("good: info", "GET", "/connectors/good", None),
        ("good: tasks", "GET", "/connectors/good/tasks", None),
        ("good: offsets of another", "GET", "/connectors?expand=info&expand=status", None),
        made("none", **{"topic": file % "topic", "config.action.reload": "NONE"}),
        made("odd", **{"topic": file % "topic", "config.action.reload": "odd"}),
    ]


def trimmed(answer: Any) -> Any:
    """Keeps the values of a `validate` answer that concern config providers."""
    if isinstance(answer, dict) and "configs" in answer:
        values = {
            config["value"]["name"]: config["value"]
            for config in answer["configs"]
            if config["value"]["name"] in VALIDATE_KEYS
            or config["value"]["errors"]
            or "override" in config["value"]["name"]
        }
        return {"name": answer["name"], "error_count": answer["error_count"], "values": values}
    return answer


async def main() -> None:
    """Plays the requests and writes the record."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fill(folder)
        (folder / "in").write_text("one\n")
        async with running_broker(folder / "broker") as bootstrap:
            worker = ConnectProcess(folder / "connect", bootstrap, "recorded", worker_properties(folder))
            await worker.start()
            try:
                record = {"requests": await played(worker, folder), "topic": [], "log": []}
                record["topic"] = await topic(worker)
                record["after"] = await without_file(worker, folder)
                record["log"] = sorted({line.strip() for line in worker.output.splitlines() if SECRET in line})
            finally:
                await worker.end()
        text = one_a_line(record)
        text = (
            text.replace(str(folder), "<folder>")
            .replace(worker.url, "<worker>")
            .replace(f"127.0.0.1:{worker.port}", "<worker>")
        )
        RECORD.write_text(text.replace(bootstrap, "<brokers>"), encoding="utf-8")


async def played(worker: ConnectProcess, folder: Path) -> list[dict[str, Any]]:
    """Each request with its answer."""
    results = []
    for name, method, path, body in requests(folder):
        if name == "good: config":
            await eventually(lambda: has_task(worker), seconds=30, what="the connector has a task")
        answer = await worker.ask(method, path, body)
        shown = trimmed(answer.json()) if answer.content else None
        results.append(
            {"name": name, "method": method, "path": path, "body": body, "code": answer.status_code, "answer": shown}
        )
    return results


async def has_task(worker: ConnectProcess) -> bool:
    """Whether the connector runs."""
    status = (await worker.ask("GET", "/connectors/good/status")).json()
    return [task["state"] for task in status.get("tasks", ())] == ["RUNNING"]


async def topic(worker: ConnectProcess) -> list[list[str | None]]:
    """The records of connectors and tasks in the config topic."""
    rows = await read_topic({"bootstrap.servers": worker.bootstrap}, "recorded-configs", client_id="record", seconds=30)
    stored_rows = [row for row in rows if row.key.startswith((b"connector-good", b"task-good", b"connector-lost"))]
    return [[row.key.decode(), None if row.value is None else row.value.decode()] for row in stored_rows]


async def without_file(worker: ConnectProcess, folder: Path) -> list[Any]:
    """Restarts a task whose file was removed."""
    (folder / "secrets" / "p.properties").unlink()
    answer = await worker.ask("POST", "/connectors/good/restart?includeTasks=true")
    actual_without_file: list[Any] = [answer.status_code]
    await asyncio.sleep(5)
    for path in ("/connectors/good/status", "/connectors/good/config", "/connectors/good/tasks"):
        answer = await worker.ask("GET", path)
        actual_without_file.append([path, answer.status_code, answer.json()])
    return actual_without_file


if __name__ == "__main__":
    asyncio.run(main())
