"""Third-party code in processes of its own: a plugin host, which may hang or die, and a process that uses a plugin."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.connect.config.definition import REQUIRED
from keelman.connect.config.info import ConfigError, problems
from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.plugin import Direction
from keelman.connectors.plugin_client import Description, PluginHost
from keelman.connectors.plugins import scan
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.testing.eventually import eventually
from keelman.testing.plugin_wheel import wheel

FULL = "com.acme.WeatherSourceConnector"
WORKER = {f"{role}.converter": "StringConverter" for role in ("key", "value")}


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PluginHost]:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    wheel(tmp_path / "plugins")
    (plugin,) = scan(str(tmp_path / "plugins")).plugins
    async with PluginHost(plugin, answer_seconds=60) as made:
        yield made
        pid = made.pid
    if pid is not None:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_what_a_worker_asks(host: PluginHost, tmp_path: Path) -> None:
    assert await host.describe("WeatherSource") == Description(
        (FULL, "WeatherSourceConnector", "WeatherSource"), "1.4.0", Direction.SOURCE, "anywhere"
    )
    assert await host.supports_exactly_once(FULL, {"city": "Oslo"})
    assert not await host.supports_exactly_once(FULL, {"city": "Rome"})
    keys = (await host.config_def(FULL)).keys
    assert [(k.name, k.default) for k in keys.values()] == [("city", REQUIRED), ("days", 3)]
    config = {"name": "w", "connector.class": FULL, "days": "0"}
    assert problems(await host.validate(FULL, config, WORKER), config) == [
        ConfigError("city", None, 'Missing required configuration "city" which has no default value.'),
        ConfigError("days", "0", "Invalid value 0 for configuration days: Value must be at least 1"),
    ]
    tasks = await host.task_configs(FULL, {"city": "Oslo"}, 2)
    assert [(t["city"], t["n"]) for t in tasks] == [("Oslo", "0"), ("Oslo", "1")]
    assert await host.refresh_seconds(FULL, {}) == 7.5
    await host.tend(FULL, {"tended": str(tmp_path / "tended")})
    assert (tmp_path / "tended").read_text() == "tended\n"
    assert tasks[0]["pid"] == str(host.pid) != str(os.getpid())
    assert "acme_weather" not in sys.modules


async def test_errors_keep_their_kind_and_name_plugin_class_and_method(host: PluginHost) -> None:
    where = rf"plugin acme-weather 1.4.0, {FULL}, task_configs: "
    with pytest.raises(ConnectError, match=where + "KeyError: 'whim'"):
        await host.task_configs(FULL, {"do": "raise"}, 1)
    with pytest.raises(RetriableConnectError, match=where + "the sky is away"):
        await host.task_configs(FULL, {"do": "retriable"}, 1)
    with pytest.raises(ConfigValueError, match=r"^Invalid value Atlantis for configuration city: no such place") as e:
        await host.task_configs(FULL, {"do": "value"}, 1)
    assert (e.value.key, e.value.value) == ("city", "Atlantis")
    with pytest.raises(ConnectError, match=where + "a task's configuration is of texts only"):
        await host.task_configs(FULL, {"do": "number"}, 1)
    with pytest.raises(ConnectError, match="Failed to find any class"):
        await host.describe("com.acme.Unknown")


async def test_a_host_that_dies_is_started_again(host: PluginHost) -> None:
    with pytest.raises(Unavailable, match=rf"plugin acme-weather 1.4.0, {FULL}, task_configs: its process died"):
        await host.task_configs(FULL, {"do": "die"}, 1)
    first = (await host.task_configs(FULL, {}, 1))[0]["pid"]
    os.kill(int(first), signal.SIGKILL)
    await eventually(lambda: not Path(f"/proc/{first}").exists(), what="the end of the host")
    assert (await host.task_configs(FULL, {}, 1))[0]["pid"] != first


async def test_a_host_that_hangs_is_killed_and_started_again(host: PluginHost) -> None:
    first = (await host.task_configs(FULL, {}, 1))[0]["pid"]
    host._answer_seconds = 0.5
    with pytest.raises(DeadlineExceeded, match=rf"{FULL}, task_configs: no answer in 0.5 s; its process was killed"):
        await host.task_configs(FULL, {"do": "hang"}, 1)
    assert not Path(f"/proc/{first}").exists()
    host._answer_seconds = 60
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await host.task_configs(FULL, {"do": "hang"}, 1)
    assert (await host.task_configs(FULL, {}, 1))[0]["n"] == "0"  # and not the late answer of the question before


async def test_a_process_that_uses_a_plugin_finds_its_connectors(host: PluginHost, tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from keelman.connect.plugin import load_connector\n"
        "from keelman.connectors import plugins\n"
        "plugins.use(sys.argv[1])\n"
        "kind = load_connector('WeatherSource')\n"
        "batch = kind.open_reader({}, lambda _: None).read()\n"
        "ours = load_connector('FileStreamSink').names[1]\n"
        "print(json.dumps([kind.names[0], batch.values.values, sys.path[0], ours]))\n"
    )
    command = [sys.executable, "-c", program, str(host.plugin.folder)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60, check=True, cwd=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == [
        FULL,
        ["rain"],
        str(host.plugin.folder),
        "FileStreamSinkConnector",
    ]
