"""A third party's connectors, built as a wheel: numbers in, exactly once, and numbers out; both can misbehave."""

from pathlib import Path

from support.plugins.plugin_wheel import METADATA, wheel

CLASS, SINK_CLASS = "com.acme.NumbersSourceConnector", "com.acme.NumbersSinkConnector"
MODULE = """
import os
import subprocess
import time
from pathlib import Path

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least
from keelman.connect.errors import ConfigValueError
from keelman.connect.plugin import Connector, Direction, Reader, Writer
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import STRING

PARTITION = {"acme": "numbers"}


def in_mood(mood):
    if mood == "hang":
        time.sleep(3600)
    if mood == "die":
        os._exit(3)


class NumbersSource(Connector):
    names = ("com.acme.NumbersSourceConnector",)
    version = "7.1"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        text, high = Type.STRING, Importance.HIGH
        return ConfigDef(
            ConfigKey("folder", text, REQUIRED, high, "Where the file `count` says how many numbers there are."),
            ConfigKey("topic", text, REQUIRED, high, "Where to."),
            ConfigKey("batch.size", Type.INT, 100, high, "Numbers a read.", at_least(1)),
            ConfigKey("checked", text, "", high, "What happens when this is checked.", lambda _, mood: in_mood(mood)),
        )

    @classmethod
    def task_configs(cls, config, max_tasks):
        in_mood(config.get("configured"))
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config):
        return True

    @classmethod
    def open_reader(cls, config, offset):
        return NumbersReader(config, offset(PARTITION))


class NumbersReader(Reader):
    def __init__(self, config, offset):
        self.config, self.next = config, 0 if offset is None else offset["next"]
        self.folder = Path(config["folder"])
        if "leaves" in config:
            left = subprocess.Popen(["sleep", "600"], start_new_session=True)
            Path(config["leaves"]).write_text(str(left.pid))
        (self.folder / "pid").write_text(str(os.getpid()))

    def partitions(self):
        return (PARTITION,)

    def read(self):
        time.sleep(0.02)
        end = min(self.next + int(self.config.get("batch.size", 100)), int((self.folder / "count").read_text()))
        if end <= self.next:
            return None
        numbers, self.next = [str(n) for n in range(self.next, end)], end
        return SourceBatch(self.config["topic"], Column(numbers, STRING), offsets=[(PARTITION, {"next": end})])


class NumbersSink(Connector):
    names = ("com.acme.NumbersSinkConnector",)
    version = "7.1"
    direction = Direction.SINK
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        return ConfigDef(ConfigKey("folder", Type.STRING, REQUIRED, Importance.HIGH, "Where the file `out` goes."))

    @classmethod
    def task_configs(cls, config, max_tasks):
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config):
        in_mood(config.get("promised"))
        return False

    @classmethod
    def open_writer(cls, config, connector, *, exactly_once):
        return NumbersWriter(config)


class NumbersWriter(Writer):
    def __init__(self, config):
        self.file = (Path(config["folder"]) / "out").open("a")

    def write(self, batch):
        self.file.writelines(f"{number}\\n" for number in batch.values.texts().values)

    def commit(self, offsets, *, clean):
        self.file.flush()
"""


def numbers_wheel(
    folder: Path,
    distribution: str = "acme_numbers",
    source: str = CLASS,
    sink: str = SINK_CLASS,
    *,
    version: str = "7.1",
    head: str = "",
) -> Path:
    """Writes the wheel into a folder of plugin.path; the two classes have these names. `head` is run first."""
    info = f"{distribution}-{version}.dist-info"
    metadata = METADATA.format(version=version).replace("acme-weather", distribution.replace("_", "-"))
    code = MODULE.replace('version = "7.1"', f'version = "{version}"')
    return wheel(
        folder,
        version,
        name=distribution,
        entry_points=(
            "[keelman.connectors]\n"
            f"{source} = {distribution}.source:NumbersSource\n"
            f"{sink} = {distribution}.source:NumbersSink\n"
        ),
        more={
            f"{distribution}/__init__.py": "",
            f"{distribution}/source.py": head + code,
            f"{info}/METADATA": metadata,
        },
    )
