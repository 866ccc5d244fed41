"""Java plugins of a worker whose machine lacks their runtime: listed with the reason, and refused with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connectors import registry
from keelman.connectors.java import jvm
from keelman.connectors.registry import PluginRegistry, PluginStep
from keelman.model.errors import FailedPrecondition, NotFound
from keelman.runtime.java.ivy import Progress
from keelman.worker.asking.plugin_set import WorkerPluginSet
from keelman.worker.asking.third_party import ThirdParty, infos_of
from support.plugins.jar_files import SOURCE, class_bytes, jar_bytes

SEA, STAMP = "com.acme.SeaSourceConnector", "com.acme.Stamp$Value"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))


async def test_without_jpype_a_connector_is_refused_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(_progress: Progress) -> None:
        raise FailedPrecondition(jvm.MISSING, reason="JPYPE_MISSING")

    monkeypatch.setattr(jvm, "prepare", prepare)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "sea-2.jar").write_bytes(jar_bytes([class_bytes(SEA.replace(".", "/"), SOURCE)]))
    async with ThirdParty.open(str(tmp_path / "plugins"), lambda: None) as plugins:
        await plugins.read()
        (plugin,) = WorkerPluginSet(plugins, {}).found()
        assert (plugin.class_name, plugin.type, plugin.language) == (SEA, "source", "java")
        assert plugin.problem.endswith("pip install 'keelman[java]'")
        with pytest.raises(NotFound, match=rf"{SEA} of plugin sea 2 cannot run: .*pip install 'keelman\[java\]'"):
            await asyncio.to_thread(infos_of, {"connector.class": SEA, "name": "x"}, {})


def test_steps_of_plugins_are_known_and_listed() -> None:
    registry.add_steps(
        [PluginStep(STAMP, PluginType.TRANSFORMATION, version, ConfigDef) for version in ("1.9", "1.10")]
        + [PluginStep("org.apache.kafka.connect.json.JsonConverter", PluginType.CONVERTER, "1", ConfigDef)]
    )
    plugin_registry = PluginRegistry()
    assert plugin_registry.find(STAMP) == plugin_registry.find(f" {STAMP} ") == STAMP
    assert plugin_registry.nested("com.acme.Stamp") == [STAMP]
    assert plugin_registry.versions(STAMP) == ["1.10", "1.9"]
    assert plugin_registry.versions("org.apache.kafka.connect.json.JsonConverter") == ["4.3.0", "4.3.0"]
    assert plugin_registry.is_a(STAMP, PluginType.TRANSFORMATION)
    assert not plugin_registry.is_a(STAMP, PluginType.PREDICATE)
    assert registry.kind_of(STAMP) is PluginType.TRANSFORMATION
    assert [plugin.version for plugin in registry.listed(PluginType.TRANSFORMATION) if plugin.class_name == STAMP] == [
        "1.10",
        "1.9",
    ]
    assert STAMP not in {plugin.class_name for plugin in registry.listed(PluginType.SINK, PluginType.SOURCE)}
