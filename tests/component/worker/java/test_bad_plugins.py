"""Illegal behaviour of Java plugins: their task reports the class and the fault, and no other task is harmed."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.java.kit import compiled, needs_java
from support.kafka.topics import create_topic
from support.plugins.jar_files import SINK, SOURCE, class_bytes
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
BAD = "acme.BadSource"
TASK = f"{BAD}$BadTask"
INNER = "org.apache.kafka.connect.runtime.Worker"
TASKS = {
    "exit": rf"exited with code 3 in {re.escape(TASK)}\.poll",
    "halt": rf"exited with code 4 in {re.escape(TASK)}\.poll",
    "eats": rf"exited with code 3 in {re.escape(TASK)}\.poll",
    "missing": r"java\.lang\.NoClassDefFoundError: acme/Missing",
    "recurses": r"java\.lang\.StackOverflowError",
}
"""The actions of the tasks, and the reported errors."""
CONNECTORS = {
    "start": r"IllegalStateException: no start today",
    "error": r"StackOverflowError: too deep",
    "tasks": r"IllegalStateException: no tasks today",
}
"""The exceptions of connectors, and the reported errors."""


async def bad_plugin(folder: Path) -> Path:
    """A plugin path with the kit's classes, without a class that another needs, and with a class of a later Java."""
    classes = await compiled(folder / "classes")
    jar = folder / "plugins" / "bad" / "bad.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            if file.name != "Missing.class":
                archive.write(file, str(file.relative_to(classes)))
        archive.writestr("acme/InnerSink.class", class_bytes("acme/InnerSink", SINK, uses=["acme/Inside"]))
        archive.writestr("acme/Inside.class", class_bytes("acme/Inside", uses=[INNER.replace(".", "/")]))
        archive.writestr("acme/LaterSource.class", class_bytes("acme/LaterSource", SOURCE, java=99))
    return jar.parent.parent


async def test_what_bad_java_plugins_do_is_told_and_harms_nobody_else(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    plugins = await bad_plugin(tmp_path)
    create_topic(bootstrap, "bad-records")
    extra = {
        "plugin.path": str(plugins),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.heap.bytes": str(64 << 20),
        "keelman.restart.max.attempts": "0",
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "badjava", spark.address, extra)
    config = {"connector.class": BAD, "topic": "bad-records"}

    async def create(name: str, **more: str) -> None:
        response = await worker.ask("POST", "/connectors", {"name": name, "config": {**config, **more}}, timeout=300)
        assert response.status_code == 201, response.text

    async def says(name: str, text: str, *, task: bool) -> None:
        async def there() -> bool:
            status = (await worker.ask("GET", f"/connectors/{name}/status")).json()
            shown: dict[str, Any] = (status["tasks"] or [{}])[0] if task else status["connector"]
            assert re.search(text, shown.get("trace", "")), status
            return True

        await eventually(there, what=f"{name} has the text {text}")

    async def committed() -> int:
        rows = (await worker.ask("GET", "/connectors/good/offsets")).json()["offsets"]
        return int(rows[0]["offset"]["n"]) if rows else 0

    async with workers(worker):
        await create("good")
        await worker.reaches("good", "RUNNING", "RUNNING", seconds=300)
        assert "1 class needs Java 99 (acme.LaterSource)" in worker.output
        inner = {"connector.class": "acme.InnerSink", "topics": "bad-records", "name": "inner"}
        refused = await worker.ask("POST", "/connectors", {"name": "inner", "config": inner}, timeout=300)
        assert (refused.status_code >= 400, f"acme.Inside uses {INNER}, which" in refused.text) == (True, True), refused
        assert refused.text.count("acme.InnerSink cannot run here") == 1, refused.text
        for mode in CONNECTORS:
            await create(f"connector-{mode}", throws=mode)
        for mode in ("leaks", "floods", *TASKS):
            await create(mode, does=mode)
        for mode, text in CONNECTORS.items():
            await says(f"connector-{mode}", text, task=False)
        for mode, text in TASKS.items():
            await says(mode, text, task=True)
        await worker.reaches("leaks", "RUNNING", "RUNNING", seconds=300)
        await worker.reaches("floods", "RUNNING", "RUNNING", seconds=300)
        flood = f"{TASK}.poll writes more than its output takes, 262144 bytes a second"
        await eventually(lambda: flood in spark.log.read_text(errors="replace"), what=flood)
        before = await committed()
        status = (await worker.ask("GET", "/connectors/good/status")).json()
        assert status["tasks"][0]["state"] == "RUNNING"

        async def goes_on() -> bool:
            return await committed() > before + 20

        await eventually(goes_on, what="the good connector continues")
        assert await worker.end() == 0
