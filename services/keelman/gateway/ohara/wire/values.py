"""Checks the settings of a request against a table of definitions, and completes them with defaults."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from keelman.gateway.ohara.wire.errors import bad_value
from keelman.gateway.ohara.wire.json_types import empty_strings, is_number, type_name, without_nulls
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of
from keelman.gateway.ohara.wire.setting_def import EMPTY, INTEGERS, Necessary, Permission, SettingDef, Type, by_key

Settings: TypeAlias = dict[str, Any]
RANDOM_LENGTH = 25
ANY_NAMES = ("NONE", "FILE", "NODE")
"""The references of settings whose names are not checked as keys."""
RUN_TIME = frozenset(
    ("aliveNodes", "lastModified", "state", "error", "partitionInfos", "nodeMetrics", "metrics", "status",
     "tasksStatus", "settings")
)  # fmt: skip
"""The fields of answers that are not settings; ignored in a request."""
_DURATION = re.compile(
    r"-?\d+(?:\.\d+)? ?(?:d|days?|h|hours?|m|min|mins|minutes?|s|secs?|seconds?|ms|millis|milliseconds?|"
    r"µs|micros?|microseconds?|ns|nanos?|nanoseconds?)"
)


def sent(value: Any) -> Settings:
    """Returns the settings of a request without nulls and run-time keys. Raises OharaError for a value that is no
    object, and for an empty string anywhere in it."""
    if not isinstance(value, dict):
        raise bad_value(f'Object expected, but actual type is "{type_name(value)}"')
    settings: Settings = {k: v for k, v in without_nulls(value).items() if k not in RUN_TIME}
    for key in empty_strings(settings):
        raise bad_value(f'the value of "{key}" can\'t be empty string!!!')
    return settings


def created(definitions: Iterable[SettingDef], settings: Mapping[str, Any]) -> Settings:
    """Returns all settings of a new object: the given ones, checked, and the defaults, without ports of RANDOM_DEFAULT,
    which the owner of the ports chooses. Raises OharaError."""
    by_name = by_key(definitions)
    own = {k: v for k, v in settings.items() if k not in by_name or by_name[k].permission is not Permission.READ_ONLY}
    missing = [
        setting.key
        for setting in by_name.values()
        if setting.necessary is Necessary.REQUIRED and setting.key not in own
    ]
    if missing:
        raise bad_value(f"Set({', '.join(missing)}) are required!!!")
    complete: Settings = {}
    for setting in by_name.values():
        if setting.key in own:
            complete[setting.key] = checked(setting, own[setting.key])
        elif (default := default_of(setting)) is not None:
            complete[setting.key] = default
    return complete | {key: value for key, value in own.items() if key not in by_name}


def edited(definitions: Iterable[SettingDef], previous: Mapping[str, Any], settings: Mapping[str, Any]) -> Settings:
    """Returns all settings of a changed object: the previous ones, overridden by the given editable ones, checked as
    for a new object. Given settings that cannot be changed must be legal too. Raises OharaError."""
    definitions = tuple(definitions)
    fixed = {definition.key for definition in definitions if definition.permission is not Permission.EDITABLE}
    for definition in definitions:
        if definition.permission is Permission.CREATE_ONLY and definition.key in settings:
            checked(definition, settings[definition.key])
    return created(definitions, {**previous, **{k: v for k, v in settings.items() if k not in fixed}})


def default_of(setting: SettingDef) -> Any:
    """Returns the default of a setting; None for no default, and for a port, which is not chosen here."""
    if setting.default is not None:
        return copy.deepcopy(setting.default)
    if setting.necessary is Necessary.RANDOM_DEFAULT:
        return (setting.prefix or "") + random_word() if setting.type is Type.STRING else None
    empty = EMPTY.get(setting.type) if setting.necessary is Necessary.OPTIONAL else None
    return None if empty is None else empty()


def random_word() -> str:
    """Returns 25 random lower-case hexadecimal digits."""
    return secrets.token_hex(RANDOM_LENGTH // 2 + 1)[:RANDOM_LENGTH]


def checked(setting: SettingDef, value: Any) -> Any:
    """Returns a checked value of a setting, keys in their full form and whole numbers as int. Raises OharaError."""
    key = setting.key
    match setting.type:
        case Type.ARRAY | Type.TABLE:
            _check_type(key, value, "JsArray")
            _check_array(setting, value)
        case Type.OBJECT_KEYS:
            _check_type(key, value, "JsArray")
            return [_key(setting, item).json for item in value]
        case Type.OBJECT_KEY:
            return _key(setting, value).json
        case Type.TAGS:
            _check_type(key, value, "JsObject")
        case Type.BOOLEAN:
            _check_type(key, value, "JsBoolean")
        case Type.DOUBLE | Type.POSITIVE_DOUBLE:
            _check_type(key, value, "JsNumber")
            if setting.type is Type.POSITIVE_DOUBLE and value <= 0:
                raise bad_value(f"{key}: the number must be positive, actual:{value}")
        case integer if integer in INTEGERS:
            return _integer(key, value, *INTEGERS[integer])
        case _:
            _check_type(key, value, "JsString")
            _check_text(setting, value)
    return value


def _key(setting: SettingDef, value: Any) -> ObjectKey:
    """Returns a checked key; a key of a kind in ANY_NAMES, whose names follow no rule, unchecked."""
    key = key_of(value, setting.key)
    return key if setting.reference in ANY_NAMES else checked_key(key.group, key.name)


def _integer(key: str, value: Any, least: int, greatest: int) -> int:
    _check_type(key, value, "JsNumber")
    if not least <= value <= greatest or value != int(value):
        raise bad_value(f"{key}: the number must be [{least}, {greatest}], actual:{value}")
    return int(value)


def _check_array(setting: SettingDef, value: list[Any]) -> None:
    if not value and setting.necessary is Necessary.REQUIRED:
        raise bad_value(f"empty array is illegal to {setting.key}")
    for item in value:
        if setting.reference == "NODE":
            _check_type(setting.key, item, "JsString")
        if isinstance(item, str) and item in setting.deny:
            raise bad_value(f"the {item} is protected word")


def _check_text(setting: SettingDef, text: str) -> None:
    if setting.regex is not None and not re.fullmatch(setting.regex.removesuffix("$"), text):
        raise bad_value(f'the value "{text}" is not matched to {setting.regex}')
    if text in setting.deny:
        raise bad_value(f"the {text} is protected word")
    if setting.type is Type.DURATION and not _DURATION.fullmatch(text):
        raise bad_value(f'{setting.key}: "{text}" is no duration such as "10 seconds"')


def _check_type(key: str, value: Any, expected: str) -> None:
    if expected == "JsNumber" and is_number(value):
        return
    if (actual := type_name(value)) != expected:
        raise bad_value(f'the {key} must be {expected} type, but actual type is "{actual}"')
