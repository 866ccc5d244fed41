"""Names of Confluent's mapping between Connect's schemas and Protobuf: parameters, types, files; and the conversion of
names that are illegal in Protobuf.

https://docs.confluent.io/platform/current/schema-registry/connect.html#protobuf
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote_plus

from keelman.connect.converters.logical import DATE, DECIMAL, TIME, TIMESTAMP
from keelman.connect.registry.sum_types import enum_key, is_any_union
from keelman.connect.schema import Schema

_SPACE = "io.confluent.connect.protobuf"
ENUM, UNION, TAG, TYPE = (f"{_SPACE}.{word}" for word in ("Enum", "Union", "Tag", "Type"))
"""Parameters of schemas: an enum's name (and `<ENUM>.<symbol>` its number), the prefix of a oneof's schema, a field's
number, a number's type where Connect's type has another one."""
PRECISION = "connect.decimal.precision"
DEFAULT_NAME = "ConnectDefault"
ENTRY, KEY, VALUE = "Entry", "key", "value"

LOGICAL: Mapping[str, tuple[str, str]] = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
"""The message and file of each logical type."""
LOGICAL_NAMES: Mapping[str, str] = {message: name for name, (message, _) in LOGICAL.items()}

WRAPPERS: Mapping[str, str] = {
    "double": "DoubleValue",
    "float": "FloatValue",
    "int64": "Int64Value",
    "uint64": "UInt64Value",
    "int32": "Int32Value",
    "uint32": "UInt32Value",
    "bool": "BoolValue",
    "string": "StringValue",
    "bytes": "BytesValue",
}
"""The wrappers of google/protobuf/wrappers.proto by the types of their values, in their order there."""
WRAPPERS_FILE, WRAPPERS_PACKAGE = "google/protobuf/wrappers.proto", "google.protobuf"
WRAPPER_TYPES: Mapping[str, str] = {f"{WRAPPERS_PACKAGE}.{name}": kind for kind, name in WRAPPERS.items()}

META_FILE = "confluent/meta.proto"
KNOWN_FILES: Mapping[str, str] = {
    META_FILE: """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
""",
}
"""Files, besides Google's, that every schema may import without a copy in the registry; in our own words, numbers
and names as in Confluent's."""

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INVALID = re.compile(r"[^A-Za-z0-9_]")


def scrubbed(name: str) -> str:
    """Returns a name legal in Protobuf (`scrub.invalid.names`): the name, or its URL encoding with underscores."""
    if not name or _VALID.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*", errors="replace").replace("~", "%7E")
    if encoded[0] in "0123456789_":
        encoded = f"x{encoded}"
    return _INVALID.sub("_", encoded)


def split_name(full: str) -> tuple[str, str]:
    """Returns the package, empty for none, and the rest of a full name."""
    package, _, name = full.rpartition(".")
    return package, name


def entry_name(name: str) -> str:
    """Returns the name of the message for the entries of a map."""
    if "_" in name:
        name = "".join(word[:1].upper() + word[1:].lower() for word in name.split("_"))
    return name + ENTRY


def map_name(entry: str) -> str:
    """Returns the name of a map from that of the message for its entries."""
    package, _, name = entry.rpartition(".")
    if name.endswith(ENTRY):
        name = name.removesuffix(ENTRY)
        name = re.sub(r"(?<=.)([A-Z])", r"_\1", name).lower()
    return f"{package}.{name}" if package else name


def is_union(schema: Schema) -> bool:
    """Whether a struct represents a oneof: at most one of its fields is not null."""
    if schema.type != "struct":
        return False
    return (schema.name or "").startswith(UNION) or is_any_union(schema)


def enum_of(schema: Schema, *, general: bool) -> tuple[str, dict[str, int]] | None:
    """Returns the enum of a schema: its name, empty for none, and the numbers of its symbols; None without an enum.

    Raises ValueError for an invalid number.
    """
    if schema.type not in ("string", "int32"):
        return None
    parameters = dict(schema.parameters)
    key = enum_key(parameters, ENUM, general=general)
    if key is None:
        return None
    prefix = f"{key}."
    return parameters[key], {
        key.removeprefix(prefix): int(text) for key, text in parameters.items() if key.startswith(prefix)
    }
