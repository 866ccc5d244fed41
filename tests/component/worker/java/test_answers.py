"""A worker of ours answers about published Java plugins as Apache Kafka Connect does (tests/recorded)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keelman.connectors import registry
from keelman.connectors.validation.configuration import definition_of
from recorded.java.java_plugins_steps import MONGO_SINK, UNWRAP, play, told
from support.eventually import eventually
from support.java.kit import needs_java
from support.java.published import DEBEZIUM_POSTGRES, FILE_SINK, FILE_SOURCE, FILES, MONGO, POSTGRES, plugin_path
from support.places import RECORDED_FOLDER
from support.worker.processes import LinkSide, WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
RECORDED: dict[str, Any] = json.loads((RECORDED_FOLDER / "java" / "java_plugins.json").read_text())
CLASS = "connector.class"
FRAMEWORK = {
    key for name in (FILE_SOURCE, FILE_SINK) for key in definition_of(registry.find_connector(name), {}, {}).keys
}
"""Keys of every connector, whose documentation and more of which are our own."""
NOT_HERE = ("MirrorCheckpointConnector", "MirrorHeartbeatConnector")
"""Connect's own connectors that ours lacks: ours does all of MirrorMaker's work in one connector."""


async def test_answers_about_java_plugins_are_connects(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    properties = {"plugin.path": await plugin_path(POSTGRES, FILES, MONGO)}
    worker = WorkerProcess(tmp_path, bootstrap, "java-answers", link[1], properties)
    async with workers(worker):

        async def listed() -> bool:
            answer = (await worker.ask("GET", "/connector-plugins?connectorsOnly=false")).json()
            return {MONGO_SINK, DEBEZIUM_POSTGRES, UNWRAP} <= {entry["class"] for entry in answer}

        await eventually(listed, what="the plugins' classes are listed")
        tree = json.loads(json.dumps(told(await play(worker.ask, registry.java_name))))

        ours = {CLASS: "FileStreamSource", "name": "x", "topic": "t", "transforms": "u", "transforms.u.type": UNWRAP}
        taken = await worker.ask("PUT", "/connector-plugins/FileStreamSource/config/validate", ours)
        assert taken.json()["error_count"] == 0, taken.text
    assert set(tree) == set(RECORDED)
    wrong = [line for name, answer in tree.items() for line in differences(name, RECORDED[name], answer)]
    assert not wrong, "\n".join(wrong)


def differences(name: str, connects: Any, ours: Any) -> list[str]:
    """The parts of an answer that differ from Connect's, though they should not."""
    if name.startswith("plugins"):
        missing = [entry for entry in connects if entry not in ours and not entry["class"].endswith(NOT_HERE)]
        more = [
            entry
            for entry in ours
            if entry not in connects and entry["class"].startswith(("io.debezium", "com.mongodb"))
        ]
        return [f"{name}: {difference}" for difference in (*missing, *more)]
    results = []
    for key, value in connects.items():
        got = ours.get(key)
        if name.startswith("keys") and got is not None and key in FRAMEWORK:
            got = {**got, "documentation": value["documentation"]}
        if key != CLASS and got != value:
            results.append(f"{name}: {key}\n  Connect: {value}\n  ours:    {got}")
    unknown = ours.keys() - connects.keys() - FRAMEWORK
    return [*results, *(f"{name}: {key} is ours alone" for key in sorted(unknown) if not key.startswith("keelman."))]
