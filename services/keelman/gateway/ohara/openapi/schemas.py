"""JSON schemas of requests and answers, for each kind of object from its table of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keelman.gateway.ohara.wire.setting_def import EMPTY, INTEGERS, Necessary, SettingDef, Type

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
WORD: Schema = {"type": "string", "pattern": r"^[a-z0-9.]{1,25}$"}
HOSTNAME: Schema = {"type": "string", "pattern": r"^[a-zA-Z0-9.\-]{1,63}$"}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
COUNT: Schema = {"type": "integer", "minimum": 0}
MILLISECONDS: Schema = {"type": "integer", "minimum": 0, "description": "milliseconds since 1970"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def ref(name: str) -> Schema:
    """Returns a reference to a schema of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(of: Schema, **more: Any) -> Schema:
    """Returns the schema of a list of these."""
    return {"type": "array", "items": of, **more}


def one_of(*words: str) -> Schema:
    """Returns the schema of an enumeration of words."""
    return {"type": "string", "enum": list(words)}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, **more: Any) -> Schema:
    """Returns the schema of an object with these fields and no others, unless `more` allows others."""
    fields = {**required, **(optional or {})}
    return {
        "type": "object", "properties": fields, "required": list(required), "additionalProperties": False, **more,
    }  # fmt: skip


VALUE = ref("Value")
"""Any JSON without empty strings and nulls, like every answer without definitions in it."""
TAGS: Schema = {"type": "object", "additionalProperties": VALUE}
KEY, SHORT_KEY = ref("Key"), ref("SentKey")

COMMON: dict[str, Schema] = {
    "Value": {
        "description": "Any JSON without an empty string or a null in it.",
        "anyOf": [
            {"type": ["boolean", "number"]},
            TEXT,
            array(VALUE),
            {"type": "object", "additionalProperties": VALUE},
        ],
    },
    "Key": record({"group": TEXT, "name": TEXT}, description="The key of an object, as it is answered."),
    "SentKey": {
        "description": "The key of an object, as it may be sent; the group is `default` where none is given.",
        "anyOf": [record({"name": WORD}, {"group": WORD}), WORD],
    },
    "SettingDefinition": record(
        {
            "key": TEXT,
            "group": TEXT,
            "displayName": TEXT,
            "orderInGroup": {"type": "integer"},
            "valueType": {"type": "string", "minLength": 1},
            "necessary": one_of("REQUIRED", "OPTIONAL", "RANDOM_DEFAULT"),
            "documentation": {"type": "string"},
            "reference": TEXT,
            "internal": FLAG,
            "permission": one_of("READ_ONLY", "CREATE_ONLY", "EDITABLE"),
            "tableKeys": array({"type": "object"}),
            "recommendedValues": array({"type": "string"}),
            "denyList": array({"type": "string"}),
        },
        {"defaultValue": {}, "regex": {"type": ["string", "null"]}, "prefix": {"type": ["string", "null"]}},
        description="One setting of a kind of object or of a connector's class.",
    ),
    "ClassInfo": record(
        {
            "classType": one_of("source", "sink", "partitioner", "stream", "topic", "unknown"),
            "className": TEXT,
            "settingDefinitions": array(ref("SettingDefinition")),
        },
        description="A class of a file or of a running cluster.",
    ),
    "Error": record(
        {"code": TEXT, "message": TEXT, "stack": TEXT},
        description="Why a request is refused; `code` is the name of a class of Ohara's or Java's.",
    ),
    "UnknownApi": record(
        {"code": TEXT, "message": TEXT, "stack": TEXT, "apiUrl": TEXT},
        description="There is no such call.",
    ),
    "Meter": record(
        {"name": TEXT, "value": NUMBER, "unit": TEXT, "document": TEXT, "queryTime": MILLISECONDS},
        {"valueInPerSec": NUMBER, "startTime": MILLISECONDS, "lastModified": MILLISECONDS},
    ),
    "NodeMetrics": {
        "type": "object",
        "additionalProperties": record({"meters": array(ref("Meter"))}),
        "description": "Metrics of a connector, topic or stream, by node.",
    },
}  # fmt: skip


