"""Parses the texts of Avro schemas and of the schemas that they refer to, and resolves full names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro.read
import fastavro.schema

from keelman.connect.avro import names
from keelman.connect.avro.names import AvroOptions
from keelman.connect.errors import DataError

Avro = Mapping[str, Any] | list[Any] | str
LOGICAL_TYPE = "keelman.logicalType"
"""The key of `logicalType` in parsed schemas, so that the library does not convert values that we convert."""
TAGGED = "keelman-tagged"
"""The logical type of an unnamed member of a union: the library then gives its values with their types, as it does with
named ones by itself. So values of, say, int and long are distinguished."""
NO_SYMBOL = ""
"""An invalid symbol: none may be empty."""
_NO_MEMBER = {"type": "keelman.NoMember"}
_GUARDS = 8
"""More would slow down each value: the library searches all members of a union."""
_NAMED = "__named_schemas"
_TAGGABLE = ("boolean", "int", "long", "float", "double", "bytes", "string", "array", "map")


def _tagging(kind: str) -> Callable[..., tuple[str, Any]]:
    return lambda data, *_: (kind, data)


for _kind in _TAGGABLE:
    fastavro.read.LOGICAL_READERS[f"{_kind}-{TAGGED}"] = _tagging(_kind)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A schema with full names, each defined at its first use and a name after that; and all its named schemas."""

    schema: Avro
    named: Mapping[str, Any]
    whole: Any
    """The schema that the library writes and reads: a record, or a record with the value in its field `v`."""
    wrapped: bool

    def resolved(self, avro: Avro) -> Mapping[str, Any] | list[Any]:
        """Returns the schema of a name; returns a plain type as a mapping."""
        if isinstance(avro, str):
            node: Mapping[str, Any] = self.named.get(avro) or {"type": avro}
            return node
        if isinstance(avro, Mapping) and not isinstance(avro["type"], str):
            return self.resolved(avro["type"])
        return avro


def holds_itself(parsed: Parsed) -> bool:
    """Whether a record contains itself, so that values may be nested without limit."""

    def within(avro: Avro, around: frozenset[str], seen: set[str]) -> bool:
        node = parsed.resolved(avro)
        if isinstance(node, list):
            return any(within(member, around, seen) for member in node)
        name = node.get("name") if node["type"] == "record" else None
        if name in around:
            return True
        if name is not None:
            if name in seen:
                return False
            seen.add(name)
            return any(within(field["type"], around | {name}, seen) for field in node["fields"])
        return any(within(node[part], around, seen) for part in ("items", "values") if part in node)

    return within(parsed.schema, frozenset(), set())


def parse(text: str, references: Mapping[str, str]) -> Parsed:
    """Parses a schema's text; `references` are its referenced schemas by name, in order of use. Raises DataError."""
    named: dict[str, Any] = {}
    try:
        for reference in references.values():
            fastavro.schema.parse_schema(_unlogical(json.loads(reference)), named)
        tree = _unlogical(json.loads(text))
        wrapped = not isinstance(tree, dict) or tree.get("type") != "record"
        if wrapped:
            tree = {"type": "record", "name": "KeelmanValue", "fields": [{"name": "v", "type": tree}]}
        whole: Any = fastavro.schema.parse_schema(tree, named)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise DataError(f"The Avro schema cannot be read: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise DataError("The Avro schema is nested too deeply") from None
    return Parsed(whole["fields"][0]["type"] if wrapped else whole, named, whole, wrapped)


def guarded(whole: Any) -> Any:
    """Guards a parsed schema for reading: the library resolves a negative index of a union member or an enum symbol
    from the end, like Python. There it finds an unreadable member, or NO_SYMBOL."""
    if isinstance(whole, list):
        return [*map(guarded, whole), *[_NO_MEMBER] * _GUARDS]
    if not isinstance(whole, dict):
        return whole
    copy = {key: guarded(value) if key in ("type", "items", "values") else value for key, value in whole.items()}
    if "fields" in whole:
        copy["fields"] = [{**field, "type": guarded(field["type"])} for field in whole["fields"]]
    if whole.get("type") == "enum":
        copy["symbols"] = [*whole["symbols"], *[NO_SYMBOL] * _GUARDS]
    if _NAMED in whole:
        copy[_NAMED] = {name: guarded(node) for name, node in whole[_NAMED].items()}
    return copy


def _unlogical(tree: Any) -> Any:
    """Returns the schema with its logical types under another name."""
    if isinstance(tree, list):
        members = [_unlogical(node) for node in tree]
        plain = len(members) == 2 and "null" in members
        return members if plain else [_tagged(member) for member in members]
    if not isinstance(tree, dict):
        return tree
    if tree.get("type") == "null":
        return "null"
    copy = {key: _unlogical(value) if key in ("type", "items", "values") else value for key, value in tree.items()}
    if isinstance(fields := tree.get("fields"), list):
        copy["fields"] = [{**field, "type": _unlogical(field["type"])} for field in fields]
    if "logicalType" in copy:
        copy[LOGICAL_TYPE] = copy.pop("logicalType")
    return copy


def _tagged(member: Any) -> Any:
    if isinstance(member, str):
        return {"type": member, "logicalType": TAGGED} if member in _TAGGABLE else member
    return {**member, "logicalType": TAGGED} if member.get("type") in _TAGGABLE else member


def member_field(parsed: Parsed, avro: Avro, options: AvroOptions, place: int) -> str:
    """Returns the name of the field for a member of a union."""
    node = parsed.resolved(avro)
    if isinstance(node, list):
        raise DataError("Avro has no union within a union")
    named = node["type"] in names.NAMED
    return options.member_name(node["name"] if named else None, str(node["type"]), place)


def is_entry(node: Mapping[str, Any]) -> bool:
    """Whether a record is an entry of a map whose keys are no plain strings."""
    if node["type"] != "record":
        return False
    return node["name"] == f"{names.NAMESPACE}.{names.MAP_ENTRY}" or node.get(names.INTERNAL_TYPE) == names.MAP_ENTRY
