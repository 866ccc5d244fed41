"""Topics that a source would create: a refusal by brokers or their groups ends it with the topic and the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keelman.connect.errors import ConnectError
from keelman.connect.topic_plan import TopicPlan
from keelman.engine.topics import COMPACT, POLICY, ensure_compacted, ensure_topic
from support.kafka.topics import create_topic
from support.places import RECORDED_FOLDER
from support.worker.processes import WorkerProcess

pytestmark = pytest.mark.component
RECORDED = json.loads((RECORDED_FOLDER / "worker" / "topic_creation.json").read_text())
REFUSED = [entry for entry in RECORDED if entry["states"] == ["RUNNING", "FAILED"]]


@pytest.mark.parametrize("entry", REFUSED, ids=lambda entry: entry["name"])
def test_a_topic_that_brokers_refuse_ends_the_task_with_its_name_and_why(bootstrap: str, entry: dict[str, Any]) -> None:
    topic = "t-" + entry["name"].replace(" ", "-")
    with pytest.raises(ConnectError) as refused:
        ensure_topic(topic, lambda _topic: 0, {"bootstrap.servers": bootstrap}, {}, entry["config"])
    assert f"{refused.value.java_name}: {refused.value}" == entry["traces"][0][0]


def test_a_topic_of_offsets_that_others_make_in_the_same_moment_must_be_compacted_too(
    bootstrap: str, name: str
) -> None:
    create_topic(bootstrap, name)
    present = iter([0, 1])
    plan = TopicPlan(1, -1, {POLICY: COMPACT})
    with pytest.raises(ConnectError, match=f"kept: topic {name} has cleanup.policy=delete"):
        ensure_compacted(name, lambda _topic: next(present), {"bootstrap.servers": bootstrap}, plan, "kept")


async def test_a_connector_with_illegal_groups_fails_with_the_text_as_recorded(worker: WorkerProcess) -> None:
    (entry,) = (entry for entry in RECORDED if entry["name"] == "a bad pattern")
    config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "groups", **entry["config"]}
    created = await worker.ask("POST", "/connectors", {"name": "groups", "config": config})
    assert created.status_code == 201, created.text
    await worker.reaches("groups", "FAILED")
    trace = (await worker.ask("GET", "/connectors/groups/status")).json()["connector"]["trace"]
    assert trace.splitlines()[0] == entry["traces"][0][0]
