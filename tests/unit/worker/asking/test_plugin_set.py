"""The plugins that a worker found, with place and problem; a set that does not load is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keelman.connectors import registry
from keelman.connectors.java import jvm
from keelman.connectors.registry import find_connector
from keelman.model.errors import InvalidArgument, NotFound
from keelman.worker.asking import plugin_set
from keelman.worker.asking.plugin_set import WorkerPluginSet
from keelman.worker.asking.third_party import NOT_READY, ThirdParty
from support.plugins import jar_files
from support.plugins.plugin_wheel import MODULE, wheel

FULL, RIVAL = "com.acme.WeatherSourceConnector", "org.rival.WeatherSourceConnector"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))


def rival(folder: Path, target: str = "acme_weather.source:WeatherSource") -> None:
    """A plugin of another name with a class of the same simple name."""
    entries = f"[keelman.connectors]\n{RIVAL} = {target}\n"
    wheel(folder, "9", entry_points=entries).rename(folder / "rival-9-py3-none-any.whl")


async def test_classes_are_told_with_where_they_are_and_what_is_wrong(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "plugins" / "ab12", tmp_path / "own"
    wheel(mine / "acme")
    rival(theirs, "acme_weather.source:NotOne")
    (theirs / "torn.whl").write_bytes(b"torn")
    async with ThirdParty.open(f"{mine},{theirs}", lambda: None) as plugins:
        actual_set = WorkerPluginSet(plugins, {str(mine): "acme 1.4"})
        await actual_set.read()
        by_class = {plugin.class_name: plugin for plugin in actual_set.found()}
    assert (by_class[FULL].type, by_class[FULL].version, by_class[FULL].language) == ("source", "1.4.0", "python")
    assert (by_class[FULL].plugin, by_class[FULL].path, by_class[FULL].problem) == ("acme 1.4", "acme", "")
    assert (by_class[RIVAL].plugin, by_class[RIVAL].path) == ("", str(theirs / "rival-9-py3-none-any.whl"))
    assert "is no keelman.connect.plugin.Connector" in by_class[RIVAL].problem
    assert (by_class[""].path, by_class[""].type) == (str(theirs / "torn.whl"), "")
    assert "not a wheel" in by_class[""].problem


async def test_classes_of_jars_are_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(progress: object) -> None:
        return

    monkeypatch.setattr(jvm, "prepare", nothing)
    folder = tmp_path / "plugins" / "cd34"
    (folder / "acme" / "lib").mkdir(parents=True)
    source = jar_files.class_bytes("com/acme/RainSource", jar_files.SOURCE)
    flip = jar_files.class_bytes("com/acme/Flip", interfaces=[jar_files.TRANSFORMATION])
    (folder / "acme" / "lib" / "rain-3.jar").write_bytes(jar_files.jar_bytes([source, flip]))
    (folder / "acme" / "torn.jar").write_bytes(b"torn")
    async with ThirdParty.open(str(folder), lambda: None) as plugins:
        actual_set = WorkerPluginSet(plugins, {str(folder): "rain 3"})
        await actual_set.read()
        by_class = {plugin.class_name: plugin for plugin in actual_set.found()}
    path = "acme/lib/rain-3.jar"
    assert {
        (plugin.class_name, plugin.type, plugin.language, plugin.plugin, plugin.path)
        for plugin in by_class.values()
        if plugin.class_name
    } == {
        ("com.acme.RainSource", "source", "java", "rain 3", path),
        ("com.acme.Flip", "transformation", "java", "rain 3", path),
    }
    assert by_class[""].problem.startswith("torn.jar: ")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        (None, "no connector in it"),
    ],
)
async def test_a_plugin_of_the_cluster_of_which_nothing_can_be_used_is_refused(
    tmp_path: Path, code: str | None, reason: str
) -> None:
    folder = tmp_path / "plugins" / "ab12"
    if code is None:
        wheel(folder / "acme", entry_points="[other]\na = b:c\n")
    else:
        wheel(folder / "acme", more={"acme_weather/source.py": code})
    async with ThirdParty.open(str(folder), lambda: None) as plugins:
        with pytest.raises(InvalidArgument, match=f"plugin acme 2.0 cannot be loaded: .*{reason}") as caught:
            await WorkerPluginSet(plugins, {str(folder): "acme 2.0"}).read()
        await WorkerPluginSet(plugins, {}).read()  # below its own plugin.path it affects no other plugin
    assert caught.value.reason == "PLUGIN_BROKEN"


async def test_jars_of_the_cluster_without_a_class_that_can_be_read_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "ab12"
    (folder / "rain").mkdir(parents=True)
    half = jar_files.class_bytes("com/acme/RainSource", jar_files.SOURCE)[:60]
    (folder / "rain" / "rain-4.jar").write_bytes(jar_files.jar_bytes(files={"com/acme/RainSource.class": half}))
    async with ThirdParty.open(str(folder), lambda: None) as plugins:
        actual_set = WorkerPluginSet(plugins, {str(folder): "rain 4"})
        with pytest.raises(InvalidArgument, match=r"plugin rain 4 cannot be loaded: rain-4\.jar: .*it ends early"):
            await actual_set.read()
    assert [(plugin.plugin, plugin.path) for plugin in actual_set.found()] == [("rain 4", "rain")]


async def test_one_that_cannot_say_yet_what_it_is_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, dies = tmp_path / "plugins" / "ab12", tmp_path / "dies"
    dies.touch()
    code = MODULE.replace("VERSION", "1").replace("\\\\", "\\")
    head = f"import os\nif os.path.exists({str(dies)!r}):\n    os._exit(3)\n"
    wheel(folder / "acme", more={"acme_weather/source.py": head + code})
    async with ThirdParty.open(str(folder), lambda: None) as plugins:
        actual_set = WorkerPluginSet(plugins, {str(folder): "acme 1"})
        reading = asyncio.ensure_future(actual_set.read())
        await plugins.read()
        assert "its process died" in actual_set.found()[0].problem
        assert not reading.done()
        dies.unlink()
        async with asyncio.timeout(60):
            await reading
        dies.touch()
        monkeypatch.setattr(plugin_set, "PATIENCE_SECONDS", 0.1)
    async with ThirdParty.open(str(folder), lambda: None) as plugins:
        with pytest.raises(InvalidArgument, match=r"plugin acme 1 cannot be loaded: .*its process died"):
            await WorkerPluginSet(plugins, {str(folder): "acme 1"}).read()


async def test_a_broken_plugin_hides_no_other_and_several_are_named(tmp_path: Path) -> None:
    wheel(tmp_path / "plugins")
    rival(tmp_path / "plugins", "acme_weather.source:NotOne")
    async with ThirdParty.open(str(tmp_path / "plugins"), lambda: None) as plugins:
        with pytest.raises(NotFound) as early:
            find_connector("WeatherSource")
        assert early.value.reason == NOT_READY
        assert (await asyncio.to_thread(find_connector, "WeatherSource")).names[0] == FULL
        await plugins.read()
        assert registry.full_name("WeatherSource") == FULL
        with pytest.raises(NotFound, match="is no keelman"):
            find_connector(RIVAL)
    registry._added.clear()
    rival(tmp_path / "plugins")
    async with ThirdParty.open(str(tmp_path / "plugins"), lambda: None):
        with pytest.raises(NotFound) as several:
            await asyncio.to_thread(find_connector, "WeatherSource")
        assert several.value.reason == "CONNECTOR_CLASS_AMBIGUOUS"
        assert several.value.message == (
            "More than one connector matches alias WeatherSource. Please use full package and class name instead. "
            f"Classes found: {FULL}, {RIVAL}"
        )
        assert (await asyncio.to_thread(find_connector, RIVAL)).names[0] == RIVAL


async def test_the_latest_version_that_can_be_used_is_found(tmp_path: Path) -> None:
    wheel(tmp_path / "plugins", "1.3.0")
    wheel(tmp_path / "plugins", "1.4.0", more={"acme_weather/source.py": "import no_such_module\n"})
    async with ThirdParty.open(str(tmp_path / "plugins"), lambda: None) as plugins:
        await plugins.read()
        assert find_connector("WeatherSource").version == "1.3.0"
