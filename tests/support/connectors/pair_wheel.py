"""A third party's source of two tasks, made as a wheel: each notes its starts, and fails when a file orders it."""

from __future__ import annotations

from pathlib import Path

from support.plugins.plugin_wheel import METADATA, wheel

CLASS = "com.acme.PairSourceConnector"
MODULE = """
import time
from pathlib import Path

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from keelman.connect.plugin import Connector, Direction, Reader


class PairSource(Connector):
    names = ("com.acme.PairSourceConnector",)
    version = "1.0"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        return ConfigDef(ConfigKey("folder", Type.STRING, REQUIRED, Importance.HIGH, "Where its files are."))

    @classmethod
    def task_configs(cls, config, max_tasks):
        return [{**config, "number": str(number)} for number in range(min(2, max_tasks))]

    @classmethod
    def supports_exactly_once(cls, config):
        return True

    @classmethod
    def open_reader(cls, config, offset):
        return PairReader(Path(config["folder"]), config["number"])


class PairReader(Reader):
    def __init__(self, folder, number):
        self.fails = folder / f"fails-{number}"
        self.partition = {"pair": number}
        with (folder / f"starts-{number}").open("a") as file:
            file.write("started\\n")

    def partitions(self):
        return (self.partition,)

    def read(self):
        time.sleep(0.02)
        if self.fails.exists():
            raise RuntimeError("as the file has it")
        return None
"""


def pair_wheel(folder: Path) -> Path:
    """Writes the wheel into a folder."""
    name = "acme_pair"
    return wheel(
        folder,
        "1.0",
        name=name,
        entry_points=f"[keelman.connectors]\n{CLASS} = {name}.source:PairSource\n",
        more={
            f"{name}/__init__.py": "",
            f"{name}/source.py": MODULE,
            f"{name}-1.0.dist-info/METADATA": METADATA.format(version="1.0").replace("acme-weather", "acme-pair"),
        },
    )


def starts(folder: Path, number: int) -> int:
    """The number of times that a task was started."""
    file = folder / f"starts-{number}"
    return len(file.read_text().splitlines()) if file.exists() else 0
