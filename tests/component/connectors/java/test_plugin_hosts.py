"""Java classes in plugin hosts: their descriptions, validations and task configurations, and their state."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connectors.plugins import java_folders
from keelman.connectors.plugins.client import PluginHost
from keelman.connectors.plugins.plugin_path import InstalledPlugin, scan
from keelman.connectors.plugins.process import PluginProcess
from support.eventually import eventually
from support.java.kit import needs_java
from support.java.published import FILES, JDBC, MIRROR, MONGO, POSTGRES, Published

pytestmark = [pytest.mark.component, needs_java()]
RESTLESS, SCRIPTED, BROKEN = "acme.RestlessSource", "acme.ScriptedSource", "acme.BrokenSink"
STAMP, SHOUT = "acme.StampTransform", "acme.ShoutTransform"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SOURCES = "[NRS]*Source*.class Notes*.class"


@pytest.fixture(scope="session")
def acme(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> InstalledPlugin:
    """All the classes as a plugin."""
    path = tmp_path_factory.mktemp("plugins")
    jar_of(path / "acme" / "acme-7.jar", classes, "*.class")
    (plugin,) = scan(str(path)).plugins
    return plugin


def jar_of(path: Path, classes: Path, patterns: str, changes: Mapping[bytes, bytes] | None = None) -> None:
    """A jar of the classes whose files' names match one of these patterns, with these changes of their bytes."""
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as jar:
        for file in (file for pattern in patterns.split() for file in classes.rglob(pattern)):
            data = file.read_bytes()
            for before, after in (changes or {}).items():
                assert before in data, f"{file.name} has no {before!r}"
                data = data.replace(before, after)
            jar.writestr(str(file.relative_to(classes)), data)


@pytest.fixture
async def host(acme: InstalledPlugin) -> AsyncIterator[PluginHost]:
    """A host of one process, as for requests about tasks."""
    async with PluginHost(acme, answer_seconds=60, processes=1) as plugin_host:
        yield plugin_host


def calls(folder: Path) -> list[str]:
    """The calls that the connector has noted."""
    file = folder / "calls"
    return file.read_text().split() if file.exists() else []


async def test_what_classes_say_is_kept_and_one_that_cannot_be_made_hides_no_other(acme: InstalledPlugin) -> None:
    assert acme.java is not None
    async with PluginHost(acme, answer_seconds=60) as host:
        java = java_folders.keep_answers(acme.java, await host.java_answers())
    versions = {(plugin_class.class_name, plugin_class.type): plugin_class.version for plugin_class in java.classes}
    assert versions[RESTLESS, "source"] == "2.5"
    assert versions[STAMP, "transformation"] == "3.1"
    assert java.problem_of(RESTLESS) == java.problem_of(STAMP) == ""
    assert java.problem_of(BROKEN).startswith(f"{BROKEN} cannot be loaded: java.lang.ExceptionInInitializerError")
    assert java_folders.read(java.folder) == java


async def test_a_transforms_keys_are_judged_by_its_own_validators(acme: InstalledPlugin) -> None:
    config = {"connector.class": RESTLESS, "name": "sea", "folder": "/tmp", "transforms": "s"}
    config |= {"transforms.s.type": "StampTransform", "transforms.s.level": "11"}
    async with PluginHost(acme, answer_seconds=60) as host:
        actual_errors = errors(await host.validate(RESTLESS, config, {}))
        assert list(actual_errors) == ["transforms.s.level"]
        assert actual_errors["transforms.s.level"] == [
            "Invalid value 11 for configuration level: Value must be no more than 9"
        ]
        empty = errors(await host.validate(RESTLESS, {"connector.class": RESTLESS, "name": "sea", "folder": ""}, {}))
        assert empty == {"folder": ["Invalid value  for configuration folder: String must be non-empty"]}
        keys = (await host.step_keys(STAMP, "transformation")).keys
        assert [(key.name, key.default) for key in keys.values()] == [("level", 3)]


async def test_a_connector_can_name_a_transform_of_another_folder(classes: Path, tmp_path: Path) -> None:
    jar_of(tmp_path / "waters" / "waters.jar", classes, SOURCES)
    jar_of(tmp_path / "steps" / "steps.jar", classes, "Stamp*.class")
    waters = {plugin.name: plugin for plugin in scan(str(tmp_path)).plugins}["waters"]
    config = {"connector.class": RESTLESS, "name": "sea", "folder": "/tmp", "transforms": "s"}
    config |= {"transforms.s.type": STAMP, "transforms.s.level": "11"}
    async with PluginHost(waters, answer_seconds=60) as host:
        actual_errors = errors(await host.validate(RESTLESS, config, {}))
    assert actual_errors == {
        "transforms.s.level": ["Invalid value 11 for configuration level: Value must be no more than 9"]
    }


