"""Builds a small third-party plugin as a wheel."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

FULL = "com.acme.WeatherSourceConnector"
MODULE = """
import os
import time

import acme_helper
from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, at_least
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import STRING

print("imported")  # to a host's output, were it not turned away


class WeatherSource(Connector):
    names = ("com.acme.WeatherSourceConnector", "WeatherSourceConnector", "WeatherSource")
    version = "VERSION"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        return ConfigDef(
            ConfigKey("city", Type.STRING, REQUIRED, Importance.HIGH, "Where."),
            ConfigKey("days", Type.INT, 3, Importance.LOW, "How many.", at_least(1)),
        )

    @classmethod
    def task_configs(cls, config, max_tasks):
        os.write(1, b"noise\\\\n")
        kind = config.get("do", "")
        exec(config.get("run", ""), {"config": config})
        if kind == "hang":
            time.sleep(600)
        if kind == "die":
            os._exit(3)
        if kind == "raise":
            raise KeyError("whim")
        if kind == "retriable":
            raise RetriableConnectError("the sky is away")
        if kind == "value":
            raise ConfigValueError("city", "Atlantis", "no such place")
        if kind == "number":
            return [{"n": 1}]
        return [{**config, "n": str(n), "pid": str(os.getpid())} for n in range(max_tasks)]

    @classmethod
    def supports_exactly_once(cls, config):
        return config.get("city") == "Oslo"

    @classmethod
    def refresh_seconds(cls, config):
        return 7.5

    @classmethod
    def tend(cls, config):
        with open(config["tended"], "a") as file:
            file.write("tended\\\\n")

    @classmethod
    def tend_again(cls, config, tasks):
        return config.get("keeps") == str(len(tasks))

    @classmethod
    def alter_offsets(cls, config, offsets):
        for partition, offset in offsets:
            if partition == {"city": "Atlantis"} and offset is not None:
                raise ConnectError("no weather there")
        return config.get("city") == "Oslo"

    @classmethod
    def open_reader(cls, config, offset):
        return WeatherReader()


class WeatherReader(Reader):
    def partitions(self):
        return ()

    def read(self):
        return SourceBatch("weather", Column([acme_helper.FORECAST], STRING))


class NotOne:
    pass
"""
METADATA = "Metadata-Version: 2.1\nName: acme-weather\nVersion: {version}\n"
ENTRY_POINTS = "[keelman.connectors]\ncom.acme.WeatherSourceConnector = acme_weather.source:WeatherSource\n"


def wheel(
    folder: Path,
    version: str = "1.4.0",
    *,
    entry_points: str = ENTRY_POINTS,
    more: Mapping[str, str] | None = None,
    name: str = "acme_weather",
) -> Path:
    """Writes the wheel into a folder. `more` are further files by path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        "acme_weather/__init__.py": "",
        "acme_weather/source.py": MODULE.replace("VERSION", version).replace("\\\\", "\\"),
        f"{name}-{version}.data/purelib/acme_helper.py": "FORECAST = 'rain'\n",
        f"{name}-{version}.data/scripts/acme": "#!/bin/sh\n",
        f"{info}/METADATA": METADATA.format(version=version),
        f"{info}/entry_points.txt": entry_points,
        **(more or {}),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in files.items():
            if text is not None:
                archive.writestr(file, text)
    return path
