"""Plugins below plugin.path: wheels and folders, found by their metadata alone."""

import stat
import sys
import zipfile
from pathlib import Path

import pytest

from keelman.connect.plugin import Direction
from keelman.connectors.plugins import plugin_path as plugins
from keelman.connectors.plugins import wheels
from keelman.connectors.plugins.plugin_path import Catalog, InstalledPlugin, PluginFault, scan
from keelman.connectors.plugins.wheels import unpacked
from keelman.model.errors import InvalidArgument
from support.plugins.jar_files import jar_bytes
from support.plugins.plugin_wheel import ENTRY_POINTS, METADATA, wheel

FULL = "com.acme.WeatherSourceConnector"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plugins"


def described(catalog: Catalog) -> list[str]:
    return [str(plugin) for plugin in catalog.plugins]


def test_a_wheel_is_found_unpacked_once_and_not_imported(tmp_path: Path, cache: Path) -> None:
    path = wheel(tmp_path / "plugins")
    (tmp_path / "plugins" / "java.jar").write_bytes(jar_bytes())
    catalog = scan(f" {tmp_path / 'plugins'} ,, ")
    (plugin,) = catalog.plugins
    assert catalog.broken == []
    assert (str(plugin), plugin.classes) == ("acme-weather 1.4.0", {FULL: "acme_weather.source:WeatherSource"})
    assert (plugin.folder / "acme_helper.py").read_text() == "FORECAST = 'rain'\n"
    assert not (plugin.folder / "acme").exists()
    assert "acme_weather" not in sys.modules
    inode = (plugin.folder / "acme_helper.py").stat().st_ino
    assert scan(str(tmp_path / "plugins")).plugins == [plugin]
    assert (plugin.folder / "acme_helper.py").stat().st_ino == inode
    path.unlink()
    wheel(tmp_path / "plugins", more={"acme_weather/new.py": ""})
    (changed,) = scan(str(tmp_path / "plugins")).plugins
    assert changed.folder != plugin.folder
    names = {p.name for p in cache.iterdir() if not p.name.startswith("java-")}
    assert names == {plugin.folder.name, changed.folder.name}


def test_names_and_versions(tmp_path: Path) -> None:
    for version in ("1.9.0", "1.10.0", "1.10.0rc1"):
        wheel(tmp_path / "plugins", version)
    catalog = scan(str(tmp_path / "plugins"))
    assert len(catalog.plugins) == 3
    for name in (FULL, "WeatherSourceConnector", "WeatherSource", f" {FULL} "):
        actual_catalog = catalog.find(name)
        assert actual_catalog is not None
        assert (actual_catalog[0].version, actual_catalog[1]) == ("1.10.0", FULL)
    assert catalog.find("Weather") is None
    assert scan("").plugins == []


def test_folders(tmp_path: Path) -> None:
    root = tmp_path / "plugins"
    installed = root / "installed"
    info = installed / "acme_weather-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA.format(version="2.0"))
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    together = root / "together"
    wheel(together, "3.0")
    wheel(together, "1.0", name="needed", entry_points="", more={"needed.py": "N = 1\n"})
    (root / "empty").mkdir()
    catalog = scan(f"{root},{root}")
    assert described(catalog) == ["acme-weather 2.0", "acme-weather 3.0"]
    assert catalog.plugins[0].folder == installed
    assert (catalog.plugins[1].folder / "needed.py").exists()
    assert described(scan(str(installed))) == ["acme-weather 2.0"]


def test_what_is_broken_is_told_and_the_others_load(tmp_path: Path) -> None:
    root = tmp_path / "plugins"
    wheel(root, "1.0")
    wheel(root, "2.0", entry_points="[keelman.connectors]\ncom.acme.X = not an entry\n")
    wheel(root, "3.0", more={"acme_weather-3.0.dist-info/METADATA": "Name: acme-weather\n"})
    (root / "torn.whl").write_bytes(wheel(tmp_path / "other").read_bytes()[:-40])
    (root / "text.whl").write_text("hello")
    (root / "innocent-1-py3-none-any.whl").write_bytes(
        wheel(tmp_path / "no", entry_points="[x]\ny = z:Z\n").read_bytes()
    )
    catalog = scan(f"{root},{tmp_path / 'nowhere'}")
    assert described(catalog) == ["acme-weather 1.0"]
    messages = {b.path.name: b.message for b in catalog.broken}
    assert set(messages) == {
        "acme_weather-2.0-py3-none-any.whl",
        "acme_weather-3.0-py3-none-any.whl",
        "torn.whl",
        "text.whl",
        "nowhere",
    }
    assert "com.acme.X = not an entry: expected module:Class" in messages["acme_weather-2.0-py3-none-any.whl"]
    assert "without Name or Version" in messages["acme_weather-3.0-py3-none-any.whl"]
    assert "text.whl: not a wheel that can be used" in messages["text.whl"]
    assert "no such folder" in messages["nowhere"]


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py", "a\\..\\evil.py", "c:evil.py"])
def test_a_wheel_that_would_write_elsewhere(tmp_path: Path, cache: Path, name: str) -> None:
    path = wheel(tmp_path, more={name: "evil"})
    with pytest.raises(InvalidArgument, match="leads elsewhere"):
        unpacked([path])
    assert list(cache.iterdir()) == []
    assert not list(tmp_path.rglob("evil*"))


