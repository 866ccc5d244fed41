"""The Connect configuration that results from a connector's settings."""

from typing import Any

import pytest

from keelman.gateway.ohara.definitions.config import kafka_config, plain_text
from keelman.gateway.ohara.wire.keys import ObjectKey

KEY = ObjectKey("g", "ftp")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (3, "3"),
        (1.5, "1.5"),
        (True, "true"),
        (["a", "b"], "a,b"),
        ([1, 2], "1,2"),
        ([], ""),
        ('["a","b"]', "a,b"),
        ("[no list", "[no list"),
        ([{"group": "g", "name": "t"}], '[{"group":"g","name":"t"}]'),
        ('[{"a": 1}]', '[{"a": 1}]'),
        ({"a": {"b": 1}}, '{"a":{"b":1}}'),
    ],
)
def test_values_become_texts_as_ohara_writes_them(value: Any, text: str) -> None:
    assert plain_text(value) == text


def test_topics_and_connector_have_the_names_that_kafka_knows() -> None:
    settings = {
        "name": "ftp",
        "group": "g",
        "connector.class": "a.Source",
        "tasks.max": 2,
        "topicKeys": [{"group": "g", "name": "t"}, "u"],
        "columns": [],
        "workerClusterKey": {"group": "default", "name": "wk"},
        "tags": {"a": "b"},
    }
    assert kafka_config(KEY, settings, ["g-t", "default-u", "g-t"]) == {
        "group": "g",
        "connector.class": "a.Source",
        "tasks.max": "2",
        "topicKeys": '[{"group":"g","name":"t"},"u"]',
        "workerClusterKey": '{"group":"default","name":"wk"}',
        "tags": '{"a":"b"}',
        "connectorKey": '{"group":"g","name":"ftp"}',
        "topics": "g-t,default-u",
    }


def test_oharas_partitioner_is_left_to_whoever_produces() -> None:
    own = {"producer.override.partitioner.class": "oharastream.ohara.kafka.RowDefaultPartitioner"}
    assert "producer.override.partitioner.class" not in kafka_config(KEY, own, [])
    assert kafka_config(KEY, {"producer.override.partitioner.class": "a.B"}, [])["producer.override.partitioner.class"]
