"""Groups of new topics: the topics that Apache Kafka Connect made, and the texts with which it refused, as recorded."""

import json
from typing import Any

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.connect.topic_creation import TopicCreation
from keelman.connect.topic_plan import TopicPlan
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "worker" / "topic_creation.json").read_text())
BROKERS_PARTITIONS = 4
ON = [one for one in RECORDED if not one["name"].startswith("off: ")]
TOLD_BY_BROKERS = "org.apache.kafka.connect.errors.ConnectException: Unable to create topic(s)"


@pytest.mark.parametrize("one", ON, ids=lambda one: one["name"])
def test_as_recorded(one: dict[str, Any]) -> None:
    topic = "t-" + one["name"].replace(" ", "-")
    if one["states"] == ["FAILED"]:
        with pytest.raises(ConfigValueError) as refused:
            TopicCreation(one["config"])
        (lines,) = one["traces"]
        assert f"{refused.value.java_name}: {refused.value}".splitlines()[0] == lines[0]
        return
    plan = TopicCreation(one["config"]).plan(topic)
    if one["topic"] is None:  # the plan is legal, and it is for the brokers to refuse it
        assert one["traces"][0][0].startswith(TOLD_BY_BROKERS)
        assert plan is not None
        return
    plan = plan or TopicPlan()
    assert plan.partitions in (
        one["topic"]["partitions"],
        -1 if one["topic"]["partitions"] == BROKERS_PARTITIONS else 0,
    )
    assert {key: value.strip() for key, value in plan.config.items()} == one["topic"]["settings"]


def test_what_has_no_effect_is_named() -> None:
    base = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    given = {
        "topic.creation.default.include": "a.*",
        "topic.creation.lost.include": "b.*",
        "topic.creation.groups": "kept",
        "topic.creation.kept.include": "c.*",
    }
    idle = TopicCreation({**base, **given}).without_effect
    assert idle == ("topic.creation.default.include", "topic.creation.lost.include")
