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
KINDS = {"acme.Unwrap": Kind.TRANSFORMATION, "acme.IsLate": Kind.PREDICATE, "acme.Packed": Kind.CONVERTER}


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    """What a plugin has."""
    registry.add_steps(registry.Step(name, kind, "1", ConfigDef) for name, kind in KINDS.items())
    yield
    registry.add_steps(())


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("transforms.a.type", {"transforms": "a", "transforms.a.type": "acme.Unwrap"}),
        ("transforms.a.type", {"transforms": "a", "transforms.a.type": "Unwrap"}),
        ("predicates.p.type", {"predicates": "p", "predicates.p.type": "acme.IsLate"}),
        ("value.converter", {"value.converter": "acme.Packed"}),
    ],
)
def test_a_java_class_beside_a_connector_that_is_none_is_refused(key: str, more: dict[str, str]) -> None:
    config = {**FILE, **more}
    (found,) = problems(validate(config, WORKER), config)
    named = registry.full_name(more[key])
    assert found.message == (
        f"Invalid value {more[key]} for configuration {key}: Class {named} of a Java plugin runs beside connectors of "
        f"Java plugins only, and {FileStreamSource.names[0]} is none: expected a class that comes with keelman"
    )


def test_what_no_list_names_is_not_looked_at() -> None:
    config = {**FILE, "transforms.a.type": "acme.Unwrap"}
    assert problems(validate(config, WORKER), config) == []


def test_a_connector_that_converts_by_itself_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStreamSource, "converts", True)
    config = {**FILE, "transforms": "a", "transforms.a.type": "acme.Unwrap"}
    assert problems(validate(config, WORKER), config) == []
