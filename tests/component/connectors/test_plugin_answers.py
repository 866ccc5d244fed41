"""The output of third-party code, of whatever kind and length, in a form that its worker can store and show."""

from pathlib import Path

import pytest

from keelman.connect.errors import ConnectError
from keelman.connectors.plugins.client import PluginHost
from keelman.model.errors import Unavailable
from support.connectors.plugin_hosts import weather_host
from support.plugins.plugin_wheel import FULL

pytestmark = pytest.mark.component
CLASS = "import acme_weather.source as s\nC = s.WeatherSource\n"


async def runs(host: PluginHost, code: str) -> None:
    await host.task_configs(FULL, {"run": code}, 1)


async def says(host: PluginHost, method: str, value: str) -> None:
    """Makes a method of the class return this from now on."""
    await runs(host, f"{CLASS}C.{method} = classmethod(lambda *_: {value})")


async def attribute(host: PluginHost, name: str, value: str) -> None:
    await runs(host, f"{CLASS}C.{name} = {value}")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise SystemExit('I leave')", "SystemExit: I leave"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt$"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 7})", "Mute: a Mute without a message"),
        ("raise ValueError('a \\ud800 half')", r"ValueError: a \? half"),
        ("raise ValueError('e' * 100_000)", r"ValueError: e{10000}\.\.\. \(100000 characters\)$"),
    ],
)
async def test_whatever_is_raised_is_told(host: PluginHost, code: str, text: str) -> None:
    first = (await host.task_configs(FULL, {}, 1))[0]["pid"]
    with pytest.raises(ConnectError, match=f"task_configs: {text}"):
        await runs(host, code)
    assert (await host.task_configs(FULL, {}, 1))[0]["pid"] == first


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "None",
            "what WeatherSource.task_configs returned is None; expected a list with a dict of texts for each task",
        ),
        ("iter(())", "what WeatherSource.task_configs returned is of type tuple_iterator; expected a list"),
        ("['abc']", r"what WeatherSource.task_configs returned is of type list: \['abc'\]; expected a list"),
        ("[{'half': '\\ud800'}]", "UnicodeEncodeError"),
    ],
)
async def test_tasks_are_dicts_of_texts(host: PluginHost, value: str, text: str) -> None:
    await says(host, "task_configs", value)
    with pytest.raises(ConnectError, match=text):
        await host.task_configs(FULL, {}, 1)


@pytest.mark.parametrize("value", ["0", "-1.0", "1e-9", "True", "'soon'", "float('nan')", "float('inf')"])
async def test_a_refresh_has_a_pause(host: PluginHost, value: str) -> None:
    await says(host, "refresh_seconds", value)
    with pytest.raises(
        ConnectError,
        match=r"what WeatherSource.refresh_seconds returned is of type .*; expected None, or seconds, 1 or more",
    ):
        await host.refresh_seconds(FULL, {})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("names", "7", "names is of type int: 7; expected a tuple of texts"),
        ("version", "None", "version is None; expected a text of at most 100 characters"),
        ("version", "'v' * 1000", "version is of type str: 'v{99}; expected"),
        ("direction", "'moon'", "direction is of type str: 'moon'; expected Direction.SOURCE or Direction.SINK"),
        ("runs_on", "12", 'runs_on is of type int: 12; expected "node" or "anywhere"'),
    ],
)
async def test_a_class_is_described_in_terms_that_mean_something(
    host: PluginHost, name: str, value: str, text: str
) -> None:
    await attribute(host, name, value)
    with pytest.raises(ConnectError, match=f"describe: {text}"):
        await host.describe(FULL)


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os; os._exit(3)", "its process died with exit code 3$"),
        ("import os; os.kill(os.getpid(), 11)", "its process died of SIGSEGV$"),
        ("import os; os.kill(os.getpid(), 9)", "its process died$"),
        ("import os; os.closerange(0, 64)", "its process died"),
    ],
)
async def test_of_what_a_process_died(host: PluginHost, code: str, how: str) -> None:
    with pytest.raises(Unavailable, match=how):
        await runs(host, code)


async def test_half_a_character_is_no_answer_whoever_writes_it(host: PluginHost) -> None:
    code = "import json, __main__ as host\n"
    code += "host.answered = lambda r: json.dumps({'id': r['id'], 'result': [{'half': chr(0xd800)}]})"
    await runs(host, code)
    with pytest.raises(Unavailable, match=r"its answer cannot be read: .*surrogates not allowed"):
        await host.task_configs(FULL, {}, 1)


async def test_what_leaves_at_its_import_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    async with weather_host(tmp_path, {"acme_weather/source.py": "raise SystemExit('no licence')\n"}) as host:
        with pytest.raises(
            ConnectError,
            match=r"^plugin acme-weather 1.4.0: .* cannot be imported: SystemExit: no licence \(.*source.py, line 1\)$",
        ):
            await host.describe(FULL)
