"""Each key of the tables in docs/connectors.md has its effect."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from keelman.connectors.registry import find_connector
from keelman.connectors.spark.source import SPLIT, Books, SparkSource
from keelman.engine.clients import admin_properties
from keelman.engine.commit_interval import commit_interval_seconds
from keelman.engine.idle import park_after_seconds
from keelman.engine.producing.producer_options import producer_options
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.engine.source.boundary import boundary_for
from keelman.engine.source.split import bulk_of
from keelman.kafka.properties.connector_clients import merged
from keelman.worker.asking.third_party import problems_of
from keelman.worker.config.typed import checked
from keelman.worker.group.placement import wants_of
from keelman.worker.offsets.source_offsets import offset_topics
from keelman.worker.restart_policy import policy_of
from keelman.worker.tasks.limits import limits_of
from keelman.worker.tasks.watermark import stall_seconds
from support.documented import documented_keys, lacking
from support.worker_properties import OF_A_GROUP

Config = Mapping[str, str]
Observe = Callable[[Config], Any]
CONNECTOR = {"name": "c", "connector.class": "VerifiableSource", "topic": "t"}
SPARK = {"connector.class": "SparkSource", "spark.format": "json", "topic": "t"}


class Seen(NamedTuple):
    """With this value `observe` returns `expected` for a connector, without it another; `beside` are further keys."""

    value: str
    observe: Observe
    expected: Any
    beside: Config = CONNECTOR


def tasks(config: Config) -> int:
    return len(find_connector(config["connector.class"]).task_configs(config, int(config.get("tasks.max", "1"))))


def of_policy(field: str) -> Observe:
    return lambda config: getattr(policy_of(config, {}), field)


def of_bulk(field: str) -> Observe:
    return lambda config: getattr(bulk_of({"keelman.bulk.slots": "2", **config}), field)


def of_data_set(field: str) -> Observe:
    return lambda config: getattr(find_connector("SparkSource").data_set(config), field)


def ordered(config: Config) -> bool:
    """Whether a part has more than one transaction."""
    return "transaction.boundary" not in SparkSource._of_part({**config, SPLIT: "s"})


def due_again(config: Config) -> bool:
    """Whether a data set that was read an hour ago is due to be read again."""
    return Books(config, lambda value: None if "part" in value else {"time": int(time.time() * 1000) - 3_600_000}).due


def boundary(config: Config) -> str:
    return boundary_for(config, OF_A_GROUP, time.monotonic, transactional=True).kind


def interval(config: Config) -> float:
    fields = {**config, "transaction.boundary": "interval"}
    return boundary_for(fields, OF_A_GROUP, time.monotonic, transactional=True).timeout_seconds


EFFECTS: dict[str, Seen] = {
    "tasks.max": Seen("3", tasks, 3),
    "keelman.commit.interval.ms": Seen("700", lambda config: commit_interval_seconds({}, config), 0.7),
    "keelman.park.after.ms": Seen("-1", lambda config: park_after_seconds({}, config), None),
    "keelman.limit.records.per.second": Seen("7", lambda config: limits_of(config, 2).records_per_second, 3.5),
    "keelman.limit.bytes.per.second": Seen("7", lambda config: limits_of(config, 2).bytes_per_second, 3.5),
    "keelman.bulk.slots": Seen("7", of_bulk("slots"), 7),
    "keelman.bulk.min.records": Seen("7", of_bulk("least"), 7),
    "keelman.restart.max.attempts": Seen("7", of_policy("attempts"), 7),
    "keelman.restart.backoff.ms": Seen("700", of_policy("first_seconds"), 0.7),
    "keelman.restart.backoff.max.ms": Seen("7000", of_policy("most_seconds"), 7.0),
    "keelman.restart.reset.after.ms": Seen("7000", of_policy("reset_seconds"), 7.0),
    "keelman.stall.after.ms": Seen("7000", lambda config: stall_seconds(config, {}), 7.0),
    "keelman.placement.labels": Seen(
        "zone=a", lambda config: wants_of({"c": config.get("keelman.placement.labels", "")}), {"c": {"zone": "a"}}
    ),
    "connector.plugin.version": Seen(
        "[99,)",
        lambda config: [problem.key for problem in problems_of(config, OF_A_GROUP)],
        ["connector.class", "connector.plugin.version"],
    ),
    "producer.override.client.id": Seen(
        "mine", lambda config: producer_options(merged({}, config, "producer"), client_id="c").client_id, "mine"
    ),
    "consumer.override.client.id": Seen(
        "mine",
        lambda config: sink_consumer_properties({}, config, "s", 0, read_committed=True, zombie_seconds=0)["client.id"],
        "mine",
    ),
    "admin.override.client.id": Seen("mine", lambda config: admin_properties({}, config).get("client.id"), "mine"),
    "transaction.boundary": Seen("interval", boundary, "interval"),
    "offsets.storage.topic": Seen("mine", lambda config: offset_topics(checked(OF_A_GROUP), config)[0], "mine"),
    "spark.format": Seen("csv", of_data_set("format"), "csv", SPARK),
    "spark.path": Seen("/data", of_data_set("path"), "/data", SPARK),
    "spark.option.header": Seen("true", of_data_set("options"), {"header": "true"}, SPARK),
    "spark.schema": Seen("a INT", of_data_set("schema"), "a INT", SPARK),
    "topic": Seen("mine", lambda config: config["topic"], "mine", SPARK),
    "key.column": Seen("a", of_data_set("key"), "a", SPARK),
    "spark.slots": Seen("7", lambda config: find_connector("SparkSource").data_slots(config), 7, SPARK),
    "spark.every.ms": Seen("1000", due_again, True, SPARK),
    "spark.ordered": Seen("false", ordered, False, SPARK),
    "spark.conf.spark.x": Seen("y", of_data_set("settings"), {"spark.x": "y"}, SPARK),
    "spark.packages": Seen("a:b:1", of_data_set("packages"), ("a:b:1",), SPARK),
    "spark.python.source": Seen("m:C", of_data_set("python"), "m:C", SPARK),
}


def test_each_key_of_the_page_is_tried() -> None:
    assert lacking("connectors.md", set(EFFECTS)) == set()
    assert len(documented_keys("connectors.md")) > 25, "the page was read"


@pytest.mark.parametrize("key", EFFECTS)
def test_a_key_has_its_effect(key: str) -> None:
    value, observe, expected, beside = EFFECTS[key]
    assert observe({**beside, key: value}) == expected
    assert observe(beside) != expected, "it is so without the key, too"


def test_the_interval_of_a_boundary_is_the_connectors_else_the_workers() -> None:
    assert interval({}) == 70.0
    assert interval({"transaction.boundary.interval.ms": "7000"}) == 17.0
