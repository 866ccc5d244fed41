"""Java connectors of a worker's group: they request new task configurations by themselves, and fail by themselves."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.java.kit import compiled, needs_java
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]


async def test_a_connector_gets_the_tasks_that_it_asks_for_and_fails_with_its_trace(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    classes, plugins, sea = tmp_path / "classes", tmp_path / "plugins", tmp_path / "sea"
    for folder in (classes, plugins, sea):
        folder.mkdir()
    await compiled(classes)
    with zipfile.ZipFile(plugins / "acme-7.jar", "w") as jar:
        for file in classes.rglob("*.class"):
            jar.write(file, file.relative_to(classes))
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "java-restless", link[1], {"plugin.path": str(plugins)})
    config = {"connector.class": "RestlessSource", "folder": str(sea), "tasks.max": "4"}

    async def tasks() -> list[Any]:
        response = (await worker.ask("GET", "/connectors/sea/tasks")).json()
        return [entry["config"]["number"] for entry in response]

    async def state() -> dict[str, Any]:
        state: dict[str, Any] = (await worker.ask("GET", "/connectors/sea/status")).json()["connector"]
        return state

    async with workers(worker):
        await eventually(lambda: _listed(worker), what="the plugin is listed")
        response = await worker.ask("POST", "/connectors", {"name": "sea", "config": config})
        assert response.status_code == 201, response.text
        await eventually(lambda: _are(tasks, ["0"]), what="one task")
        (sea / "more").touch()
        await eventually(lambda: _are(tasks, ["0", "1"]), what="two tasks")
        assert (sea / "calls").read_text().split() == ["start"]

        (sea / "gone").touch()

        async def failed() -> bool:
            return "Caused by: java.lang.IllegalStateException: dry" in (await state()).get("trace", "")

        await eventually(failed, what="the connector has failed with its trace")
        (sea / "gone").unlink()

        async def runs() -> bool:
            return (await state())["state"] == "RUNNING"

        await eventually(runs, what="the connector was started again")
        assert await worker.end() == 0
    assert (sea / "calls").read_text().split()[-1] == "stop"


async def _listed(worker: WorkerProcess) -> bool:
    response = (await worker.ask("GET", "/connector-plugins")).json()
    return {"class": "acme.RestlessSource", "type": "source", "version": "2.5"} in response


async def _are(tasks: Any, expected: list[str]) -> bool:
    return bool(await tasks() == expected)
