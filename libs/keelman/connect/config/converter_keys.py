"""Defines keys of converters under Connect's names, in its groups; in a connector they have a prefix, such as
`key.converter.`."""

from __future__ import annotations

from keelman.connect.config.definition import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    Type,
    Validator,
    Width,
    one_of,
    one_of_any_case,
)

ROLE = "converter.type"
_HIGH, _LOW = Importance.HIGH, Importance.LOW
_SCHEMAS, _WRITING, _WIDE = "Schemas", "Serialization", Width.MEDIUM


def common_keys() -> ConfigDef:
    """Returns the key of every converter for its role. The code that creates the converter sets it."""
    rule = one_of("key", "value", "header")
    return ConfigDef(ConfigKey(ROLE, Type.STRING, REQUIRED, _LOW, "What it converts: key, value or header.", rule))


def string_keys() -> ConfigDef:
    """Returns `converter.encoding`, UTF-8 by default."""
    doc = "Name of the character set of strings in Kafka."
    return common_keys() + ConfigDef(
        ConfigKey("converter.encoding", Type.STRING, "UTF-8", _HIGH, doc, width=_WIDE, display_name="Encoding")
    )


def json_keys(content: Validator) -> ConfigDef:
    """Returns `schemas.enable`, `schemas.cache.size`, `schema.content`, `decimal.format`, `replace.null.with.default`;
    with the rule of `schema.content` (KIP-1054)."""
    flag, form = Type.BOOLEAN, one_of_any_case("NUMERIC", "BASE64")
    beside, cache_doc = "Keep each value's schema beside it.", "Schemas kept translated."
    content_doc = "Schema of all values read, as JSON; none where it is empty. Then values have no schema beside them."
    default, instead = "Replace null with default", "Write a field's default for null."
    return common_keys() + ConfigDef(
        ConfigKey("schemas.enable", flag, True, _HIGH, beside, None, _SCHEMAS, 0, _WIDE, "Enable Schemas"),
        ConfigKey(
            "schemas.cache.size", Type.INT, 1000, _HIGH, cache_doc, None, _SCHEMAS, 1, _WIDE, "Schema Cache Size"
        ),
        ConfigKey(
            "schema.content", Type.STRING, None, _HIGH, content_doc, content, _SCHEMAS, 2, _WIDE, "Schema Content"
        ),
        ConfigKey(
            "decimal.format",
            Type.STRING,
            "BASE64",
            _LOW,
            "How decimals are written.",
            form,
            _WRITING,
            0,
            _WIDE,
            "Decimal Format",
        ),
        ConfigKey("replace.null.with.default", flag, True, _LOW, instead, None, _WRITING, 1, _WIDE, default),
    )
