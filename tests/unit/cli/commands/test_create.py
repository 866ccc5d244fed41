"""What `create` makes of its options and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keelman.cli import kinds
from keelman.cli.commands.create import broker_spec, check_options, connector_config, worker_spec
from keelman.model.errors import InvalidArgument


def test_specs_say_what_was_typed() -> None:
    spec = worker_spec("a, b", ["x=1=2"], count=None)
    assert list(spec.nodes.names) == ["a", "b"]
    assert dict(spec.properties) == {"x": "1=2"}
    assert worker_spec("", (), count=None).count == 1
    assert broker_spec("", (), bootstrap_servers="h:1").external.bootstrap_servers == "h:1"
    assert list(broker_spec("a", (), managed=True).managed.nodes) == ["a"]
    with pytest.raises(InvalidArgument, match="--count"):
        worker_spec("a", (), count=2)
    with pytest.raises(InvalidArgument, match="--bootstrap-servers"):
        broker_spec("", (), bootstrap_servers="h:1", managed=True)
    with pytest.raises(InvalidArgument, match="--property"):
        worker_spec("", ["x"], count=None)
    with pytest.raises(InvalidArgument, match="--start"):
        check_options(kinds.CONNECTORS, {}, start=True)


def test_a_connectors_file_may_be_json_or_properties(tmp_path: Path) -> None:
    for content in (
        {"connector.class": "C", "tasks.max": 2, "n": None},
        {"name": "x", "config": {"connector.class": "C", "tasks.max": 2}},
    ):
        file = tmp_path / "c.json"
        file.write_text(json.dumps(content))
        assert connector_config(file, ()) == {"connector.class": "C", "tasks.max": "2"}
    file = tmp_path / "c.properties"
    file.write_text("connector.class=C\n# no\ntasks.max = 2\n")
    assert connector_config(file, ["tasks.max=3"]) == {
        "connector.class": "C",
        "tasks.max": "3",
    }
    for name, text in (("a.json", "["), ("b.json", '{"config": {"a": {}}}'), ("c.json", "[1]")):
        bad = tmp_path / name
        bad.write_text(text)
        with pytest.raises(InvalidArgument, match=name):
            connector_config(bad, ())
    with pytest.raises(InvalidArgument, match="No such file"):
        connector_config(tmp_path / "none.json", ())
