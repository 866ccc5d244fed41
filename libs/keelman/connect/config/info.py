"""Converts keys and values to the JSON of Connect's REST API: `ConfigKeyInfo`, `ConfigValueInfo`, `ConfigInfos`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, Width, text_of
from keelman.connect.config.types import REQUIRED


@dataclass(frozen=True, slots=True)
class ConfigError:
    """An error of one key: the value as given, None when missing, and Connect's text."""

    key: str
    value: str | None
    message: str


Info = dict[str, Any]
"""{"definition": ConfigKeyInfo or None, "value": ConfigValueInfo}"""


def key_info(key: ConfigKey, prefix: str = "") -> dict[str, Any]:
    """Returns ConfigKeyInfo, its keys in Connect's order."""
    return {
        "name": prefix + key.name,
        "type": key.type.value,
        "required": key.required,
        "default_value": None if key.required else text_of(key.default, key.type),
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
    }


def value_info(value: ConfigValue, kind: Type | None, prefix: str = "") -> dict[str, Any]:
    """Returns ConfigValueInfo."""
    single = Type.STRING if kind is Type.LIST else kind
    return {
        "name": prefix + value.name,
        "value": text_of(value.value, kind),
        "recommended_values": [text_of(item, single) for item in value.recommended],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def infos(keys: Mapping[str, ConfigKey], values: Mapping[str, ConfigValue]) -> list[Info]:
    """Returns the values of undefined keys first, then the keys in their order."""
    undefined = [value for name, value in values.items() if name not in keys]
    return [
        *({"definition": None, "value": value_info(value, None)} for value in undefined),
        *(
            {"definition": key_info(key), "value": value_info(values[name], key.type) if name in values else None}
            for name, key in keys.items()
        ),
    ]


def prefixed_infos(keys: Mapping[str, ConfigKey], values: Iterable[ConfigValue], prefix: str) -> list[Info]:
    """Returns values in their own order, under a prefix."""
    shown: list[Info] = []
    for value in values:
        key = keys.get(value.name)
        kind = None if key is None else key.type
        definition = None if key is None else key_info(key, prefix)
        shown.append({"definition": definition, "value": value_info(value, kind, prefix)})
    return shown


def config_infos(name: str, groups: Iterable[str], configs: Sequence[Info]) -> dict[str, Any]:
    """Returns ConfigInfos for a connector class of this name."""
    errors = sum(len(config["value"]["errors"]) for config in configs if config["value"])
    return {"name": name, "error_count": errors, "groups": list(dict.fromkeys(groups)), "configs": list(configs)}


def problems(answer: Mapping[str, Any], config: Mapping[str, str | None]) -> list[ConfigError]:
    """Returns all errors of ConfigInfos for a configuration, in their order: the lines of a refused creation."""
    values = (config["value"] for config in answer["configs"] if config["value"])
    return [ConfigError(v["name"], config.get(v["name"]), text) for v in values for text in v["errors"]]


def keys_to_json(definition: ConfigDef) -> list[dict[str, Any]]:
    """Returns a definition as JSON, without validators and recommenders. Raises TypeError for a non-JSON default."""
    return [
        {
            "name": k.name,
            "type": k.type.value,
            "importance": k.importance.value,
            "doc": k.doc,
            "group": k.group,
            "order": k.order,
            "width": k.width.value,
            "display_name": k.display_name,
            "dependents": list(k.dependents),
            "internal": k.internal,
            "default_text": k.default_text,
        }
        | ({} if k.default is REQUIRED else {"default": k.default})
        for k in definition.keys.values()
    ]


def keys_from_json(keys: Iterable[Mapping[str, Any]]) -> ConfigDef:
    """Returns the definition given to `keys_to_json`, without validators and recommenders."""
    return ConfigDef(
        *(
            ConfigKey(
                **{
                    **k,
                    "type": Type(k["type"]),
                    "importance": Importance(k["importance"]),
                    "width": Width(k["width"]),
                    "default": k.get("default", REQUIRED),
                }
            )
            for k in keys
        )
    )
