"""Parses the texts of Avro schemas: full names are resolved, and the schemas that they refer to."""

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
"""Where parsed schemas have `logicalType`, so that the library does not convert values that are ours to convert."""
TAGGED = "keelman-tagged"
"""The logical type of a union's member that is no named one: the library then gives its values with their types, as it
does with named ones by itself. So those of int and long, say, are distinguished."""
NO_SYMBOL = ""
"""In place of a symbol: none may be empty."""
_NO_MEMBER = {"type": "keelman.NoMember"}
_GUARDS = 8
"""More would cost time with each value: the library goes through all members of a union."""
_NAMED = "__named_schemas"
_TAGGABLE = ("boolean", "int", "long", "float", "double", "bytes", "string", "array", "map")


def _tagging(kind: str) -> Callable[..., tuple[str, Any]]:
    return lambda data, *_: (kind, data)


for _kind in _TAGGABLE:
    fastavro.read.LOGICAL_READERS[f"{_kind}-{TAGGED}"] = _tagging(_kind)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A schema with full names, its own first and then only by name; and all named ones that it knows of."""

    schema: Avro
    named: Mapping[str, Any]
    whole: Any
    """What the library writes and reads: the schema if that is a record, else a record with the value as its `v`."""
    wrapped: bool

    def resolved(self, avro: Avro) -> Mapping[str, Any] | list[Any]:
        """What a name stands for; a plain type as a mapping."""
        if isinstance(avro, str):
            found: Mapping[str, Any] = self.named.get(avro) or {"type": avro}
            return found
        if isinstance(avro, Mapping) and not isinstance(avro["type"], str):
            return self.resolved(avro["type"])
        return avro


def holds_itself(parsed: Parsed) -> bool:
    """Whether a record is met again within itself, so that values may be nested without end."""

    def within(avro: Avro, around: frozenset[str], known: set[str]) -> bool:
        node = parsed.resolved(avro)
        if isinstance(node, list):
            return any(within(one, around, known) for one in node)
        name = node.get("name") if node["type"] == "record" else None
        if name in around:
            return True
        if name is not None:
            if name in known:
                return False
            known.add(name)
            return any(within(one["type"], around | {name}, known) for one in node["fields"])
        return any(within(node[part], around, known) for part in ("items", "values") if part in node)

    return within(parsed.schema, frozenset(), set())


def parse(text: str, references: Mapping[str, str]) -> Parsed:
    """A schema's text; those that it refers to, by name, what others need first. Raises DataError."""
    named: dict[str, Any] = {}
    try:
        for one in references.values():
            fastavro.schema.parse_schema(_unlogical(json.loads(one)), named)
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
    """A parsed schema for reading: the library counts a negative place in a union, or among an enum's symbols, from the
    end, as Python does. There it finds what it cannot read, or NO_SYMBOL."""
    if isinstance(whole, list):
        return [*map(guarded, whole), *[_NO_MEMBER] * _GUARDS]
    if not isinstance(whole, dict):
        return whole
    made = {key: guarded(one) if key in ("type", "items", "values") else one for key, one in whole.items()}
    if "fields" in whole:
        made["fields"] = [{**one, "type": guarded(one["type"])} for one in whole["fields"]]
    if whole.get("type") == "enum":
        made["symbols"] = [*whole["symbols"], *[NO_SYMBOL] * _GUARDS]
    if _NAMED in whole:
        made[_NAMED] = {name: guarded(one) for name, one in whole[_NAMED].items()}
    return made


def _unlogical(tree: Any) -> Any:
    """The schema with its logical types under another name."""
    if isinstance(tree, list):
        members = [_unlogical(one) for one in tree]
        plain = len(members) == 2 and "null" in members
        return members if plain else [_tagged(one) for one in members]
    if not isinstance(tree, dict):
        return tree
    if tree.get("type") == "null":
        return "null"
    made = {key: _unlogical(one) if key in ("type", "items", "values") else one for key, one in tree.items()}
    if isinstance(fields := tree.get("fields"), list):
        made["fields"] = [{**one, "type": _unlogical(one["type"])} for one in fields]
    if "logicalType" in made:
        made[LOGICAL_TYPE] = made.pop("logicalType")
    return made


def _tagged(member: Any) -> Any:
    if isinstance(member, str):
        return {"type": member, "logicalType": TAGGED} if member in _TAGGABLE else member
    return {**member, "logicalType": TAGGED} if member.get("type") in _TAGGABLE else member


def member_field(parsed: Parsed, avro: Avro, options: AvroOptions, place: int) -> str:
    """The field that stands for a member of a union."""
    node = parsed.resolved(avro)
    if isinstance(node, list):
        raise DataError("Avro has no union within a union")
    named = node["type"] in names.NAMED
    return options.member_name(node["name"] if named else None, str(node["type"]), place)


def is_entry(node: Mapping[str, Any]) -> bool:
    """Whether a record stands for a pair of a map whose keys are no plain strings."""
    if node["type"] != "record":
        return False
    return node["name"] == f"{names.NAMESPACE}.{names.MAP_ENTRY}" or node.get(names.INTERNAL_TYPE) == names.MAP_ENTRY
