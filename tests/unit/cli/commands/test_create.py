"""The requests that `create` builds from its options and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import ManagedBrokers
from keelman.cli import kinds
from keelman.cli.commands.create import Creation, broker_spec, check_options, connector_config, worker_spec
from keelman.cli.specs.options import Given
from keelman.model.errors import InvalidArgument


def test_specs_say_what_was_typed() -> None:
    spec = worker_spec(Given(nodes="a, b", values=["x=1=2"]))
    assert list(spec.nodes.names) == ["a", "b"]
    assert dict(spec.properties) == {"x": "1=2"}
    assert (worker_spec(Given()).count, worker_spec(Given()).broker_cluster) == (1, "default")
    assert broker_spec(Given(bootstrap_servers="h:1")).external.bootstrap_servers == "h:1"
    external = broker_spec(Given(bootstrap_servers="h:1", values=["security.protocol=SSL"])).external
    assert dict(external.client_properties) == {"security.protocol": "SSL"}
    managed = broker_spec(Given(nodes="a", values=["x=1"], port=9092), managed=True, controllers=1).managed
    assert managed == ManagedBrokers(nodes=["a"], properties={"x": "1"}, port=9092, controllers=1)
    with pytest.raises(InvalidArgument, match="--count"):
        worker_spec(Given(nodes="a", count=2))
    for wrong in ({"managed": True}, {"controllers": 3}):
        with pytest.raises(InvalidArgument, match="--bootstrap-servers"):
            broker_spec(Given(bootstrap_servers="h:1"), **wrong)
    with pytest.raises(InvalidArgument, match="--set"):
        worker_spec(Given(values=["x"]))
    with pytest.raises(InvalidArgument, match="--start"):
        check_options(kinds.CONNECTORS, Creation(start=True))


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
