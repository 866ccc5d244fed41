"""Rows made from resources, and resources made from rows."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from keelman.model.annotations import Origin
from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers, ManagedBrokers
from keelman.model.operation import Failure, Operation, OperationKind, OperationTarget, Step, StepState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus
from keelman.state.database.times import micros
from keelman.state.nouns.registry import NOUNS
from keelman.state.resources.rows import payload_of, read

TIME = datetime(2026, 5, 1, 12, 30, 0, 1, tzinfo=UTC)
OPERATION = Operation(
    "op-1", "u", TIME, TIME, OperationKind.APPLY_TOPIC, OperationTarget("topic", "t", 3, "PRESENT"),
    (Step("a", StepState.DONE, start_time=TIME, attempts=2), Step("b")), Origin("api", "s", "k"),
    error=Failure("X", "R", "m"), end_time=TIME, facts={"start_time": 5}, etag="7",
)  # fmt: skip
STATUS = WorkloadStatus(ProcessState.RUNNING, 1, start_time=TIME)
BROKERS = BrokerCluster(
    "b", "u", TIME, TIME, 1, etag="5", goal=ClusterGoal.RUNNING, spec=ManagedBrokers(("n",), {}, port=9)
)


@pytest.mark.parametrize(
    "resource",
    [
        OPERATION,
        BROKERS,
        dataclasses.replace(BROKERS, spec=ExternalBrokers("h:1", {"a": "b"})),
        Workload("broker/b/0", "n", 1, Goal.RUNNING, BrokerSpec("b", "id", 0, "h", 1, 2), status=STATUS),
        Workload("spark/n", "n", 1, Goal.STOPPED, SparkSpec("h", 1, "local")),
        Workload("worker/w/0", "n", 1, Goal.RUNNING, WorkerSpec("w", "h", 1, {}, "h:2"), tried_ports=(4, 5)),
    ],
)
def test_a_resource_comes_back_from_its_row(resource: Any) -> None:
    noun = NOUNS[resource.NOUN]
    row = json.loads(json.dumps(noun.to_row(resource)))
    assert noun.from_row(row["name"], row["revision"], row["payload"]) == resource


def test_what_is_stored_of_an_operation() -> None:
    row = NOUNS["operation"].to_row(OPERATION)
    payload = row["payload"]
    assert (row["revision"], payload["kind"], payload["spec"]) == (7, "APPLY_TOPIC", {"start_time": 5})
    assert payload["content"]["end_time"] == micros(TIME)
    assert payload["content"]["steps"][0]["start_time"] == micros(TIME)
    assert not {"name", "etag", "facts"} & {*payload, *payload["content"]}


def test_fields_that_came_later_have_their_defaults_and_those_that_went_are_passed_over() -> None:
    assert read(Step, {"name": "a", "state": "DONE", "gone": 1}) == Step("a", StepState.DONE)


def test_fields_left_out_are_left_to_the_noun() -> None:
    payload = payload_of(OPERATION, {}, ("target",))
    assert payload["uid"] == "u"
    assert "target" not in payload
