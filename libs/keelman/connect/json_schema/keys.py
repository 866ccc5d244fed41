"""Keys of JsonSchemaConverter under Confluent's names, beside those of every converter with a registry."""

from __future__ import annotations

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, one_of_any_case
from keelman.connect.registry import keys as registry_keys

FAIL_INVALID = "json.fail.invalid.schema"


def json_schema_keys() -> ConfigDef:
    """All of them."""
    flag, medium, low = Type.BOOLEAN, Importance.MEDIUM, Importance.LOW
    more, missing = "Objects may have other properties than those of the schema.", "Properties that need not be there."
    check = "Check each value against the schema, on writing and on reading."
    form = one_of_any_case("BASE64", "NUMERIC")
    own = ConfigDef(
        ConfigKey("object.additional.properties", flag, True, medium, more),
        ConfigKey("use.optional.for.nonrequired", flag, False, medium, f"{missing} may be null."),
        ConfigKey("decimal.format", Type.STRING, "BASE64", low, "How decimals are written.", form),
        ConfigKey(FAIL_INVALID, flag, False, medium, check),
    )
    return registry_keys.registry_keys() + registry_keys.data_keys() + own