def sent_setting(setting: SettingDef) -> Schema:
    """Returns the schema of a setting's value in a request."""
    sent = _sent(setting)
    more: Schema = {"description": setting.documentation} if setting.documentation else {}
    if setting.default is not None:
        more["default"] = setting.default
    return {"allOf": [sent], **more} if "$ref" in sent else {**sent, **more}


def _sent(setting: SettingDef) -> Schema:  # noqa: PLR0911
    match setting.type:
        case Type.ARRAY:
            filled = {"minItems": 1} if setting.necessary is Necessary.REQUIRED else {}
            return array(_element(setting), **filled)
        case Type.TABLE:
            return array({"type": "object"})
        case Type.OBJECT_KEY:
            return SHORT_KEY
        case Type.OBJECT_KEYS:
            return array(SHORT_KEY)
        case Type.TAGS:
            return {"type": "object"}
        case Type.BOOLEAN:
            return FLAG
        case Type.DOUBLE:
            return NUMBER
        case Type.POSITIVE_DOUBLE:
            return {"type": "number", "exclusiveMinimum": 0}
        case integer if integer in INTEGERS:
            least, greatest = INTEGERS[integer]
            return {"type": "integer", "minimum": least, "maximum": greatest}
    if setting.regex is not None:
        return {"type": "string", "pattern": f"^{setting.regex.removesuffix('$')}$"}
    return {**TEXT, "enum": list(setting.recommended)} if setting.type is Type.CLASS and setting.recommended else TEXT


def _element(setting: SettingDef) -> Schema:
    if setting.reference == "NODE":
        return {**TEXT, "not": {"enum": list(setting.deny)}} if setting.deny else TEXT
    return {} if setting.reference == "NONE" else SHORT_KEY


def answered_setting(setting: SettingDef) -> Schema:  # noqa: PLR0911
    """Returns the schema of a setting's value in an answer."""
    match setting.type:
        case Type.OBJECT_KEY:
            return KEY
        case Type.OBJECT_KEYS:
            return array(KEY)
        case Type.TAGS:
            return TAGS
        case Type.TABLE:
            return array({"type": "object", "additionalProperties": VALUE})
        case Type.ARRAY if setting.internal:
            return array(TEXT)  # names in Kafka
        case Type.ARRAY if setting.reference not in ("NODE", "NONE"):
            return array(KEY)
        case Type.ARRAY:
            filled = {"minItems": 1} if setting.necessary is Necessary.REQUIRED else {}
            return array(TEXT if setting.reference == "NODE" else VALUE, **filled)
    return _sent(setting)


def is_always_answered(setting: SettingDef) -> bool:
    """Tells whether every object has a value of this setting."""
    if setting.internal:
        return False
    if setting.necessary is not Necessary.OPTIONAL:
        return True
    return setting.default is not None or setting.type in EMPTY


def sent_object(definitions: Iterable[SettingDef], *, required: bool) -> Schema:
    """Returns the schema of a request's settings: a new object's if `required`, else a change's. Unknown settings are
    kept."""
    settings = [s for s in definitions if not s.internal]
    needed = [s.key for s in settings if required and s.necessary is Necessary.REQUIRED]
    schema: Schema = {"type": "object", "properties": {s.key: sent_setting(s) for s in settings}}
    return {**schema, "required": needed} if needed else schema


def answered_object(
    definitions: Iterable[SettingDef], live: Mapping[str, Schema], optional: Mapping[str, Schema]
) -> Schema:
    """Returns the schema of an object in an answer: its settings, its live fields, and unknown settings as sent."""
    settings = tuple(definitions)
    return {
        "type": "object",
        "properties": {**{s.key: answered_setting(s) for s in settings}, **live, **optional},
        "required": [s.key for s in settings if is_always_answered(s)] + list(live),
        "additionalProperties": VALUE,
    }
