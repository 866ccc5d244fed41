"""Translates a connector class's keys, as Connect's REST API lists them, into settings in Ohara's form. Pure.

A class of Ohara's carries its own settings in the display names of its keys. Any other class has the settings of all
connectors, its own keys, and the settings that identify the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from keelman.gateway.ohara.definitions.connector import CONNECTOR, KIND, OHARA_CONNECTOR, UNKNOWN, meta
from keelman.gateway.ohara.definitions.stream import STREAM
from keelman.gateway.ohara.wire.setting_def import Definitions, Necessary, SettingDef, Type

Json = dict[str, Any]
_TYPES = {
    "BOOLEAN": Type.BOOLEAN,
    "STRING": Type.STRING,
    "INT": Type.INT,
    "SHORT": Type.SHORT,
    "LONG": Type.LONG,
    "DOUBLE": Type.DOUBLE,
    "LIST": Type.ARRAY,
    "CLASS": Type.CLASS,
    "PASSWORD": Type.PASSWORD,
}
_FIELDS = frozenset(CONNECTOR[0].json)
"""The fields of a setting's JSON."""


def class_info(kind: str, name: str, settings: Sequence[Json]) -> Json:
    """Returns a class and its settings."""
    return {"classType": kind, "className": name, "settingDefinitions": list(settings)}


def generic_class(kind: str, name: str, version: str = "", *, ohara: bool = False) -> Json:
    """Returns a class of which only the kind is known: source, sink, stream or partitioner."""
    table: Definitions = OHARA_CONNECTOR if ohara else CONNECTOR
    if kind not in ("source", "sink", UNKNOWN):
        table = STREAM if kind == "stream" else ()
    return class_info(kind, name, [setting.json for setting in (*table, *meta(kind, version))])


def class_of_keys(kind: str, name: str, version: str, keys: Iterable[Mapping[str, Any]]) -> Json:
    """Returns a class from the keys that Connect reports, each a ConfigKeyInfo."""
    keys = list(keys)
    if own := [setting for key in keys if (setting := own_setting(key)) is not None]:
        named = next((setting["defaultValue"] for setting in own if setting["key"] == KIND), None)
        return class_info(named if isinstance(named, str) else kind, name, own)
    own_keys = {setting.key for setting in CONNECTOR}
    more = [setting_of(key) for key in keys if key["name"] not in own_keys and "__" not in key["name"]]
    places = {setting.key: place for place, setting in enumerate(more, len(CONNECTOR))}
    shown = [setting.json | {"orderInGroup": places[setting.key]} for setting in more]
    return class_info(
        kind, name, [setting.json for setting in CONNECTOR] + shown + [setting.json for setting in meta(kind, version)]
    )


def own_setting(key: Mapping[str, Any]) -> Json | None:
    """Returns the setting in a key's display name; None if there is none."""
    text = key.get("display_name") or ""
    if not text.startswith("{"):
        return None
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return tree if isinstance(tree, dict) and tree.keys() >= {"key", "valueType", "necessary"} else None


def setting_of(key: Mapping[str, Any]) -> SettingDef:
    """Returns a key of Connect's as a setting. Lists get no default: Ohara's clients refuse one."""
    kind = _TYPES.get(key.get("type") or "", Type.STRING)
    return SettingDef(
        key["name"],
        kind,
        (key.get("documentation") or "").strip() or "this setting has no documentation",
        group=(key.get("group") or "").strip() or "common",
        necessary=Necessary.REQUIRED if key.get("required") else Necessary.OPTIONAL,
        default=_default(kind, key.get("default_value")),
    )


def defaults(info: Json) -> dict[str, Any]:
    """Returns the defaults of a class's own settings, and of the settings that identify the class."""
    shared = {setting.key for setting in CONNECTOR}
    return {
        definition["key"]: definition["defaultValue"]
        for definition in info["settingDefinitions"]
        if definition.get("defaultValue") is not None and (definition["key"] not in shared or is_ohara(info))
    }


def is_ohara(info: Json) -> bool:
    """Tells whether a class is one of Ohara's: its key.converter is a setting with a default."""
    return any(
        definition["key"] == "key.converter" and definition.get("defaultValue") is not None
        for definition in info["settingDefinitions"]
    )


def _default(kind: Type, text: str | None) -> Any:
    if not text or kind is Type.ARRAY:
        return None
    try:
        match kind:
            case Type.BOOLEAN:
                return text.lower() == "true"
            case Type.INT | Type.SHORT | Type.LONG:
                return int(text)
            case Type.DOUBLE:
                return float(text)
    except ValueError:
        return None
    return text
