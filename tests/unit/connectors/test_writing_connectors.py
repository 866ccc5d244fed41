"""The connectors of docs/writing-connectors.md work as the page describes."""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.plugin import Connector
from keelman.connect.records import Column, SinkBatch
from keelman.connectors.plugins.host import describe
from support.places import ROOT

PAGE = (ROOT / "docs" / "writing-connectors.md").read_text()
BLOCKS = dict(re.findall(r"^```(python|toml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(name="acme")
def _acme() -> Any:
    module = types.ModuleType("acme_ticks")
    exec(compile(BLOCKS["python"], "acme_ticks.py", "exec"), module.__dict__)
    return module


def test_the_entry_points_name_the_classes(acme: Any) -> None:
    project = tomllib.loads(BLOCKS["toml"])
    points = project["project"]["entry-points"]["keelman.connectors"]
    for name, place in points.items():
        module, _, attribute = place.partition(":")
        kind = getattr(acme, attribute)
        assert module in project["tool"]["setuptools"]["py-modules"]
        assert issubclass(kind, Connector)
        assert describe(kind, {})["names"][0] == name


def test_the_source_goes_on_behind_its_offset(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5_000_000_000
    monkeypatch.setattr(acme.time, "time_ns", lambda: now)
    config = {"topic": "ticks", "every.ms": "100"}
    committed: dict[str, Mapping[str, Any]] = {}
    reader = acme.TicksSource.open_reader(config, lambda _: committed.get("offset"))
    assert reader.read() is None
    now += 300_000_000
    assert reader.left() == 3
    batch = reader.read()
    assert (batch.topic, batch.values.values, batch.short) == ("ticks", [50, 51, 52], True)
    [(partition, offset)] = batch.offsets
    assert partition == reader.partitions()[0]
    committed["offset"] = offset
    now += 200_000_000
    again = acme.TicksSource.open_reader(config, lambda _: committed.get("offset"))
    again.most_records = 1
    assert again.read().values.values == [53]
    with pytest.raises(ConfigValueError, match=r"every\.ms"):
        acme.TicksSource.open_reader({"topic": "ticks", "every.ms": "0"}, lambda _: None)


def test_the_sinks_lines_are_there_once_it_has_committed(acme: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    writer = acme.LinesSink.open_writer({"path": str(path)}, "lines", exactly_once=False)
    writer.write(SinkBatch(Column([b"one", b"two"], utf8=True)))
    writer.commit({}, clean=False)
    assert path.read_text() == "one\ntwo\n"
    writer.close()
    with pytest.raises(ConnectError, match="path="):
        acme.LinesSink.open_writer({"path": str(tmp_path)}, "lines", exactly_once=False)
