"""Java plugins below a plugin.path: the plugins that exist, and the cached part of their description."""

from dataclasses import replace
from pathlib import Path

import pytest

from keelman.connectors.plugins import java_folders
from keelman.connectors.plugins.plugin_path import scan
from keelman.workers.plugins import inspection
from support.plugins.jar_files import SINK, SOURCE, TRANSFORMATION, class_bytes, jar_bytes

SEA, LAKE = "com.acme.SeaSourceConnector", "com.acme.LakeSinkConnector"
OURS = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))


def jar(path: Path, *classes: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jar_bytes(classes))
    return path


def sea(path: Path) -> Path:
    return jar(path, class_bytes(SEA.replace(".", "/"), SOURCE))


def test_each_folder_and_each_jar_is_a_plugin_with_its_connectors(tmp_path: Path) -> None:
    path = tmp_path / "plugins"
    sea(path / "waters" / "lib" / "sea.jar")
    jar(path / "waters" / "lake.jar", class_bytes(LAKE.replace(".", "/"), SINK))
    jar(path / "alone-1.2.jar", class_bytes("com/acme/PondSink", SINK))
    jar(path / "helpers" / "none.jar", class_bytes("com/acme/Helper"))
    classes = {plugin.name: dict(plugin.classes) for plugin in scan(str(path)).plugins}
    assert classes == {"waters": {SEA: "source", LAKE: "sink"}, "alone": {"com.acme.PondSink": "sink"}}


def test_what_was_found_is_kept_until_a_jar_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "waters"
    file = sea(folder / "sea.jar")
    first = java_folders.described(folder)
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(inspection, "inspect_folder", None)
        assert java_folders.described(folder) == first == java_folders.read(first.folder)
    file.write_bytes(jar_bytes([class_bytes(LAKE.replace(".", "/"), SINK)]))
    second = java_folders.described(folder)
    assert second is not None
    assert (second.folder != first.folder, second.type_of(LAKE), second.type_of(SEA)) == (True, "sink", "")


def test_libraries_stand_behind_the_plugins_own_jars(tmp_path: Path) -> None:
    own, shared = sea(tmp_path / "waters" / "sea.jar"), jar(tmp_path / "shared" / "driver.jar")
    folder = java_folders.described(tmp_path / "waters", [tmp_path / "shared"])
    assert folder is not None
    assert (folder.jars, folder.libraries) == ((own,), (shared,))
    assert folder != java_folders.described(tmp_path / "waters")


def test_a_jar_that_is_none_is_broken_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "plugins"
    sea(path / "sea.jar")
    (path / "torn.jar").write_bytes(b"PK\x03\x04 and no more")
    catalog = scan(str(path))
    assert [dict(plugin.classes) for plugin in catalog.plugins] == [{SEA: "source"}]
    assert [folder.path.name for folder in catalog.broken] == ["torn.jar"]


def test_a_class_that_keelman_has_too_is_chosen_by_a_name_of_its_own(tmp_path: Path) -> None:
    jar(tmp_path / "plugins" / "file.jar", class_bytes(OURS.replace(".", "/"), SOURCE))
    catalog = scan(str(tmp_path / "plugins"))
    assert catalog.find(OURS) is None
    assert catalog.find("FileStreamSource") is None
    actual_catalog = catalog.find(f"java:{OURS}")
    assert actual_catalog is not None
    assert actual_catalog[1] == f"java:{OURS}"


def test_connectors_can_name_the_steps_of_other_folders(tmp_path: Path) -> None:
    path = tmp_path / "plugins"
    sea(path / "waters" / "sea.jar")
    jar(path / "steps" / "steps-2.jar", class_bytes("com/acme/Stamp", interfaces=[TRANSFORMATION]))
    plugins = {plugin.name: plugin for plugin in scan(str(path)).plugins}
    waters, steps = plugins["waters"], plugins["steps"]
    assert waters.java is not None
    assert (waters.java.others, dict(steps.classes)) == ((steps.folder,), {})
    assert java_folders.read(waters.folder) == waters.java
    answers = [{"class": SEA, "type": "source", "version": "8", "problem": ""}]
    problem = java_folders.keep_answers(waters.java, answers)
    assert java_folders.read(waters.folder) == problem
    assert scan(str(path)).find(SEA) == (replace(waters, java=problem), SEA)
