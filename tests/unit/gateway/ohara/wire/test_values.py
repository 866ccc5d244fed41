"""Settings of requests against the table of workers: defaults, rules, permissions, in Ohara's words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from keelman.gateway.ohara.definitions.worker import WORKER
from keelman.gateway.ohara.wire.errors import BAD_VALUE, OharaError
from keelman.gateway.ohara.wire.values import Settings, created, edited, sent

LEAST = {"name": "wk", "nodeNames": ["node00"], "brokerClusterKey": "bk"}
HEX = re.compile(r"[0-9a-f]{25}")


def worker(**settings: Any) -> Settings:
    return created(WORKER, sent({**LEAST, **settings}))


def refusal(settings: Any) -> str:
    with pytest.raises(OharaError) as caught:
        created(WORKER, sent(settings))
    assert (caught.value.status, caught.value.code) == (400, BAD_VALUE)
    return caught.value.message


def test_the_table_has_the_24_settings_in_their_order() -> None:
    assert [definition.key for definition in WORKER] == [
        "group", "name", "imageName", "nodeNames", "routes", "tags", "brokerClusterKey", "group.id",
        "status.storage.topic", "status.storage.partitions", "status.storage.replication.factor",
        "config.storage.topic", "config.storage.partitions", "config.storage.replication.factor",
        "offset.storage.topic", "offset.storage.partitions", "offset.storage.replication.factor",
        "xms", "xmx", "pluginKeys", "sharedJarKeys", "freePorts", "clientPort", "jmxPort",
    ]  # fmt: skip
    assert [definition.json["orderInGroup"] for definition in WORKER] == list(range(24))
    assert {len(definition.json) for definition in WORKER} == {16}


def test_a_worker_gets_the_defaults() -> None:
    cluster = worker()
    random = {
        key: cluster.pop(key) for key in ("group.id", *(f"{t}.storage.topic" for t in ("config", "offset", "status")))
    }
    assert all(HEX.fullmatch(value) for value in random.values())
    assert len(set(random.values())) == 4
    assert cluster == {
        "brokerClusterKey": {"group": "default", "name": "bk"}, "name": "wk", "group": "default",
        "nodeNames": ["node00"], "imageName": "oharastream/connect-worker:0.11.1", "routes": {}, "tags": {},
        "xms": 2048, "xmx": 2048, "freePorts": [], "pluginKeys": [], "sharedJarKeys": [],
        "config.storage.partitions": 1, "config.storage.replication.factor": 1,
        "offset.storage.partitions": 1, "offset.storage.replication.factor": 1,
        "status.storage.partitions": 1, "status.storage.replication.factor": 1,
    }  # fmt: skip


def test_a_name_is_made_when_none_is_given() -> None:
    fields = created(WORKER, {"nodeNames": ["n"], "brokerClusterKey": "bk"})
    assert HEX.fullmatch(fields["name"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "wk", "nodeNames": ["n"]}, "Set(brokerClusterKey) are required!!!"),
        ({}, "Set(nodeNames, brokerClusterKey) are required!!!"),
        ([], 'Object expected, but actual type is "JsArray"'),
        (LEAST | {"name": "ABC"}, r'the value "ABC" is not matched to [a-z0-9\.]{1,25}$'),
        (LEAST | {"nodeNames": []}, "empty array is illegal to nodeNames"),
        (LEAST | {"nodeNames": ["n0", "stop"]}, "the stop is protected word"),
        (LEAST | {"nodeNames": "n0"}, 'the nodeNames must be JsArray type, but actual type is "JsString"'),
        (LEAST | {"clientPort": "1"}, 'the clientPort must be JsNumber type, but actual type is "JsString"'),
        (LEAST | {"clientPort": True}, 'the clientPort must be JsNumber type, but actual type is "JsBoolean"'),
        (LEAST | {"clientPort": 0}, "clientPort: the number must be [1, 65535], actual:0"),
        (LEAST | {"jmxPort": 65536}, "jmxPort: the number must be [1, 65535], actual:65536"),
        (LEAST | {"jmxPort": 1.5}, "jmxPort: the number must be [1, 65535], actual:1.5"),
        (
            LEAST | {"offset.storage.partitions": 1 << 31},
            "offset.storage.partitions: the number must be [1, 2147483647], actual:2147483648",
        ),
        (
            LEAST | {"status.storage.replication.factor": 32768},
            "status.storage.replication.factor: the number must be [1, 32767], actual:32768",
        ),
        (LEAST | {"xmx": -1}, "xmx: the number must be [1, 9223372036854775807], actual:-1"),
        (LEAST | {"tags": []}, 'the tags must be JsObject type, but actual type is "JsArray"'),
        (LEAST | {"tags": {"a": [{"b": ""}]}}, 'the value of "b" can\'t be empty string!!!'),
        (LEAST | {"tags": {"a": ["x", ""]}}, 'the value of "a" can\'t be empty string!!!'),
        (LEAST | {"any": ""}, 'the value of "any" can\'t be empty string!!!'),
        (LEAST | {"pluginKeys": ["a", 1]}, 'the pluginKeys must be JsObject type, but actual type is "JsNumber"'),
        (LEAST | {"brokerClusterKey": {"group": "g"}}, None),
        (LEAST | {"group.id": 1}, 'the group.id must be JsString type, but actual type is "JsNumber"'),
    ],
)
def test_what_is_not_legal_is_refused_in_oharas_words(settings: Any, message: str | None) -> None:
    problem = refusal(settings)
    assert message is None or problem == message


def test_keys_are_completed_and_whole_numbers_stay_whole() -> None:
    cluster = worker(pluginKeys=["a.jar", {"name": "b.jar"}, {"group": "g", "name": "c.jar"}], xmx=1024.0)
    assert [plugin_key["group"] for plugin_key in cluster["pluginKeys"]] == ["default", "default", "g"]
    assert repr(cluster["xmx"]) == "1024"


def test_nulls_and_run_time_keys_are_passed_over_and_unknown_keys_kept() -> None:
    cluster = worker(
        state="RUNNING", aliveNodes=["n"], lastModified="x", error="e", settings={}, xms=None,
        mine={"deep": [1, None, {"a": None}]},
    )  # fmt: skip
    assert not {"state", "aliveNodes", "lastModified", "error", "settings"} & cluster.keys()
    assert cluster["xms"] == 2048
    assert cluster["mine"] == {"deep": [1, {}]}


def test_a_read_only_setting_stays_as_it_is_without_an_error() -> None:
    assert worker(**{"config.storage.partitions": 7})["config.storage.partitions"] == 1
    assert worker(**{"config.storage.partitions": "seven"})["config.storage.partitions"] == 1


def test_a_put_changes_what_may_be_edited() -> None:
    before = worker(tags={"a": 1}, mine=1)
    after = edited(
        WORKER, before, sent({"group": "g", "name": "n", "imageName": "x", "jmxPort": 7777, "tags": {}, "mine": 2})
    )
    assert after == before | {"jmxPort": 7777, "tags": {}, "mine": 2}
    with pytest.raises(OharaError, match="empty array is illegal to nodeNames"):
        edited(WORKER, before, {"nodeNames": []})
