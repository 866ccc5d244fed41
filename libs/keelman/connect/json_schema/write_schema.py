"""Translates a Connect schema into a JSON Schema (draft 7), in Confluent's mapping and order of keywords.

https://docs.confluent.io/platform/current/schema-registry/connect.html#json-schema
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from keelman.connect.converters.logical import DECIMAL
from keelman.connect.errors import DataError
from keelman.connect.java.text import hash_order, json_text
from keelman.connect.recurring_schema import Recurring
from keelman.connect.registry.keys import ConverterOptions
from keelman.connect.registry.sum_types import enum_key, is_any_union
from keelman.connect.schema import Field, Schema

SPACE = "io.confluent.connect.json"
ENUM, ONE_OF = f"{SPACE}.Enum", f"{SPACE}.OneOf"
ONE_OF_FIELD = f"{ONE_OF}.field."
TYPE, VERSION, PARAMETERS, INDEX = (f"connect.{word}" for word in ("type", "version", "parameters", "index"))
KEY, VALUE, MAP, NULL_SYMBOL = "key", "value", "map", "<NULL>"
_NUMBERS = {
    **{kind: ("integer", kind) for kind in ("int8", "int16", "int32", "int64")},
    "float": ("number", "float32"),
    "double": ("number", "float64"),
}


@dataclass(frozen=True, slots=True)
class JsonSchemaOptions(ConverterOptions):
    """The keys of a configuration for the mapping of schemas and values. Fields have the keys' names, with
    underscores."""

    object_additional_properties: bool = True
    use_optional_for_nonrequired: bool = False
    generalized_sum_type_support: bool = False
    ignore_default_for_nullables: bool = False
    decimal_format: str = "BASE64"

    @property
    def numeric(self) -> bool:
        """Whether decimals are numbers, not texts of their bytes."""
        return self.decimal_format.upper() == "NUMERIC"


def is_union(schema: Schema) -> bool:
    """Whether a struct represents one of several schemas: at most one of its fields is not null."""
    return schema.type == "struct" and (schema.name == ONE_OF or is_any_union(schema))


def is_object_map(schema: Schema) -> bool:
    """Whether a map is a JSON object; others are arrays of objects with key and value."""
    assert schema.key is not None
    return schema.key.type == "string" and not schema.key.optional


def write_schema(schema: Schema, options: JsonSchemaOptions, value_tree: Callable[[Schema, Any], Any]) -> str:
    """Returns the text of a schema; `value_tree` writes the values of defaults. Raises DataError."""
    try:
        return json_text(_Writer(options, value_tree).tree(schema))
    except RecursionError:
        raise DataError("The schema is nested too deeply for JSON Schema") from None


class _Writer:
    """Writes one schema."""

    def __init__(self, options: JsonSchemaOptions, value_tree: Callable[[Schema, Any], Any]) -> None:
        self._options, self._value_tree = options, value_tree
        self._open: list[tuple[tuple[Field, ...], dict[str, Any]]] = []
        self._ids = 0

    def tree(self, schema: Schema, index: int | None = None, *, plain: bool = False) -> dict[str, Any]:
        """Writes a schema; `plain`: null is handled elsewhere; `index` is that of a field."""
        indexed = {} if index is None else {INDEX: index}
        if is_union(schema):
            members = [
                self.tree(replace(field.schema, optional=False), place, plain=True)
                for place, field in enumerate(schema.fields)
            ]
            return {**indexed, "oneOf": [*([{"type": "null"}] if schema.optional else []), *members]}
        if schema.optional and not plain:
            return {**indexed, "oneOf": [{"type": "null"}, self._single(schema, {})]}
        return self._single(schema, indexed)

    def _single(self, schema: Schema, indexed: dict[str, int]) -> dict[str, Any]:
        if isinstance(schema, Recurring):
            return {**indexed, "$ref": self._name(schema)}
        return self._named(schema, indexed)

    def _name(self, schema: Schema) -> str:
        for fields, tree in self._open:
            if fields is schema.fields:
                if "$id" not in tree:
                    self._ids += 1
                    tree["$id"] = f"#id{self._ids}"
                return str(tree["$id"])
        raise DataError(f"The schema {schema.name} refers to a schema that does not contain it")

    def _named(self, schema: Schema, indexed: dict[str, int]) -> dict[str, Any]:
        """Writes the type, the common attributes and Connect's own keywords; then those of the type alone."""
        tree: dict[str, Any] = {}
        word, connect_type = self._words(schema)
        if word is not None:
            tree["type"] = word
        if schema.name is not None:
            tree["title"] = schema.name
        if schema.doc is not None:
            tree["description"] = schema.doc
        if schema.default is not None:
            tree["default"] = self._value_tree(schema, schema.default)
        if schema.version is not None:
            tree[VERSION] = schema.version
        tree |= indexed
        if connect_type is not None:
            tree[TYPE] = connect_type
        parameters = {key: text for key, text in schema.parameters if not key.startswith(SPACE)}
        if parameters:
            tree[PARAMETERS] = {key: parameters[key] for key in hash_order(parameters)}
        return tree | self._inner(schema, tree)

    def _words(self, schema: Schema) -> tuple[str | None, str | None]:
        kind = schema.type
        if kind in _NUMBERS:
            return _NUMBERS[kind]
        if kind == "bytes":
            return "number" if schema.name == DECIMAL else "string", "bytes"
        if kind == "string" and self._symbols(schema) is not None:
            return None, None
        if kind == MAP:
            return "object" if is_object_map(schema) else "array", MAP
        return "object" if kind == "struct" else kind, None

    def _symbols(self, schema: Schema) -> list[str | None] | None:
        return enum_symbols(schema, general=self._options.generalized_sum_type_support)

    def _inner(self, schema: Schema, tree: dict[str, Any]) -> dict[str, Any]:
        if schema.type == "string" and (symbols := self._symbols(schema)) is not None:
            return {"enum": symbols}
        if schema.type == "array":
            assert schema.value is not None
            return {"items": self.tree(schema.value)}
        if schema.type == MAP:
            return self._map(schema)
        if schema.type != "struct":
            return {}
        self._open.append((schema.fields, tree))
        trees = {field.name: self.tree(field.schema, place) for place, field in enumerate(schema.fields)}
        self._open.pop()
        more = {} if self._options.object_additional_properties else {"additionalProperties": False}
        return {**more, "properties": {name: trees[name] for name in hash_order(trees)}} if trees else more

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.key is not None
        assert schema.value is not None
        if is_object_map(schema):
            return {"additionalProperties": self.tree(schema.value)}
        pair = {VALUE: self.tree(schema.value, 1), KEY: self.tree(schema.key, 0)}
        return {"items": {"type": "object", "properties": pair}}


def enum_symbols(schema: Schema, *, general: bool) -> list[str | None] | None:
    """Returns the symbols of an enum, None for a plain string."""
    parameters = dict(schema.parameters)
    own_key = enum_key(parameters, ENUM, general=general)
    if own_key is None:
        return None
    symbols = [key.removeprefix(f"{own_key}.") for key in parameters if key.startswith(f"{own_key}.")]
    return [None if symbol == NULL_SYMBOL else symbol for symbol in symbols]
