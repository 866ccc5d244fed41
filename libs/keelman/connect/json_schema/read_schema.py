"""Translates a JSON Schema into a Connect schema, in Confluent's mapping.

https://docs.confluent.io/platform/current/schema-registry/connect.html#json-schema
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keelman.connect.errors import DataError
from keelman.connect.java.text import json_text
from keelman.connect.json_schema.document import SchemaDocument, first_line
from keelman.connect.json_schema.write_schema import (
    ENUM,
    INDEX,
    KEY,
    MAP,
    NULL_SYMBOL,
    ONE_OF,
    ONE_OF_FIELD,
    PARAMETERS,
    TYPE,
    VALUE,
    VERSION,
    JsonSchemaOptions,
)
from keelman.connect.recurring_schema import Recurring
from keelman.connect.registry.sum_types import ANY_ENUM, ANY_UNION, ANY_UNION_FIELD, ANY_UNION_NAME
from keelman.connect.schema import STRING, Field, Schema

_CONNECT = {
    **{kind: kind for kind in ("int8", "int16", "int32", "int64", "bytes")},
    "float32": "float",
    "float64": "double",
}
_KEYWORDS = {
    "object": ("properties", "additionalProperties", "required", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""The keywords that imply the type of a schema without `type`."""


def read_schema(
    schema_document: SchemaDocument,
    options: JsonSchemaOptions,
    value_of: Callable[[Schema, Any], Any],
    version: int | None = None,
) -> Schema:
    """Returns the schema of a record; `value_of` reads default values, `version` is the schema's in its subject.

    Raises DataError for types that Connect does not have.
    """
    import jsonschema_rs  # noqa: PLC0415  14 MB that only those need who use it

    try:
        schema = _Reader(options, value_of).schema(
            schema_document.tree, schema_document.registry.resolver(schema_document.base)
        )
    except RecursionError:
        raise DataError("The JSON Schema is nested too deeply") from None
    except jsonschema_rs.ReferencingError as error:
        raise DataError(f"The JSON Schema refers to what is not there: {first_line(error)}") from None
    return schema if schema.version is not None or version is None else replace(schema, version=version)


