"""The table of plugins that come with keelman fits the code, and validation accepts the names that copy runs accept."""

from __future__ import annotations

import importlib

import pytest

from keelman.connect.config.plugin_kinds import PluginType, aliases
from keelman.connect.converters.configured import CONVERTERS, converter_for, find_converter
from keelman.connect.converters.converter import Role
from keelman.connect.errors import ConfigValueError
from keelman.connect.transforms import PREDICATES, TRANSFORMS
from keelman.connect.transforms.chain import Chain
from keelman.connectors import shipped
from keelman.connectors.registry import PluginRegistry

NAMES = sorted(
    {name for plugin in shipped.ALL for name in (plugin.class_name, *aliases(plugin.class_name, plugin.kind))}
    | {name.replace("org.apache.kafka.connect.transforms.", "") for name in TRANSFORMS}
    | {"InsertField", "", "NoSuch", " Filter\t", " Json "}
)
MISSING = {"transforms": "x", "transforms.x.predicate": "p"}


def run(kind: PluginType, name: str) -> None:
    """Finds the class as a copy run does. Raises ConfigValueError."""
    if kind is PluginType.TRANSFORMATION:
        Chain({"transforms": "x", "transforms.x.type": name})
    elif kind is PluginType.PREDICATE:
        Chain({**MISSING, "transforms.x.type": "Filter", "predicates.p.type": name})
    else:
        find_converter("header" if kind is PluginType.HEADER_CONVERTER else "value", name)


@pytest.mark.parametrize(
    "kind",
    [PluginType.TRANSFORMATION, PluginType.PREDICATE, PluginType.CONVERTER, PluginType.HEADER_CONVERTER],
    ids=lambda kind: kind.value,
)
def test_what_validation_accepts_is_what_runs(kind: PluginType) -> None:
    registry, accepted, runs = PluginRegistry(), set(), set()
    for name in NAMES:
        actual_registry = registry.find(name)
        if actual_registry is not None and registry.is_a(actual_registry, kind):
            accepted.add(name)
        try:
            run(kind, name)
        except ConfigValueError as error:
            if "could not be found" in str(error) or "does not implement" in str(error):
                continue  # any other error concerns the configuration of a class that was found
        runs.add(name)
    assert runs == accepted
    assert len(runs) > len(registry.classes(kind)), "aliases too"


def test_the_table_is_what_the_code_has() -> None:
    table: dict[PluginType, dict[str, object]] = {kind: {} for kind in PluginType}
    for plugin in shipped.ALL:
        table[plugin.kind][plugin.class_name] = getattr(importlib.import_module(plugin.module), plugin.attribute)
    assert table[PluginType.TRANSFORMATION] == {name: value.func for name, value in TRANSFORMS.items()}  # type: ignore[attr-defined]
    assert table[PluginType.PREDICATE] == PREDICATES
    for kind in (PluginType.CONVERTER, PluginType.HEADER_CONVERTER):
        assert table[kind] == {name: value for name, value in CONVERTERS.items() if kind in value.kinds}
    connectors = {**table[PluginType.SINK], **table[PluginType.SOURCE]}
    assert {name: connector.names[0] for name, connector in connectors.items()} == {name: name for name in connectors}  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", ["key", "value", "header"])
def test_what_is_wrong_with_a_converter_is_told_under_the_connectors_key(role: Role) -> None:
    config = {f"{role}.converter": "JsonConverter", f"{role}.converter.schemas.enable": "maybe"}
    with pytest.raises(ConfigValueError) as caught:
        converter_for(role, config, {})
    assert caught.value.key == f"{role}.converter.schemas.enable"
    assert f"for configuration {role}.converter.schemas.enable" in str(caught.value)
