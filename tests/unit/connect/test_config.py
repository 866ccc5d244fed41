"""Configurations are validated with Kafka Connect's own messages."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from keelman.connect.config.info import ConfigError, problems
from keelman.connect.errors import ConfigValueError
from keelman.connect.transforms.chain import Chain
from keelman.connectors.registry import all_connectors, find_connector
from keelman.connectors.validation.configuration import validate
from keelman.model.errors import NotFound

WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "file": "/in"}
SINK = {"name": "k", "connector.class": "FileStreamSink", "topics": "t", "file": "/out"}


def faults(config: Mapping[str, str], worker: Mapping[str, str]) -> list[ConfigError]:
    """Returns all errors of a configuration."""
    return problems(validate(config, worker), config)


def messages(config: dict[str, str], worker: dict[str, str] = WORKER) -> dict[str, str]:
    return {error.key: error.message for error in faults(config, worker)}


@pytest.mark.parametrize("config", [SOURCE, SINK, {**SOURCE, "unknown.key": "x", "tasks.max": " 3 "}])
def test_good_ones(config: dict[str, str]) -> None:
    assert faults(config, WORKER) == []


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"topic": None}, "topic", 'Missing required configuration "topic" which has no default value.'),
        ({"name": None}, "name", 'Missing required configuration "name" which has no default value.'),
        ({"topic": ""}, "topic", "Invalid value  for configuration topic: String must be non-empty"),
        (
            {"batch.size": "abc"},
            "batch.size",
            "Invalid value abc for configuration batch.size: Not a number of type INT",
        ),
        (
            {"batch.size": "2147483648"},
            "batch.size",
            "Invalid value 2147483648 for configuration batch.size: Not a number of type INT",
        ),
        ({"tasks.max": "0"}, "tasks.max", "Invalid value 0 for configuration tasks.max: Value must be at least 1"),
        (
            {"errors.tolerance": "some"},
            "errors.tolerance",
            "Invalid value some for configuration errors.tolerance: String must be one of: none, all",
        ),
        (
            {"value.converter": "NoSuch"},
            "value.converter",
            "Invalid value NoSuch for configuration value.converter: Class NoSuch could not be found.",
        ),
        (
            {"value.converter": "JsonConverter", "value.converter.schemas.enable": "maybe"},
            "value.converter.schemas.enable",
            "Invalid value maybe for configuration schemas.enable: Expected value to be either true or false",
        ),
    ],
)
def test_what_is_wrong_with_a_source(config: dict[str, str | None], key: str, message: str) -> None:
    merged = {k: v for k, v in {**SOURCE, **config}.items() if v is not None}
    assert messages(merged) == {key: message}


def test_a_sink_reads_topics_or_a_pattern() -> None:
    none = {k: v for k, v in SINK.items() if k != "topics"}
    assert set(messages(none).values()) == {"Must configure one of topics or topics.regex"}
    both = {**SINK, "topics.regex": "t.*"}
    assert set(messages(both).values()) == {"topics and topics.regex are mutually exclusive options, but both are set."}
    assert messages({**none, "topics.regex": "("}) == {
        "topics.regex": "Invalid value ( for configuration topics.regex: Invalid regex: Unclosed group near index 1\n("
    }


def test_exactly_once_that_is_required_and_cannot_be() -> None:
    stdin = {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "exactly.once.support": "required"}
    assert "does not support exactly-once" in messages(stdin)["exactly.once.support"]
    assert messages({**stdin, "file": "/in"}) == {}
    off = {**WORKER, "exactly.once.source.support": "disabled"}
    assert "exactly.once.support" in messages({**stdin, "file": "/in"}, off)


def test_connectors_by_all_their_names() -> None:
    for connector in all_connectors():
        for name in connector.names:
            assert find_connector(name) is connector
    text = "Failed to find any class that implements Connector and which name matches X, available connectors are: "
    with pytest.raises(NotFound) as caught:
        find_connector("X")
    assert caught.value.message.startswith(text)
    with pytest.raises(NotFound) as error:
        validate({**SOURCE, "connector.class": "X"}, WORKER)
    assert error.value.message == caught.value.message


def test_tasks() -> None:
    assert len(find_connector("FileStreamSource").task_configs(SOURCE, 5)) == 1
    assert len(find_connector("FileStreamSink").task_configs(SINK, 5)) == 1
    assert len(find_connector("FileStreamSink").task_configs({"topics": "t"}, 5)) == 5


def test_validation_loads_no_client() -> None:
    code = (
        "import sys; from keelman.connectors.validation.configuration import validate; "
        f"assert not sum(validate(one, {WORKER!r})['error_count'] for one in ({SOURCE!r}, {SINK!r})); "
        "sys.exit('confluent_kafka' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_lists_are_trimmed_and_defaults_typed() -> None:
    definition = ConfigDef(
        ConfigKey("l", Type.LIST, REQUIRED, Importance.LOW, ""), ConfigKey("i", Type.LONG, 7, Importance.LOW, "")
    )
    assert definition.parse({"l": " a , b"}) == {"l": ["a", "b"], "i": 7}


@pytest.mark.parametrize(
    ("config", "key", "text"),
    [
        (
            {
                "transforms.route.type": "RegexRouter",
                "transforms.route.regex": "[",
                "transforms.route.replacement": "x",
            },
            "transforms.route.regex",
            "Invalid value [ for configuration transforms.route.regex: Invalid regex",
        ),
        (
            {"transforms.route.type": "org.apache.kafka.connect.transforms.MaskField$Value"},
            "transforms.route.fields",
            'transforms.route.fields: Missing required configuration "fields"',
        ),
        (
            {
                "transforms.route.type": "Filter",
                "transforms.route.predicate": "named",
                "predicates.named.type": "TopicNameMatches",
                "predicates.named.pattern": "(",
            },
            "predicates.named.pattern",
            "Invalid value ( for configuration predicates.named.pattern: ",
        ),
    ],
)
def test_a_chain_that_cannot_be_made_names_the_key_as_the_connector_has_it(
    config: dict[str, str], key: str, text: str
) -> None:
    with pytest.raises(ConfigValueError) as caught:
        Chain({"transforms": "route", **config})
    assert caught.value.key == key
    assert str(caught.value).startswith(text)
