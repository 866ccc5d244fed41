"""Plugins are found by the names that Connect knows them by, and listed as it lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

import pytest

from keelman.connect.config.info import ConfigError, problems
from keelman.connect.config.plugin_kinds import PluginType, aliases
from keelman.connect.plugin import Connector
from keelman.connectors import registry
from keelman.connectors.file.source import FileStreamSource
from keelman.connectors.registry import PluginRegistry, find_connector, full_name, kind_of, listed
from keelman.connectors.validation.configuration import validate
from keelman.model.errors import NotFound

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {f"{role}.converter": JSON for role in ("key", "value")}


def faults(config: Mapping[str, str], worker: Mapping[str, str]) -> list[ConfigError]:
    """Returns all errors of a configuration."""
    return problems(validate(config, worker), config)


@pytest.fixture
def another() -> type[Connector]:
    """A third-party connector with the simple name of a connector of ours."""

    class Another(FileStreamSource):
        names = ("com.acme.FileStreamSourceConnector",)
        version = "3.1"

    registry.add(Another.names[0], lambda: Another)
    return Another


@pytest.mark.parametrize(
    ("class_name", "kind", "results"),
    [
        (FILE, PluginType.SOURCE, {"FileStreamSourceConnector", "FileStreamSource"}),
        (JSON, PluginType.CONVERTER, {"JsonConverter", "Json"}),
        ("a.SimpleHeaderConverter", PluginType.HEADER_CONVERTER, {"SimpleHeaderConverter", "Simple"}),
        ("a.Cast$Key", PluginType.TRANSFORMATION, {"Key"}),
        ("a.MyTransformation", PluginType.TRANSFORMATION, {"MyTransformation", "My"}),
        ("a.Connector", PluginType.SINK, {"Connector"}),
        ("Bare", PluginType.SOURCE, {"Bare"}),
    ],
)
def test_aliases_are_made_as_connect_makes_them(class_name: str, kind: PluginType, results: set[str]) -> None:
    assert aliases(class_name, kind) == results


def test_an_alias_of_two_classes_names_neither(another: type[Connector]) -> None:
    assert full_name("FileStreamSource") is None
    with pytest.raises(NotFound):
        find_connector("FileStreamSourceConnector")
    assert find_connector(FILE) is FileStreamSource
    assert find_connector(another.names[0]) is another


def test_a_third_partys_version_is_told_and_checked(another: type[Connector]) -> None:
    config = {"name": "n", "connector.class": another.names[0], "topic": "t"}
    assert PluginRegistry().versions(another.names[0]) == ["3.1"]
    assert kind_of(another.names[0]) is PluginType.SOURCE
    assert faults({**config, "connector.plugin.version": "[3,4)"}, WORKER) == []
    first, second = faults({**config, "connector.plugin.version": "[4,)"}, WORKER)
    assert (first.key, second.key) == ("connector.class", "connector.plugin.version")
    assert first.message == second.message
    assert first.message.endswith("not found that matches the version range [4,), available versions: [3.1]")


def test_the_wanted_one_of_several_versions_is_used() -> None:
    types = [
        type("Acme", (FileStreamSource,), {"names": ("com.acme.AcmeSource",), "version": version})
        for version in ("2.1", "2.0", "1.9")
    ]
    registry.add("com.acme.AcmeSource", *(partial(lambda value: value, single_type) for single_type in types))
    expected = {None: 0, "latest": 0, "[1,2.0]": 1, "1.9": 2, "(,2)": 2}
    indexes = {version: types.index(find_connector("AcmeSource", version)) for version in expected}
    assert indexes == expected
    unfit = "Plugin com.acme.AcmeSource not found that matches the version range [3,3], available versions: "
    for version, text in (("3", f"{unfit}[2.1, 2.0, 1.9]"), ("[3", "Unbounded range: [3")):
        with pytest.raises(NotFound) as caught:
            find_connector("AcmeSource", version)
        assert caught.value.message == text
    config = {"name": "n", "connector.class": "AcmeSource", "topic": "t", "connector.plugin.version": "2.0"}
    answer = validate(config, WORKER)
    (value,) = (
        config["value"] for config in answer["configs"] if config["value"]["name"] == "connector.plugin.version"
    )
    assert (answer["error_count"], value["value"]) == (0, "2.0")
    assert value["recommended_values"] == ["2.1", "2.0", "1.9"]


def test_names_are_trimmed_and_unknown_ones_unknown() -> None:
    assert full_name(f" {FILE}\t") == FILE
    assert (full_name(""), full_name("org.x.NoSuch"), full_name("Connector")) == (None, None, None)


def test_kinds_stand_one_after_the_other() -> None:
    kinds = [list(PluginType).index(plugin.kind) for plugin in listed(*PluginType)]
    assert all(before <= after for before, after in pairwise(kinds))
    classes = [plugin.class_name for plugin in listed(PluginType.SOURCE)]
    assert classes == sorted(classes)
    assert not [name for name in classes if "Mock" in name or "Verifiable" in name]


def test_a_sink_whose_group_would_be_the_workers() -> None:
    config = {"name": "own", "connector.class": "FileStreamSink", "topics": "t"}
    (error,) = faults(config, {**WORKER, "group.id": "connect-own"})
    assert (error.key, error.message) == (
        "name",
        "Consumer group for sink connector named own conflicts with Connect worker group connect-own",
    )
