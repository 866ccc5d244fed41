"""Stand-ins for third-party classes in a worker's registry: each has a real plugin host behind it."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import CapturingLogger

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Direction
from keelman.connectors.registry import all_connectors, find_connector
from keelman.model.errors import NotFound
from keelman.worker import connector_facts
from keelman.worker.asking import third_party
from keelman.worker.asking.third_party import NOT_READY, ThirdParty, plugin_of, problems_of
from keelman.worker.rest.key_notes import KeyNotes
from support.eventually import eventually
from support.plugins.plugin_wheel import ENTRY_POINTS, MODULE, wheel

FULL, BROKEN = "com.acme.WeatherSourceConnector", "com.acme.BrokenConnector"
WORKER = {f"{role}.converter": "StringConverter" for role in ("key", "value")}


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))


async def test_a_third_partys_class_is_as_ours_are(tmp_path: Path) -> None:
    wheel(tmp_path / "plugins", "1.3.0")
    wheel(tmp_path / "plugins", entry_points=f"{ENTRY_POINTS}{BROKEN} = acme_weather.source:NotOne\n")
    answered = asyncio.Event()
    async with ThirdParty.open(str(tmp_path / "plugins"), answered.set):
        with pytest.raises(NotFound) as early:
            find_connector(FULL)
        assert early.value.reason == NOT_READY
        older = await asyncio.to_thread(find_connector, FULL, "[1.0,1.4.0)")  # a thread waits for it
        assert older.version == "1.3.0"
        kind = find_connector("WeatherSource")
        assert kind.names == (FULL, "WeatherSource", "WeatherSourceConnector")
        assert (kind.version, kind.direction, kind.runs_on) == ("1.4.0", Direction.SOURCE, "anywhere")
        assert kind in all_connectors()
        assert str(plugin_of(older)) == "acme-weather 1.3.0"
        expected = {"name": "w", "connector.class": FULL, "city": "Oslo", "connector.plugin.version": "1.3.0"}
        assert await asyncio.to_thread(problems_of, expected, WORKER) == []
        (problem, _) = await asyncio.to_thread(problems_of, {**expected, "connector.plugin.version": "2"}, WORKER)
        assert problem.message.endswith("the version range [2,2], available versions: [1.4.0, 1.3.0]")
        assert connector_facts.is_source({"connector.class": FULL})
        assert (str(plugin_of(kind)), plugin_of(find_connector("FileStreamSink"))) == ("acme-weather 1.4.0", None)
        with pytest.raises(NotFound, match=r"is no keelman\.connect\.plugin\.Connector") as broken:
            await asyncio.to_thread(find_connector, BROKEN)
        assert broken.value.reason == "PLUGIN_BROKEN"
        with pytest.raises(NotFound, match=rf"available connectors are: .*PluginDesc\{{klass=class {FULL}"):
            find_connector("com.acme.Unknown")

        with pytest.raises(RuntimeError, match="never in the event loop"):
            kind.task_configs({}, 1)
        (task,) = await asyncio.to_thread(kind.task_configs, {"city": "Oslo"}, 1)
        assert task["city"] == "Oslo"
        assert await KeyNotes(WORKER).of({**expected, "citty": "Oslo", "anything": "x", "errors.tolerence": "all"}) == [
            "citty: unknown, did you mean city?",
            "errors.tolerence: unknown, did you mean errors.tolerance?",
        ]
        (error,) = await asyncio.to_thread(problems_of, {"name": "w", "connector.class": FULL}, WORKER)
        assert error.key == "city"

        config = {"name": "w", "connector.class": FULL, "city": "Oslo"}
        altered = [({"city": "Atlantis"}, None), ({"city": "Oslo"}, {"day": 3})]
        assert await asyncio.to_thread(kind.alter_offsets, config, altered) is True
        assert await asyncio.to_thread(kind.alter_offsets, {**config, "city": "Rome"}, altered) is False
        with pytest.raises(ConnectError, match="WeatherSourceConnector, alter_offsets: no weather there"):
            await asyncio.to_thread(kind.alter_offsets, config, [({"city": "Atlantis"}, {"day": 3})])

        answered.clear()
        with pytest.raises(NotFound) as failure:
            kind.supports_exactly_once(config)
        assert failure.value.reason == NOT_READY
        async with asyncio.timeout(60):
            await answered.wait()
        assert kind.supports_exactly_once(config) is True


async def test_a_class_that_cannot_be_asked_now_is_known_later(tmp_path: Path) -> None:
    dies = tmp_path / "dies"
    dies.touch()
    code = f"import os\nif os.path.exists({str(dies)!r}):\n    os._exit(3)\n{MODULE}"
    wheel(tmp_path / "plugins", more={"acme_weather/source.py": code.replace("VERSION", "1").replace("\\\\", "\\")})
    async with ThirdParty.open(str(tmp_path / "plugins"), lambda: None):
        with pytest.raises(NotFound, match=f"plugin acme-weather 1.4.0, {FULL}, describe: its process died") as error:
            await asyncio.to_thread(find_connector, FULL)
        assert error.value.reason == NOT_READY
        assert all(FULL not in kind.names for kind in all_connectors())
        dies.unlink()
        await eventually(_known, seconds=60, what="it is called again")


def _known() -> bool:
    try:
        return find_connector(FULL).version == "1"
    except NotFound:
        return False


async def test_a_fault_that_classes_share_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = CapturingLogger()
    monkeypatch.setattr(third_party, "log", logged)
    others = "".join(f"com.acme.{name}Connector = acme_torn:{name}\n" for name in ("First", "Second"))
    wheel(tmp_path / "plugins", entry_points=ENTRY_POINTS + others, more={"acme_torn.py": "import no_such_module\n"})
    answered = asyncio.Event()
    async with ThirdParty.open(str(tmp_path / "plugins"), answered.set):
        await asyncio.wait_for(answered.wait(), 60)
        with pytest.raises(NotFound) as broken:
            find_connector("Second")
    assert broken.value.message == (
        "plugin acme-weather 1.4.0: com.acme.SecondConnector (acme_torn:Second) cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_module' (acme_torn.py, line 1)"
    )
    (broken_once,) = [values for _, event, values in logged.calls if event == ("plugin_broken",)]
    assert broken_once["connector"] == "com.acme.FirstConnector, com.acme.SecondConnector"
    assert broken_once["error"].count("no_such_module") == 1
