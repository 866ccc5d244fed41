"""The process of a plugin: its end with its worker, and its log."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.connectors.file.source import FileStreamSource
from keelman.connectors.java.logs import one_line
from keelman.connectors.plugins import host
from keelman.connectors.plugins.plugin_path import scan
from keelman.connectors.plugins.process import PluginProcess
from keelman.engine.dead_letters import replay
from keelman.runtime.logs import logging
from support.eventually import eventually
from support.plugins.plugin_wheel import wheel


def test_a_host_that_nobody_hears_ends_without_a_word() -> None:
    """Its standard error is the worker's log: a worker that ends while its plugins start is no fault."""
    hears, says = os.pipe()
    os.close(hears)
    command = [sys.executable, "-m", "keelman.connectors.plugins.host", "", str(1 << 30)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=says, stderr=subprocess.PIPE, check=False)
    os.close(says)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_replay_takes_the_steps_of_the_class_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "replay", lambda request, steps: {"request": request, "steps": steps})
    actual_replay = host.replay(FileStreamSource, {"name": "in"})
    assert actual_replay == {"request": {"name": "in"}, "steps": FileStreamSource.open_steps}


PLUGIN = """
from keelman.connect.config.definition import ConfigDef
from keelman.connect.plugin import Connector, Direction
from keelman.runtime.logs.logging import get_logger


class Talks(Connector):
    names = ("com.acme.TalksSourceConnector",)
    version = "1"
    direction = Direction.SOURCE
    runs_on = "anywhere"

    @classmethod
    def config_def(cls):
        return ConfigDef()

    @classmethod
    def supports_exactly_once(cls, config):
        return True

    @classmethod
    def open_reader(cls, config, offset):
        raise NotImplementedError

    @classmethod
    def task_configs(cls, config, max_tasks):
        get_logger().info("asked")
        return [dict(config)]
"""


async def test_what_is_logged_in_a_host_has_the_form_of_its_workers_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "_configured", {"json": True, "level": "info"})
    entries = "[keelman.connectors]\ncom.acme.TalksSourceConnector = acme_weather.source:Talks\n"
    wheel(tmp_path, entry_points=entries, more={"acme_weather/source.py": PLUGIN})
    (plugin,) = scan(str(tmp_path)).plugins
    process = PluginProcess(plugin.folder, memory_bytes=1 << 30)
    await process.start()
    request = {"id": 1, "method": "task_configs", "class": "com.acme.TalksSourceConnector", "max_tasks": 1}
    answer = await process.ask({**request, "config": {"name": "in"}})
    assert answer == {"id": 1, "result": [{"name": "in"}]}
    printed: list[str] = []

    def line() -> str | None:  # which passes through the output's rate limit, with a delay
        printed.append(capfd.readouterr().err)
        return next((line for line in "".join(printed).splitlines() if "asked" in line and line.endswith("}")), None)

    tree = json.loads(await eventually(line, seconds=20))
    await process.close()
    assert (tree["event"], tree["connector"], tree["service"]) == ("asked", "in", "plugin-host")


def test_a_message_of_several_lines_is_one_in_the_log() -> None:
    assert one_line("JsonConverterConfig values: \n\tconverter.type = key\n\tschema.content = null\n") == (
        "JsonConverterConfig values: converter.type = key; schema.content = null"
    )
    assert one_line("Starting\n") == "Starting"
    assert one_line("") == ""
