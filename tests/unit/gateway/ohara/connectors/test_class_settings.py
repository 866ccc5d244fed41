"""Settings of connector classes, derived from Connect's definitions of their keys."""

import orjson

from keelman.gateway.ohara.connectors.class_settings import class_of_keys, defaults, generic_class, is_ohara
from keelman.gateway.ohara.definitions.connector import CONNECTOR

FIELDS = {
    "key", "group", "displayName", "orderInGroup", "valueType", "necessary", "defaultValue", "documentation",
    "reference", "regex", "internal", "permission", "tableKeys", "recommendedValues", "denyList", "prefix",
}  # fmt: skip
FILE = {
    "name": "file", "type": "STRING", "required": False, "default_value": None, "documentation": "Source filename.",
    "group": None, "display_name": "file",
}  # fmt: skip
BATCH = {
    "name": "batch.size", "type": "INT", "required": False, "default_value": "2000", "documentation": "", "group": "",
    "display_name": "batch.size",
}  # fmt: skip
TASKS = {"name": "tasks.max", "type": "INT", "required": False, "default_value": "1", "documentation": "Tasks."}
LISTED = {"name": "fields", "type": "LIST", "required": True, "default_value": "", "documentation": "Fields."}


def test_a_class_of_connects_has_the_settings_of_all_and_its_own() -> None:
    info = class_of_keys("source", "a.B", "4.3.0", [FILE, BATCH, TASKS, LISTED])
    settings = {definition["key"]: definition for definition in info["settingDefinitions"]}
    assert all(setting.keys() == FIELDS for setting in settings.values())
    assert (info["classType"], info["className"]) == ("source", "a.B")
    assert len(settings) == len(CONNECTOR) + 3 + 4
    assert settings["tasks.max"]["valueType"] == "POSITIVE_INT"
    assert (settings["batch.size"]["defaultValue"], settings["batch.size"]["group"]) == (2000, "common")
    assert (settings["fields"]["necessary"], settings["fields"]["defaultValue"]) == ("REQUIRED", None)
    assert all(setting["documentation"] for setting in settings.values())
    assert defaults(info) == {
        "batch.size": 2000, "author": "unknown", "version": "4.3.0", "revision": "unknown", "kind": "source"
    }  # fmt: skip
    assert not is_ohara(info)


def test_a_class_of_oharas_has_the_settings_that_it_carries_itself() -> None:
    carried = generic_class("sink", "oharastream.X", "0.11.1", ohara=True)["settingDefinitions"]
    own = carried[0] | {"key": "perf.batch", "valueType": "INT", "necessary": "OPTIONAL", "defaultValue": 10}
    keys = [FILE, *({"name": entry["key"], "display_name": orjson.dumps(entry).decode()} for entry in (*carried, own))]
    info = class_of_keys("source", "oharastream.X", "9", keys)
    assert info["classType"] == "sink"
    assert info["settingDefinitions"] == [*carried, own]
    assert is_ohara(info)
    assert defaults(info)["perf.batch"] == 10
    assert defaults(info)["key.converter"] == "org.apache.kafka.connect.converters.ByteArrayConverter"


def test_a_display_name_that_only_looks_like_json_is_a_name() -> None:
    for text in ("{", "{}", '{"key": 1}', "[]"):
        info = class_of_keys("sink", "a.B", "", [FILE | {"display_name": text}])
        assert any(definition["key"] == "file" for definition in info["settingDefinitions"])
