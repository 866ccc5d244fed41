"""Converters, transforms and predicates of Java plugins in the configurations of Python connectors."""

from functools import partial

import pytest

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.config.info import problems
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.errors import ConfigValueError
from keelman.connectors import registry
from keelman.connectors.file.source import FileStreamSource
from keelman.connectors.java.plugin_loader import fitting
from keelman.connectors.validation.configuration import validate

FILE = {"connector.class": "FileStreamSource", "name": "lines", "topic": "lines", "file": "/tmp/lines"}
WORKER = {"bootstrap.servers": "127.0.0.1:9092"}
KINDS = {
    "acme.Unwrap": PluginType.TRANSFORMATION,
    "acme.IsLate": PluginType.PREDICATE,
    "acme.Packed": PluginType.CONVERTER,
    "acme.Heads": PluginType.HEADER_CONVERTER,
}


@pytest.fixture(autouse=True)
def steps() -> None:
    """Registers a plugin's steps."""
    registry.add_steps(registry.PluginStep(name, kind, "1", ConfigDef) for name, kind in KINDS.items())


NAMED = [
    ("transforms.a.type", {"transforms": "a", "transforms.a.type": "acme.Unwrap"}),
    ("transforms.a.type", {"transforms": "a", "transforms.a.type": "Unwrap"}),
    ("predicates.p.type", {"predicates": "p", "predicates.p.type": "acme.IsLate"}),
    ("value.converter", {"value.converter": "acme.Packed"}),
]


@pytest.mark.parametrize(("key", "more"), NAMED)
def test_a_java_class_beside_a_connector_of_ours_is_legal(key: str, more: dict[str, str]) -> None:
    config = {**FILE, **more}
    assert key in config
    assert problems(validate(config, WORKER), config) == []


@pytest.mark.parametrize(("key", "more"), NAMED)
def test_it_is_refused_where_spark_reads(key: str, more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStreamSource, "reads_data_sets", True)
    config = {**FILE, **more}
    (problem,) = problems(validate(config, WORKER), config)
    assert problem.message == (
        f"Invalid value {more[key]} for configuration {key}: Class {registry.full_name(more[key])} of a Java plugin is "
        "not for connectors whose records Spark reads or writes: expected a class that comes with keelman"
    )


def test_headers_are_converted_by_ours() -> None:
    config = {**FILE, "header.converter": "acme.Heads"}
    (problem,) = problems(validate(config, WORKER), config)
    assert problem.message == (
        "Invalid value acme.Heads for configuration header.converter: Class acme.Heads of a Java plugin is not for "
        "headers, unless the connector is Java's: expected a class that comes with keelman"
    )


def test_what_no_list_names_is_not_looked_at() -> None:
    config = {**FILE, "transforms.a.type": "acme.Unwrap"}
    assert problems(validate(config, WORKER), config) == []


def test_a_connector_that_converts_by_itself_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStreamSource, "converts", True)
    config = {**FILE, "transforms": "a", "transforms.a.type": "acme.Unwrap"}
    assert problems(validate(config, WORKER), config) == []


VERSIONS = {"2.1": "newest", "2.0": "newer", "1.4": "old"}
KEY = "transforms.a.plugin.version"


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (None, "newest"),
        ("latest", "newest"),
        ("2.0", "newer"),
        ("[1.4]", "old"),
        ("[1,2.1)", "newer"),
        ("(,2.0)", "old"),
    ],
)
def test_the_latest_version_that_fits_is_loaded(expected: str | None, text: str) -> None:
    assert fitting("acme.Unwrap", VERSIONS, expected, KEY) == text


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        (
            "[3,)",
            "Plugin acme.Unwrap not found that matches the version range [3,), available versions: [2.1, 2.0, 1.4]",
        ),
        ("[3", "Unbounded range: [3"),
    ],
)
def test_a_version_that_there_is_not_is_named_with_its_key(expected: str, reason: str) -> None:
    with pytest.raises(ConfigValueError) as refused:
        fitting("acme.Unwrap", VERSIONS, expected, KEY)
    assert str(refused.value) == f"Invalid value {expected} for configuration {KEY}: {reason}"


def keys(name: str) -> ConfigDef:
    """The definitions of a class with this key."""
    return ConfigDef(ConfigKey(name, Type.STRING, None, Importance.LOW, "What it does."))


@pytest.mark.parametrize(
    ("expected", "key"), [({}, "new"), ({"plugin.version": "1"}, "old"), ({"plugin.version": "(,2)"}, "old")]
)
def test_the_keys_of_a_transform_are_those_of_the_version_that_is_asked_for(expected: dict[str, str], key: str) -> None:
    registry.add_steps(
        registry.PluginStep("acme.Unwrap", PluginType.TRANSFORMATION, version, partial(keys, name))
        for version, name in (("1", "old"), ("2", "new"))
    )
    config = {**FILE, "transforms": "a", "transforms.a.type": "acme.Unwrap"}
    config |= {f"transforms.a.{name}": value for name, value in expected.items()}
    names = {config["value"]["name"] for config in validate(config, WORKER)["configs"]}
    assert {"transforms.a.old", "transforms.a.new"} & names == {f"transforms.a.{key}"}