async def test_a_step_is_loaded_in_the_version_that_is_asked_for(classes: Path, tmp_path: Path) -> None:
    jar_of(tmp_path / "waters" / "waters.jar", classes, SOURCES)
    jar_of(tmp_path / "reversed" / "reversed.jar", classes, "Reversed*.class")
    jar_of(tmp_path / "newer" / "steps-1.2.jar", classes, "Shout*.class")
    quiet = {b"\x01\x00\x031.2": b"\x01\x00\x031.1", b"toUpperCase": b"toLowerCase"}
    jar_of(tmp_path / "older" / "steps-1.1.jar", classes, "Shout*.class", quiet)
    (tmp_path / "lines").write_text("v0\n")
    waters = {plugin.name: plugin for plugin in scan(str(tmp_path)).plugins}["waters"]
    shout = {"transforms": "s", "transforms.s.type": SHOUT, "transforms.s.end": "Z"}
    sources = {
        SCRIPTED: {"topics": "t", "log": str(tmp_path / "calls"), "records": "1"},
        "FileStreamSource": {"topic": "t", "file": str(tmp_path / "lines")},
    }
    process = PluginProcess(waters.folder, memory_bytes=0)

    async def ask(kind: str, **more: str) -> dict[str, Any]:
        config = {"name": "sea", "connector.class": kind, **sources[kind], **shout, **more}
        request = {"id": 0, "method": "preview", "class": kind, "name": "sea", "config": config, "tasks": [config]}
        request |= {"worker_config": {"key.converter": STRING, "value.converter": STRING}, "offsets": []}
        return await process.ask({**request, "from": "beginning", "records": 1, "seconds": 30})

    async def written(kind: str, **more: str) -> str:
        answer = await ask(kind, **more)
        return str(answer["result"]["records"][0]["steps"][-1]["record"]["value"]["text"])

    try:
        await process.start()
        for kind in sources:
            assert await written(kind) == "V0Z"
            for expected in ("1.1", "[1,1.2)"):
                assert await written(kind, **{"transforms.s.plugin.version": expected}) == "v0Z", kind
            for key, more, present in (
                ("transforms.s.plugin.version", {}, "1.2, 1.1"),
                ("value.converter.plugin.version", {"value.converter": "acme.ReversedConverter"}, "undefined"),
            ):
                refused = (await ask(kind, **more, **{key: "[7,)"}))["error"]
                assert (refused["key"], f"[7,), available versions: [{present}]" in refused["message"]) == (key, True)
    finally:
        await process.close()


def errors(infos: Mapping[str, Any]) -> dict[str, list[str]]:
    """The errors of each key that has any."""
    values = [config["value"] for config in infos["configs"]]
    return {value["name"]: value["errors"] for value in values if value["errors"]}


async def test_a_connector_stays_started_until_it_asks_for_other_tasks(host: PluginHost, tmp_path: Path) -> None:
    config = {"name": "sea", "connector.class": RESTLESS, "folder": str(tmp_path)}
    rows = [(b'["sea",{"sea":"north"}]', b'{"depth":7}')]
    tasks = await host.task_configs(RESTLESS, config, 4, offsets=rows)
    assert tasks == [{"number": "0", "offset": "{depth=7}", "task.class": f"{SCRIPTED}$ScriptedTask"}]
    assert await host.tend_again(RESTLESS, config, tasks)
    (tmp_path / "more").touch()

    async def asked() -> bool:
        return not await host.tend_again(RESTLESS, config, tasks)

    await eventually(asked, what="the connector requests other tasks")
    more = await host.task_configs(RESTLESS, config, 4, offsets=[(rows[0][0], b'{"depth":8}')])
    assert [(entry["number"], entry["offset"]) for entry in more] == [("0", "{depth=8}"), ("1", "{depth=8}")]
    assert await host.tend_again(RESTLESS, config, more)
    assert calls(tmp_path) == ["start"]

    changed = {**config, "tasks.max": "2"}
    assert not await host.tend_again(RESTLESS, changed, more)
    await host.task_configs(RESTLESS, changed, 2)
    assert calls(tmp_path) == ["start", "stop", "start"]
    await host.stop_started(RESTLESS)
    assert calls(tmp_path) == ["start", "stop", "start", "stop"]


async def test_what_a_connector_fails_with_by_itself_has_its_java_trace(host: PluginHost, tmp_path: Path) -> None:
    config = {"name": "sea", "connector.class": RESTLESS, "folder": str(tmp_path)}
    tasks = await host.task_configs(RESTLESS, config, 1)
    (tmp_path / "gone").touch()

    async def failed() -> ConnectError | None:
        try:
            await host.tend_again(RESTLESS, config, tasks)
        except ConnectError as error:
            return error
        return None

    error = await eventually(failed, what="the connector is FAILED")
    assert error is not None
    assert "the sea is gone" in str(error)
    lines = error.java_trace.splitlines()
    assert lines[0] == "org.apache.kafka.connect.errors.ConnectException: the sea is gone"
    assert "\tat acme.RestlessSource.watch(RestlessSource.java:" in error.java_trace
    assert "Caused by: java.lang.IllegalStateException: dry" in lines
    assert calls(tmp_path) == ["start", "stop"]
    (tmp_path / "gone").unlink()
    assert not await host.tend_again(RESTLESS, config, tasks)
    assert await host.task_configs(RESTLESS, config, 1) == tasks
    assert await host.tend_again(RESTLESS, config, tasks)


async def test_a_value_that_start_refuses_is_an_error_of_the_configuration(host: PluginHost, tmp_path: Path) -> None:
    config = {"name": "sea", "connector.class": RESTLESS, "folder": str(tmp_path), "refuses": "x"}
    with pytest.raises(ConfigValueError, match="Invalid value x for configuration refuses: it is refused") as caught:
        await host.task_configs(RESTLESS, config, 1)
    assert "at acme.RestlessSource.start" in caught.value.java_trace


@pytest.mark.parametrize("published", [POSTGRES, JDBC, FILES, MIRROR, MONGO], ids=lambda value: value.name)
async def test_published_plugins_classes_can_all_be_made_and_asked(published: Published) -> None:
    (plugin,) = scan(str(await published.path())).plugins
    async with PluginHost(plugin, answer_seconds=60) as host:
        for java_answer in await host.java_answers():
            assert (java_answer["class"], java_answer["problem"]) == (java_answer["class"], "")
            assert java_answer["version"] not in ("", "undefined")
        for full in plugin.classes:
            assert (await host.config_def(full)).keys
            answer = await host.validate(full, {"connector.class": full, "name": "x", "topics": "t"}, {})
            assert answer["configs"]
            json.dumps(answer)
