"""Keys of ProtobufConverter under Confluent's names, beside those of every converter with a registry."""

from __future__ import annotations

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.registry import keys as registry_keys

_TABLE = (
    ("enhanced.protobuf.schema.support", False, "Keep the package in the names of schemas."),
    ("scrub.invalid.names", False, "Replace what Protobuf does not take in names."),
    ("int.for.enums", False, "Read enums as numbers, not as their symbols."),
    (
        "optional.for.nullables",
        False,
        "Write fields that may be null as optional, and read only optional ones as such.",
    ),
    ("generate.struct.for.nulls", False, "Read a message that is not there as a struct with its defaults."),
    ("generate.index.for.unions", True, "Add its place to the name of the field that a oneof becomes."),
    ("flatten.unions", False, "Read the fields of a oneof as fields of the struct, not as a struct of their own."),
    ("optional.for.proto2", True, "Heed optional in proto2, too."),
    ("wrapper.for.nullables", False, "Write fields that may be null as wrappers such as google.protobuf.Int64Value."),
    ("wrapper.for.raw.primitives", True, "Read a record that is a wrapper as the value in it."),
)


def protobuf_keys() -> ConfigDef:
    """All of them."""
    own = (ConfigKey(name, Type.BOOLEAN, default, Importance.MEDIUM, doc) for name, default, doc in _TABLE)
    return registry_keys.registry_keys() + registry_keys.data_keys() + ConfigDef(*own)
