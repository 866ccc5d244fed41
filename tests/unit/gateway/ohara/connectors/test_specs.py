"""The stored form of a connector's settings, and the answers made from it."""

from typing import Any

import pytest

from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition, ConnectorDefinitionSpec
from keelman.gateway.ohara.connectors.class_settings import class_of_keys, generic_class
from keelman.gateway.ohara.connectors.columns import check_columns
from keelman.gateway.ohara.connectors.specs import ConnectorSettings, answer_of, settings_of, spec_of
from keelman.gateway.ohara.definitions.connector import CONNECTOR
from keelman.gateway.ohara.wire.errors import OharaError
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.values import created

KEY, WORKER = ObjectKey("g", "c"), ObjectKey("default", "wk")
SENT = tuple(definition for definition in CONNECTOR if not definition.internal)
FILE = {"name": "file", "type": "STRING", "required": False}
TOPIC = {"name": "topic", "type": "STRING", "required": True}
BATCH = {"name": "batch.size", "type": "INT", "required": False, "default_value": "2000"}


def settings(**fields: Any) -> dict[str, Any]:
    """A connector's settings, with the defaults."""
    sent = {"group": "g", "name": "c", "connector.class": "a.Source", "workerClusterKey": "wk", "topicKeys": ["t"]}
    return created(SENT, sent | fields)


def kept(expected_settings: ConnectorSettings) -> ConnectorDefinition:
    """The definition for these settings."""
    return ConnectorDefinition(name="oh-1", spec=spec_of(KEY, expected_settings, "oh-wk"))


def test_settings_come_back_as_they_were_sent() -> None:
    merged = settings(**{
        "tasks.max": 3, "columns": [{"order": 1, "name": "a", "newName": "b", "dataType": "INT"}], "tags": {"x": [1]},
        "flag": True, "ratio": 0.5, "list": ["a", "b"], "text": "x", "asText": '["a"]', "none": [], "deep": {"a": {}},
        "big": 1 << 60,
    })  # fmt: skip
    definition = kept(ConnectorSettings(merged, None, ["default-t"]))
    assert settings_of(KEY, definition, WORKER) == merged
    config = definition.spec.config
    assert (config["list"], config["asText"], config["flag"], config["big"]) == ("a,b", "a", "true", str(1 << 60))
    assert "none" not in config
    assert "name" not in config
    assert definition.spec.connector == "g-c"


def test_what_somebody_changed_elsewhere_is_answered() -> None:
    definition = kept(ConnectorSettings(settings(list=["a"], text="x")))
    definition.spec.config.update({"tasks.max": "7", "list": "b,c", "text": "y", "more": "z"})
    actual_settings = settings_of(KEY, definition, WORKER)
    assert (
        actual_settings["tasks.max"],
        actual_settings["list"],
        actual_settings["text"],
        actual_settings["more"],
    ) == (7, ["b", "c"], "y", "z")


def test_a_definition_that_was_made_elsewhere_has_all_settings() -> None:
    spec = ConnectorDefinitionSpec(
        connector="files", config={"connector.class": "a.B", "tasks.max": "2", "topics": "x"}
    )
    answer = answer_of(ObjectKey("default", "files"), ConnectorDefinition(name="files", spec=spec), WORKER)
    assert (answer["tasks.max"], answer["topicKeys"], answer["topics"]) == (2, [], ["x"])
    assert (answer["columns"], answer["check.rule"], answer["workerClusterKey"]) == ([], "NONE", WORKER.json)
    spec.config["empty"] = ""
    spec.extra.update({"settings": "theirs"})
    assert answer_of(ObjectKey("default", "files"), ConnectorDefinition(name="files", spec=spec), WORKER) == answer


def test_the_defaults_of_a_class_are_answered_and_not_sent_to_connect() -> None:
    info = class_of_keys("source", "a.Source", "4.3.0", [FILE, BATCH])
    definition = kept(ConnectorSettings(settings(), info))
    answer = answer_of(KEY, definition, WORKER)
    assert (answer["batch.size"], answer["kind"], answer["version"]) == (2000, "source", "4.3.0")
    assert answer["key.converter"] == "org.apache.kafka.connect.json.JsonConverter"
    assert not {"batch.size", "kind", "key.converter"} & set(definition.spec.config)
    whole = created(SENT, {k: v for k, v in answer.items() if k not in ("connectorKey", "topics")})
    again = kept(ConnectorSettings(whole, info))
    assert "batch.size" not in again.spec.config
    assert kept(ConnectorSettings(settings(**{"batch.size": 5}), info)).spec.config["batch.size"] == "5"


def test_classes_of_oharas_get_its_converters_unless_others_are_sent() -> None:
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    merged = settings(**{"connector.class": "oharastream.ohara.connector.ftp.FtpSource"})
    assert kept(ConnectorSettings(merged)).spec.config["value.converter"] == converter
    own = generic_class("source", "com.acme.Row", ohara=True)
    assert (
        kept(ConnectorSettings(settings(**{"connector.class": "com.acme.Row"}), own)).spec.config["key.converter"]
        == converter
    )
    sent = settings(**{"connector.class": "com.acme.Row", "key.converter": "a.C"})
    assert kept(ConnectorSettings(sent, own)).spec.config["key.converter"] == "a.C"
    assert "key.converter" not in settings_of(KEY, kept(ConnectorSettings(merged)), WORKER)


def test_a_class_that_takes_one_topic_gets_the_first() -> None:
    info = class_of_keys("source", "a.Source", "", [FILE, TOPIC])
    definition = kept(ConnectorSettings(settings(), info, ["default-t", "default-u"]))
    assert (definition.spec.config["topic"], definition.spec.config["topics"]) == ("default-t", "default-t,default-u")
    assert "topic" not in answer_of(KEY, definition, WORKER)
    assert kept(ConnectorSettings(settings(topic="own"), info, ["default-t"])).spec.config["topic"] == "own"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["a"], "must be JsObject type"),
        ([{"name": "a", "dataType": "INT", "order": -1}], "order can't be negative number"),
        (
            [{"name": "a", "dataType": "INT", "order": 1}, {"name": "b", "dataType": "INT", "order": 1}],
            "duplicate order",
        ),
        ([{"name": "a", "dataType": "NO", "order": 1}], "dataType 'NO' is not one of"),
        ([{"dataType": "INT", "order": 1}], "name must be a string"),
        ([{"name": "a", "newName": 1, "dataType": "INT", "order": 1}], "newName must be a string"),
        ([{"name": "a", "dataType": "INT", "order": 1.5}], "order must be a whole number"),
    ],
)
def test_columns_that_cannot_be_are_refused(columns: list[Any], reason: str) -> None:
    with pytest.raises(OharaError, match=reason):
        check_columns(columns)


def test_columns_are_taken_with_numbers_as_texts_too() -> None:
    check_columns(
        [
            {"name": "a", "newName": "b", "dataType": "string", "order": "1"},
            {"name": "c", "dataType": "INT", "order": 2},
        ]
    )
