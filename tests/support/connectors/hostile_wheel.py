"""A third party's connectors that misbehave, in the method and the way that their configuration names."""

from pathlib import Path

from support.plugins.plugin_wheel import METADATA, wheel

SOURCE, SINK = "com.acme.HostileSourceConnector", "com.acme.HostileSinkConnector"
WAYS = ("block", "raise", "exit", "spin", "allocate", "flood")
MODULE = """
import os
import re
import time

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.plugin import Connector, Direction, Reader, Writer
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import STRING

CONFIG_DEF = "FOLDER/config_def"
PARTITION = {"acme": "hostile"}


def misbehave(way):
    if way == "block":
        time.sleep(3600)
    elif way == "raise":
        raise RuntimeError("as ordered")
    elif way == "exit":
        os._exit(3)
    elif way == "spin":  # in C, with the interpreter's lock held
        re.match("(a+)+$", "a" * 60 + "b")
    elif way == "allocate":
        b"x" * (10 << 30)
    elif way == "flood":
        while True:
            os.write(1, b"flood " * 10000)


def at(config, method):
    wanted, _, way = config.get("mood", "").partition(":")
    if wanted == method:
        misbehave(way)


class Hostile(Connector):
    version = "6.6"
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        if os.path.exists(CONFIG_DEF):
            misbehave(open(CONFIG_DEF).read())
        text, high = Type.STRING, Importance.HIGH
        return ConfigDef(
            ConfigKey("mood", text, "", high, "Where and how.", lambda _, mood: at({"mood": mood or ""}, "validate")),
            ConfigKey("topic", text, "", high, "Where to."),
        )

    @classmethod
    def task_configs(cls, config, max_tasks):
        at(config, "task_configs")
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config):
        at(config, "supports_exactly_once")
        return cls.direction is Direction.SOURCE

    @classmethod
    def tend(cls, config):
        at(config, "tend")

    @classmethod
    def refresh_seconds(cls, config):
        at(config, "refresh_seconds")


class HostileSource(Hostile):
    names = ("com.acme.HostileSourceConnector",)
    direction = Direction.SOURCE

    @classmethod
    def open_reader(cls, config, offset):
        at(config, "open_reader")
        return HostileReader(config)


class HostileReader(Reader):
    def __init__(self, config):
        self.config = config

    def partitions(self):
        return ()

    def read(self):
        at(self.config, "read")
        time.sleep(0.05)
        return None

    def close(self):
        at(self.config, "close")


class HostileSink(Hostile):
    names = ("com.acme.HostileSinkConnector",)
    direction = Direction.SINK

    @classmethod
    def open_writer(cls, config, connector, *, exactly_once):
        return HostileWriter(config)


class HostileWriter(Writer):
    def __init__(self, config):
        self.config = config

    def write(self, batch):
        at(self.config, "write")

    def commit(self, offsets, *, clean):
        at(self.config, "commit")
"""


def hostile_wheel(folder: Path, control: Path) -> Path:
    """Writes the wheel into a folder of plugin.path. A file `config_def` in `control` sets that method's behaviour."""
    return wheel(
        folder,
        "6.6",
        name="acme_hostile",
        entry_points=(
            "[keelman.connectors]\n"
            f"{SOURCE} = acme_hostile.source:HostileSource\n"
            f"{SINK} = acme_hostile.source:HostileSink\n"
        ),
        more={
            "acme_hostile/__init__.py": "",
            "acme_hostile/source.py": MODULE.replace("FOLDER", str(control)),
            "acme_hostile-6.6.dist-info/METADATA": METADATA.format(version="6.6").replace("weather", "hostile"),
        },
    )