class _Reader:
    """Reads one schema. Identifies the references being followed by their targets."""

    def __init__(self, options: JsonSchemaOptions, value_of: Callable[[Schema, Any], Any]) -> None:
        self._options, self._value_of = options, value_of
        self._open: dict[str, list[Recurring]] = {}
        self._unions = 0

    def schema(self, tree: Any, resolver: Any, *, optional: bool = False) -> Schema:
        if not isinstance(tree, dict):
            raise DataError(f"Connect has no schema for the JSON Schema {json.dumps(tree)[:200]}")
        if isinstance(tree.get("$ref"), str):
            resolved = resolver.lookup(tree["$ref"])
            return self._once(resolved.contents, resolved.resolver, optional=optional)
        return self._once(tree, resolver, optional=optional)

    def _once(self, tree: Any, resolver: Any, *, optional: bool) -> Schema:
        """Reads a tree; a tree nested in itself becomes one schema that contains itself."""
        if not isinstance(tree, dict) or "$ref" in tree:
            return self.schema(tree, resolver, optional=optional)
        place = f"{resolver.base_uri} {json.dumps(tree, sort_keys=True)}"
        if place in self._open:
            again = Recurring("struct", optional=optional)
            self._open[place].append(again)
            return again
        self._open[place] = []
        schema = self._parts(tree, resolver, optional=optional)
        for recurring in self._open.pop(place):
            if schema.type != "struct":
                raise DataError(f"The JSON Schema {json.dumps(tree)[:200]} holds itself and is no object")
            recurring.close(schema)
        return schema

    def _parts(self, tree: dict[str, Any], resolver: Any, *, optional: bool) -> Schema:  # noqa: PLR0911  one line a case
        """Combines the unions, alternatives and plain schemas of one schema object: all must hold."""
        word = _word(tree)
        if isinstance(word, list):
            members = [{**{k: v for k, v in tree.items() if k != "default"}, "type": kind} for kind in word]
            if len(members) == 1:
                return self._parts({**tree, "type": word[0]}, resolver, optional=optional)
            return self._union(members, tree, resolver, optional=optional)
        every: list[Any] = list(tree.get("allOf", ()))
        unions = [tree[key] for key in ("oneOf", "anyOf") if isinstance(tree.get(key), list)]
        properties = self._properties(tree, resolver, set())
        if every and properties:
            return self._struct(tree, properties, optional=optional)
        if unions and not (word == "object" and properties):
            return self._union(unions[0], tree, resolver, optional=optional)
        if every:
            return self._all_of(every, tree, resolver, optional=optional)
        if "enum" in tree and word in (None, "string"):
            return self._finished(self._enum(tree["enum"]), tree, optional=optional)
        if "const" in tree and word is None:
            word = _WORDS.get(type(tree["const"]))
        if word == "object" and tree.get(TYPE) != MAP:
            return self._struct(tree, properties, optional=optional)
        return self._finished(self._plain(word, tree, resolver), tree, optional=optional)

    def _all_of(self, every: list[Any], tree: dict[str, Any], resolver: Any, *, optional: bool) -> Schema:
        own = {key: value for key, value in tree.items() if key != "allOf"}
        named = [member for member in every if isinstance(member, dict)]
        unions = [member for member in named if "oneOf" in member or "anyOf" in member or "allOf" in member]
        words = [member for member in named if _word(member) is not None and member not in unions]
        enums = [member for member in named if "enum" in member]
        referred = [member for member in named if "$ref" in member]
        if not unions and enums and all(_word(member) in (None, "string") for member in words):
            return self._finished(self._enum(enums[0]["enum"]), {**enums[0], **own}, optional=optional)
        for chosen in (*unions, *words, *referred):
            return replace(self.schema({**chosen, **own}, resolver, optional=optional))
        raise DataError(f"Connect has no schema for the JSON Schema {json.dumps(tree)[:200]}")

    def _union(self, members: list[Any], tree: dict[str, Any], resolver: Any, *, optional: bool) -> Schema:
        rest = [member for member in members if not (isinstance(member, dict) and member.get("type") == "null")]
        null = len(rest) < len(members)
        if null and len(rest) == 1:
            return self.schema(rest[0], resolver, optional=True)
        if not rest:
            raise DataError("Connect has no schema for a JSON Schema that is only null")
        if self._options.generalized_sum_type_support:
            name, prefix = f"{ANY_UNION_NAME}{self._unions}", ANY_UNION_FIELD
            parameters: tuple[tuple[str, str], ...] = ((ANY_UNION, name),)
            self._unions += 1
        else:
            name, prefix, parameters = ONE_OF, ONE_OF_FIELD, ()
        fields = tuple(
            Field(f"{prefix}{place}", self.schema(member, resolver, optional=True)) for place, member in enumerate(rest)
        )
        union = Schema("struct", optional=null, name=name, parameters=parameters, fields=fields)
        return self._finished(union, tree, optional=optional)

    def _properties(self, tree: Any, resolver: Any, seen: set[str]) -> dict[str, tuple[Any, Any, bool]]:
        """Returns an object's members, including those of `allOf`: each with its schema, resolver, whether required."""
        if not isinstance(tree, dict):
            return {}
        if isinstance(tree.get("$ref"), str):
            resolved = resolver.lookup(tree["$ref"])
            place = f"{resolved.resolver.base_uri} {tree['$ref']}"
            return {} if place in seen else self._properties(resolved.contents, resolved.resolver, seen | {place})
        properties: dict[str, tuple[Any, Any, bool]] = {}
        required: Any = tree.get("required") if isinstance(tree.get("required"), list) else []
        own = tree.get("properties")
        for name, node in own.items() if isinstance(own, dict) else ():
            properties[name] = node, resolver, name in required
        for part in tree.get("allOf", ()):
            properties |= self._properties(part, resolver, seen)
        return properties

    def _struct(self, tree: dict[str, Any], properties: dict[str, tuple[Any, Any, bool]], *, optional: bool) -> Schema:
        ordered = sorted(
            enumerate(properties.items()),
            key=lambda item: index if isinstance(index := _index(item[1][1][0]), int) else item[0],
        )
        fields = tuple(
            Field(name, self.schema(node, where, optional=self._options.use_optional_for_nonrequired and not required))
            for _, (name, (node, where, required)) in ordered
        )
        return self._finished(Schema("struct", fields=fields), tree, optional=optional)

    def _plain(self, word: str | None, tree: dict[str, Any], resolver: Any) -> Schema:
        connect_type = tree.get(TYPE)
        if word == "boolean":
            return Schema("boolean")
        if word in ("integer", "number"):
            if connect_type is not None and connect_type not in _CONNECT:
                raise DataError(f"{TYPE} is {connect_type!r}, which is no type of a number")
            return Schema(
                _CONNECT[connect_type] if connect_type is not None else "int64" if word == "integer" else "double"
            )
        if word == "string":
            return Schema("bytes" if connect_type == "bytes" else "string")
        if word == "array":
            items = tree.get("items")
            if not isinstance(items, dict):
                raise DataError("Array schema did not specify the items type")
            if connect_type == MAP and isinstance(items.get("properties"), dict):
                pair = items["properties"]
                key, value = self.schema(pair.get(KEY), resolver), self.schema(pair.get(VALUE), resolver)
                return Schema(MAP, key=key, value=value)
            return Schema("array", value=self.schema(items, resolver))
        if word == "object":
            return Schema(MAP, key=STRING, value=self.schema(tree.get("additionalProperties"), resolver))
        raise DataError(f"Connect has no schema for the JSON Schema {json.dumps(tree)[:200]}")

    def _enum(self, symbols: Any) -> Schema:
        prefix = ANY_ENUM if self._options.generalized_sum_type_support else ENUM
        pairs = []
        for place, item in enumerate(symbols if isinstance(symbols, list) else ()):
            symbol = NULL_SYMBOL if item is None else item if isinstance(item, str) else json_text(item)
            pairs.append((f"{prefix}.{symbol}", str(place) if prefix == ANY_ENUM else symbol))
        return Schema("string", parameters=((prefix, ""), *pairs))

    def _finished(self, schema: Schema, tree: dict[str, Any], *, optional: bool) -> Schema:
        title, version, text, own = (tree.get(key) for key in ("title", VERSION, "description", PARAMETERS))
        parameters = dict(schema.parameters)
        if isinstance(own, dict):
            parameters |= {key: value if isinstance(value, str) else json_text(value) for key, value in own.items()}
        schema = replace(
            schema,
            name=schema.name if schema.name is not None or not isinstance(title, str) else title,
            version=version if isinstance(version, int) else None,
            doc=text if isinstance(text, str) else None,
            parameters=tuple(parameters.items()),
            optional=schema.optional or optional,
        )
        default = tree.get("default")
        return schema if default is None else replace(schema, default=self._value_of(schema, default))


_WORDS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _word(tree: dict[str, Any]) -> Any:
    """Returns the schema's type, explicit or implied by its keywords; None for none."""
    said = tree.get("type")
    if said is not None:
        return said
    return next((word for word, keys in _KEYWORDS.items() if any(key in tree for key in keys)), None)


def _index(tree: Any) -> Any:
    return tree.get(INDEX) if isinstance(tree, dict) else None
