"""Converts names of Connect's schemas to legal ones of Avro, in Confluent's mapping; holds the options of both
directions.

As of Confluent's AvroData (Apache License 2.0), https://docs.confluent.io/platform/current/schema-registry/connect.html;
tests/recorded/data/avro.json holds the results of a converter derived from it for many schemas and values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus

from keelman.connect.errors import DataError
from keelman.connect.registry.keys import ConverterOptions
from keelman.connect.registry.sum_types import ANY_ENUM, ANY_UNION_FIELD, is_any_union
from keelman.connect.schema import Schema

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = "ConnectDefault"
MAP_ENTRY = "MapEntry"
ANYTHING = f"{NAMESPACE}.Anything"
UNION = f"{NAMESPACE}.Union"
ENUM = f"{NAMESPACE}.Enum"
RECORD_DOC = f"{NAMESPACE}.record.doc"
FIELD_DOC = f"{NAMESPACE}.field.doc."
ENUM_DOC = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT = f"{NAMESPACE}.enum.default."
FIELD_DEFAULT = f"{NAMESPACE}.field.default"
"""A parameter: the schema's default came from the field of an Avro record."""
NAME, DOC, VERSION, DEFAULT = "connect.name", "connect.doc", "connect.version", "connect.default"
PARAMETERS, TYPE, INTERNAL_TYPE = "connect.parameters", "connect.type", "connect.internal.type"
RECORD_DOC_ALONE, ENUM_DOC_ALONE = "connect.record.doc", "connect.enum.doc"
PRECISION, FIXED_SIZE = "connect.decimal.precision", "connect.fixed.size"
DEFAULT_PRECISION = 64

AVRO_TYPES: Mapping[str, str] = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "array": "array",
    "map": "map",
}
"""Avro's types by Connect's; a struct is a record."""
NAMED = frozenset({"record", "enum", "fixed"})
_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OTHER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class AvroOptions(ConverterOptions):
    """The keys of a configuration for the mapping of schemas. Fields have the keys' names, with underscores."""

    enhanced_avro_schema_support: bool = False
    connect_meta_data: bool = True
    scrub_invalid_names: bool = False
    discard_type_doc_default: bool = False
    allow_optional_map_keys: bool = False
    flatten_singleton_unions: bool = True
    generalized_sum_type_support: bool = False
    ignore_default_for_nullables: bool = False

    def scrubbed(self, name: str) -> str:
        """Returns a field's name in Avro."""
        return scrubbed(name) if self.scrub_invalid_names else name

    def scrubbed_full(self, name: str) -> str:
        """Returns a schema's full name in Avro: its last part made legal, the namespace too."""
        return ".".join(scrubbed(part) for part in name.split(".")) if self.scrub_invalid_names else name

    def plain_keys(self, schema: Schema) -> bool:
        """Whether a map's keys can be the keys of an Avro map."""
        key = schema.key
        return key is not None and key.type == "string" and (not key.optional or self.allow_optional_map_keys)

    @property
    def enum_parameter(self) -> str | None:
        """The parameter that makes a string an enum when it is written; None when enums are written as strings."""
        if self.generalized_sum_type_support:
            return ANY_ENUM
        return ENUM if self.enhanced_avro_schema_support else None

    def member_name(self, full_name: str | None, kind: str, index: int) -> str:
        """Returns the field for a union's member: the name of a named type, else the type. `index` counts all."""
        if self.generalized_sum_type_support:
            return f"{ANY_UNION_FIELD}{index}"
        if full_name is None:
            return kind
        return full_name if self.enhanced_avro_schema_support else full_name.rpartition(".")[2]


def scrubbed(name: str) -> str:
    """Returns a name with illegal characters replaced: URL-encoded, then each other character by `_`."""
    if not name or _LEGAL.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*-._")
    return _OTHER.sub("_", "x" + encoded if encoded[0].isdigit() else encoded)


def checked_name(name: str) -> str:
    """Returns the simple name if it is legal in Avro; raises DataError with Avro's own words."""
    if not name:
        raise DataError("Empty name")
    if not _LEGAL.fullmatch(name):
        initial = re.match(r"[A-Za-z_]", name) is None
        hint = "; scrub.invalid.names=true makes names legal"
        raise DataError(f"{'Illegal initial character' if initial else 'Illegal character in'}: {name}{hint}")
    return name


def is_union(schema: Schema) -> bool:
    """Whether a struct represents a union: one of its fields is set."""
    if schema.type != "struct":
        return False
    return schema.name == UNION or is_any_union(schema)


def fixed_size(schema: Schema) -> int | None:
    """Returns the required length of bytes that are written as a fixed; None for others."""
    if schema.type != "bytes" or schema.name is None:
        return None
    text = next((value for key, value in schema.parameters if key == FIXED_SIZE), None)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise DataError(f"{FIXED_SIZE}: {text!r} is not a size, which is a whole number")
    return int(text)
