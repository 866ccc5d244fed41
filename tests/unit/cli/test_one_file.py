"""A connector from one Python file: the classes found in it, its errors, and the plugin that is built from it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from keelman.cli.commands.connectors.connector import status_lines
from keelman.cli.one_file import FileClass, ImportFault, OneFile, choose_class
from keelman.connectors.plugins.plugin_path import scan
from keelman.model.errors import InvalidArgument

SOURCE = """
import beside
from keelman.connect.plugin import Connector, Direction

print("printed by the import")

class Base(Connector):
    version = "1.0"
    runs_on = "anywhere"
    @classmethod
    def config_def(cls): ...
    @classmethod
    def task_configs(cls, config, max_tasks): return [{}]
    @classmethod
    def supports_exactly_once(cls, config): return False

class One(Base):
    names = ("com.acme.OneConnector",)
    direction = Direction.SOURCE
"""
ANOTHER = """
class Two(One):
    names = ("com.acme.TwoConnector",)
"""


def written(folder: Path, text: str) -> OneFile:
    (folder / "beside.py").write_text("def broken(): return 1 / 0\n")
    (folder / "ticks.py").write_text(text)
    return OneFile.of(folder / "ticks.py")


async def test_the_classes_of_a_file_are_its_own_that_are_whole(tmp_path: Path) -> None:
    assert await written(tmp_path, SOURCE).classes() == [FileClass("One", "com.acme.OneConnector")]
    assert "ticks" not in sys.modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nboom()\n", "ticks.py:2: NameError: name 'boom' is not defined"),
        ("x = (\n", "ticks.py:1: SyntaxError: '(' was never closed"),
        ("import beside\nbeside.broken()\n", "beside.py:1: ZeroDivisionError: division by zero"),
        ("import nosuch_module\n", "ticks.py:1: ModuleNotFoundError: No module named 'nosuch_module'"),
        ("import sys\nsys.exit(3)\n", "ticks.py:2: SystemExit: 3"),
        ("import os\nos._exit(3)\n", "ticks.py: its import ended the process (3)"),
        ("x = 1\n", "ticks.py: has no subclass of keelman.connect.plugin.Connector"),
        (SOURCE.replace("    names", "    nams"), "ticks.py:17: class One lacks names"),
    ],
)
async def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFault) as raised:
        await written(tmp_path, text).classes()
    assert raised.value.message == message


async def test_a_worker_finds_the_classes_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "written").mkdir()
    file = written(tmp_path / "written", SOURCE + ANOTHER)
    classes = await file.classes()
    for _ in range(2):  # the second time over the files of the first
        file.lay_out(tmp_path / "plugins" / "ticks", classes)
    (plugin,) = scan(str(tmp_path / "plugins")).plugins
    assert dict(plugin.classes) == {"com.acme.OneConnector": "ticks:One", "com.acme.TwoConnector": "ticks:Two"}
    assert (plugin.folder / "beside.py").read_text() == (tmp_path / "written" / "beside.py").read_text()


def test_one_of_several_classes_is_named() -> None:
    classes = [FileClass("One", "com.acme.OneConnector"), FileClass("Two", "com.acme.TwoConnector")]
    for word in ("Two", "TwoConnector", "com.acme.TwoConnector"):
        assert choose_class(classes, word) is classes[1]
    assert choose_class(classes[:1], "") is classes[0]
    for word in ("", "Three"):
        with pytest.raises(InvalidArgument, match=r"--class: .*One, Two"):
            choose_class(classes, word)


@pytest.mark.parametrize("name", ["nosuch.py", "ticks.txt", "my-ticks.py", "json.py"])
def test_what_cannot_be_imported_by_its_name_is_refused(name: str, tmp_path: Path) -> None:
    if name != "nosuch.py":
        (tmp_path / name).touch()
    with pytest.raises(InvalidArgument, match=name):
        OneFile.of(tmp_path / name)


def test_a_change_of_any_module_beside_it_is_seen(tmp_path: Path) -> None:
    file = written(tmp_path, SOURCE)
    before = file.stamps()
    assert file.stamps() == before
    (tmp_path / "another.py").touch()
    assert file.stamps() != before


def test_a_status_is_told_in_lines() -> None:
    status = {
        "connector": {"state": "RUNNING"},
        "tasks": [
            {"id": 0, "state": "FAILED", "trace": "x: why\n\tat f"},
            {"id": 1, "state": "UNASSIGNED", "trace": "a.ConnectException: waits for a copy run"},
            {"id": 2, "state": "UNASSIGNED"},
        ],
    }
    assert status_lines(status) == [
        "connector RUNNING",
        "task 0 FAILED: x: why\n    at f",
        "task 1 UNASSIGNED: waits for a copy run",
    ]