def test_a_wheel_with_a_link(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("acme_weather/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InvalidArgument, match="neither a file nor a folder"):
        unpacked([path])


def test_a_wheel_over_the_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, more={"big": "0" * 100_000})
    monkeypatch.setattr(wheels, "MAX_BYTES", 50_000)
    with pytest.raises(InvalidArgument, match="more than"):
        unpacked([path])
    monkeypatch.setattr(wheels, "MAX_BYTES", 1 << 30)
    monkeypatch.setattr(wheels, "MAX_FILES", 3)
    with pytest.raises(InvalidArgument, match="more than 3 files"):
        unpacked([path])


def test_two_at_once_unpack_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path)
    real = wheels._unpack

    def overtaken(single_path: Path, folder: Path) -> None:
        monkeypatch.setattr(wheels, "_unpack", real)
        unpacked([path])
        real(single_path, folder)

    monkeypatch.setattr(wheels, "_unpack", overtaken)
    folder = unpacked([path])
    assert (folder / "acme_weather" / "source.py").exists()
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_folder_without_connectors_cannot_be_used(tmp_path: Path) -> None:
    before = list(sys.path)
    with pytest.raises(InvalidArgument, match="no connectors"):
        plugins.use(tmp_path)
    assert sys.path == before
    with pytest.raises(Exception, match=r"plugin p 1: X \(nowhere.at.all:X\) cannot be imported: ModuleNotFoundError"):
        plugins.load(InstalledPlugin("p", "1", tmp_path, {"X": "nowhere.at.all:X"}), "X")
    with pytest.raises(Exception, match=r"is no keelman.connect.plugin.Connector"):
        plugins.load(InstalledPlugin("p", "1", tmp_path, {"X": "json:JSONDecoder"}), "X")
    with pytest.raises(Exception, match=r"lacks .*names.*config_def"):
        plugins.load(InstalledPlugin("p", "1", tmp_path, {"X": "keelman.connect.plugin:Connector"}), "X")


INCOMPLETE = """
from keelman.connect.plugin import Connector, Direction

class Sink(Connector):
    names, version, direction, runs_on = ("com.acme.Other",), "1", Direction.SINK, "anywhere"

    @classmethod
    def config_def(cls): ...

    @classmethod
    def task_configs(cls, config, max_tasks): ...

    @classmethod
    def supports_exactly_once(cls, config): ...

class Source(Sink):
    direction = Direction.SOURCE

class DataSink(Sink):
    @classmethod
    def data_sink(cls, config): ...

class Unknown(Sink):
    direction = "moon"
"""


def test_a_connector_that_cannot_copy_is_told_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_incomplete.py").write_text(INCOMPLETE)
    monkeypatch.syspath_prepend(tmp_path)
    classes = {f"com.acme.{name}": f"acme_incomplete:{name}" for name in ("Sink", "Source", "DataSink", "Unknown")}
    plugin = InstalledPlugin("acme", "1.0", tmp_path, classes)
    for name, text in {
        "Sink": "lacks open_writer or open_task_writer or data_sink, without which a sink cannot copy",
        "Source": "lacks open_reader, without which a source cannot copy",
    }.items():
        with pytest.raises(PluginFault) as caught:
            plugins.load(plugin, f"com.acme.{name}")
        assert str(caught.value) == f"plugin acme 1.0: com.acme.{name} (acme_incomplete:{name}) {text}"
    assert plugins.load(plugin, "com.acme.DataSink").direction is Direction.SINK
    assert plugins.load(plugin, "com.acme.Unknown").version == "1"  # its version is judged with the rest


def test_an_import_that_fails_names_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_torn").mkdir()
    (tmp_path / "acme_torn" / "__init__.py").write_text("")
    (tmp_path / "acme_torn" / "source.py").write_text("import os\n\nfrom acme_torn import inner\n")
    (tmp_path / "acme_torn" / "inner.py").write_text("\nimport no_such_module\n")
    (tmp_path / "acme_torn" / "syntax.py").write_text("\n\nclass\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugin = InstalledPlugin("acme", "1.0", tmp_path, {"A": "acme_torn.source:A", "B": "acme_torn.syntax:B"})
    with pytest.raises(PluginFault) as caught:
        plugins.load(plugin, "A")
    assert caught.value.why == (
        "cannot be imported: ModuleNotFoundError: No module named 'no_such_module' (acme_torn/inner.py, line 2)"
    )
    with pytest.raises(PluginFault, match=r"cannot be imported: SyntaxError: invalid syntax \(syntax.py, line 3\)$"):
        plugins.load(plugin, "B")
