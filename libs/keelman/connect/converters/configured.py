"""Returns the converter that a configuration names for a role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from keelman.connect import step_factories
from keelman.connect.config import converter_keys
from keelman.connect.config.plugin_kinds import PluginType, resolved
from keelman.connect.converters.converter import SIMPLE_HEADERS, ByteArrayConverter, Converter, Role, StringConverter
from keelman.connect.converters.header_converter import SimpleHeaderConverter
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.converters.number_converters import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from keelman.connect.errors import ConfigValueError
from keelman.model.keys import under

if TYPE_CHECKING:
    from keelman.connect.registry.interface import OpenRegistry


_PLAIN: Mapping[str, type[Converter]] = {
    converter.name: converter
    for converter in (
        StringConverter,
        ByteArrayConverter,
        JsonConverter,
        SimpleHeaderConverter,
        BooleanConverter,
        ShortConverter,
        IntegerConverter,
        LongConverter,
        FloatConverter,
        DoubleConverter,
    )
}
_OF_REGISTRIES = {
    "io.confluent.connect.avro.AvroConverter": "keelman.connect.avro.converter",
    "io.confluent.connect.json.JsonSchemaConverter": "keelman.connect.json_schema.converter",
    "io.confluent.connect.protobuf.ProtobufConverter": "keelman.connect.protobuf.converter",
}


class _Converters(Mapping[str, type[Converter]]):
    """Imports a schema registry's converter on first use: most workers have none."""

    def __getitem__(self, name: str) -> type[Converter]:
        if name not in _OF_REGISTRIES:
            return _PLAIN[name]
        converter: type[Converter] = getattr(import_module(_OF_REGISTRIES[name]), name.rpartition(".")[2])
        return converter

    def __iter__(self) -> Iterator[str]:
        return iter((*_PLAIN, *_OF_REGISTRIES))

    def __len__(self) -> int:
        return len(_PLAIN) + len(_OF_REGISTRIES)


CONVERTERS: Mapping[str, type[Converter]] = _Converters()
"""Every available converter, by the full name of its class."""


def is_own(class_name: str) -> bool:
    """Whether this names a converter of keelman's own, by its full name or an alias."""
    return resolved(class_name, {name: _PLAIN.get(name, Converter).kinds for name in CONVERTERS}) is not None


def find_converter(role: Role, class_name: str) -> Callable[[Mapping[str, str]], Converter]:
    """Returns the class by its full name or an alias, or the factory of a third-party converter.

    Raises ConfigValueError naming the role's key with Connect's message."""
    key = f"{role}.converter"
    foreign = {} if role == "header" else step_factories.of_kind(PluginType.CONVERTER)
    kinds = {name: _PLAIN.get(name, Converter).kinds for name in CONVERTERS}
    full = resolved(class_name, {**dict.fromkeys(foreign, (PluginType.CONVERTER,)), **kinds})
    if full is None:
        raise ConfigValueError(key, class_name, f"Class {class_name} could not be found.")
    if full not in CONVERTERS:
        return foreign[full]
    kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
    if kind not in CONVERTERS[full].kinds:
        whole = f"Class class {full} does not implement the {kind.interface} interface"
        raise ConfigValueError(key, class_name, whole=whole)
    return CONVERTERS[full]


def converter_for(
    role: Role, connector: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry | None = None
) -> Converter:
    """Returns the configured converter of a role: the connector's with its keys, else the worker's with its keys.

    Headers have SimpleHeaderConverter by default. Without `open_registry` the converter is made only to be validated.
    Raises ConfigValueError when there is none, the class is unknown or one of its values is not legal.
    """
    key = f"{role}.converter"
    source = connector if connector.get(key, "").strip() else worker
    named = source.get(key, "").strip() or (SIMPLE_HEADERS if role == "header" else "")
    if not named:
        whole = f'Missing required configuration "{key}" which has no default value.'
        raise ConfigValueError(key, None, whole=whole)
    converter, prefix = find_converter(role, named), f"{key}."
    try:
        instance = converter({**under(prefix, source), converter_keys.ROLE: role})
        if open_registry is not None:
            instance.bind(open_registry)
        return instance
    except ConfigValueError as error:
        text = str(error).replace(f"configuration {error.key}", f"configuration {prefix}{error.key}", 1)
        raise ConfigValueError(prefix + error.key, error.value, whole=text) from None
