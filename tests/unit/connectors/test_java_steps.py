"""Converters, transforms and predicates of Java plugins, in the configurations of connectors that are not Java's."""

from collections.abc import Iterator

import pytest

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.info import problems
from keelman.connect.config.plugin_kinds import Kind
from keelman.connectors import registry
from keelman.connectors.file.source import FileStreamSource
from keelman.connectors.validation.configuration import validate

FILE = {"connector.class": "FileStreamSource", "name": "lines", "topic": "lines", "file": "/tmp/lines"}
WORKER = {"bootstrap.servers": "127.0.0.1:9092"}
KINDS = {
    "acme.Unwrap": Kind.TRANSFORMATION,
    "acme.IsLate": Kind.PREDICATE,
    "acme.Packed": Kind.CONVERTER,
    "acme.Heads": Kind.HEADER_CONVERTER,
}


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    """What a plugin has."""
    registry.add_steps(registry.Step(name, kind, "1", ConfigDef) for name, kind in KINDS.items())
    yield
    registry.add_steps(())


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
    (found,) = problems(validate(config, WORKER), config)
    assert found.message == (
        f"Invalid value {more[key]} for configuration {key}: Class {registry.full_name(more[key])} of a Java plugin is "
        "not for connectors whose records Spark reads or writes: expected a class that comes with keelman"
    )


def test_headers_are_converted_by_ours() -> None:
    config = {**FILE, "header.converter": "acme.Heads"}
    (found,) = problems(validate(config, WORKER), config)
    assert found.message == (
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
