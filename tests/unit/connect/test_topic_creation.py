"""Groups of new topics: Apache Kafka Connect's recorded topics, and its recorded messages of refusals."""

import json
from typing import Any

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.connect.topic_creation import TopicCreation
from keelman.connect.topic_plan import TopicPlan
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "worker" / "topic_creation.json").read_text())
BROKERS_PARTITIONS = 4
ON = [entry for entry in RECORDED if not entry["name"].startswith("off: ")]
TOLD_BY_BROKERS = "org.apache.kafka.connect.errors.ConnectException: Unable to create topic(s)"


@pytest.mark.parametrize("entry", ON, ids=lambda entry: entry["name"])
def test_as_recorded(entry: dict[str, Any]) -> None:
    topic = "t-" + entry["name"].replace(" ", "-")
    if entry["states"] == ["FAILED"]:
        with pytest.raises(ConfigValueError) as refused:
            TopicCreation(entry["config"])
        (lines,) = entry["traces"]
        assert f"{refused.value.java_name}: {refused.value}".splitlines()[0] == lines[0]
        return
    plan = TopicCreation(entry["config"]).plan(topic)
    if entry["topic"] is None:  # the plan is legal; the brokers refuse it
        assert entry["traces"][0][0].startswith(TOLD_BY_BROKERS)
        assert plan is not None
        return
    plan = plan or TopicPlan()
    assert plan.partitions in (
        entry["topic"]["partitions"],
        -1 if entry["topic"]["partitions"] == BROKERS_PARTITIONS else 0,
    )
    assert {key: value.strip() for key, value in plan.config.items()} == entry["topic"]["settings"]


def test_what_has_no_effect_is_named() -> None:
    base = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    fields = {
        "topic.creation.default.include": "a.*",
        "topic.creation.lost.include": "b.*",
        "topic.creation.groups": "kept",
        "topic.creation.kept.include": "c.*",
    }
    idle = TopicCreation({**base, **fields}).without_effect
    assert idle == ("topic.creation.default.include", "topic.creation.lost.include")
