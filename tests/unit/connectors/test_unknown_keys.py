"""A key that nothing reads is noted with the key that was probably meant; a key that may be read is not."""

from collections.abc import Mapping

import pytest

from keelman.connect.config.definition import ConfigDef, ConfigKey, Type
from keelman.connectors.registry import find_connector
from keelman.connectors.tools.mock import MockSink
from keelman.connectors.validation.unknown_keys import notes

MASK = {"transforms": "mask", "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value"}
JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


def noted(class_name: str, **more: str) -> list[str]:
    return notes(find_connector(class_name), {"name": "x", "connector.class": class_name, **more}, {})


@pytest.mark.parametrize(
    ("class_name", "config", "note"),
    [
        ("FileStreamSource", {"fiel": "/in"}, "fiel: unknown, did you mean file?"),
        ("FileStreamSource", {"topics": "t"}, "topics: unknown, did you mean topic?"),
        ("FileStreamSource", {"colour": "red"}, "colour: unknown, nothing reads it"),
        ("FileStreamSource", {"value.convertr": "x"}, "value.convertr: unknown, did you mean value.converter?"),
        (
            "FileStreamSink",
            {"errors.deadletterqueue.topic": "d"},
            "errors.deadletterqueue.topic: unknown, did you mean errors.deadletterqueue.topic.name?",
        ),
        (
            "FileStreamSink",
            {**MASK, "transforms.mask.replacment": "*"},
            "transforms.mask.replacment: unknown, did you mean transforms.mask.replacement?",
        ),
        (
            "FileStreamSink",
            {**JSON, "value.converter.schema.enable": "true"},
            "value.converter.schema.enable: unknown, did you mean value.converter.schemas.enable?",
        ),
        (
            "FileStreamSource",
            {"producer.override.linger": "5", "producer.override.lingr.ms": "5"},
            "producer.override.lingr.ms: unknown, did you mean producer.override.linger.ms?",
        ),
        (
            "FileStreamSource",
            {"topic.creation.groups": "logs", "topic.creation.log.partitions": "1"},
            "topic.creation.log.partitions: unknown, did you mean topic.creation.logs.partitions?",
        ),
        (
            "FileStreamSource",
            {"producer.override.transactional.id": "mine", "producer.override.acks": "all"},
            "producer.override.transactional.id: ignored: each task has its own",
        ),
        ("MirrorSource", {"sync.topic.acl.enabled": "no"}, "sync.topic.acl.enabled: unknown, did you mean sync.topic."),
    ],
)
def test_an_unknown_key_is_noted_with_the_nearest(class_name: str, config: Mapping[str, str], note: str) -> None:
    (actual,) = noted(class_name, **config)
    assert actual.startswith(note)


@pytest.mark.parametrize(
    ("class_name", "config"),
    [
        ("FileStreamSource", {"file": "/in", "topic": "t", "batch.size": "1", "tasks.max": "1", **MASK, **JSON}),
        ("FileStreamSource", {"topic.creation.default.retention.ms": "1", "producer.override.acme.interceptor": "x"}),
        ("FileStreamSink", {"errors.deadletterqueue.topic.name": "d", "consumer.override.max.poll.records": "1"}),
        ("FileStreamSink", {"value.converter": "io.confluent.connect.avro.AvroConverter", "value.converter.own": "x"}),
        ("MirrorSource", {"source.cluster.alias": "a", "source.consumer.client.id": "c", "topics.blacklist": "t"}),
        ("KafkaSink", {"target.cluster.bootstrap.servers": "b:1"}),
        ("SparkSource", {"spark.option.header": "true"}),
    ],
)
def test_what_something_reads_is_left_alone(class_name: str, config: Mapping[str, str]) -> None:
    assert noted(class_name, **config) == []


class Acme(MockSink):
    names = ("com.acme.AcmeSink",)

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConfigKey("city", Type.STRING), ConfigKey("days", Type.INT))


def test_of_a_third_partys_own_keys_only_what_is_close_to_a_known_one_is_noted() -> None:
    config = {"citty": "Oslo", "anything": "x", "id": "7", "dasy": "1", "errors.tolerence": "all", "errors.else": "x"}
    assert notes(Acme, config, {}) == [
        "citty: unknown, did you mean city?",
        "dasy: unknown, did you mean days?",
        "errors.else: unknown, nothing reads it",
        "errors.tolerence: unknown, did you mean errors.tolerance?",
    ]
