"""What a status says beyond Kafka Connect's own fields, and how it comes into the gateway's messages."""

import pytest

from keelman.api.connect.v1.connector_pb2 import ConnectorTask
from keelman.model.connectors.status_notes import failure_reason, failures, is_failing, waits_for
from keelman.workers.connector_messages import noted


@pytest.mark.parametrize(
    ("more", "count", "reason"),
    [
        ({}, 0, ""),
        ({"restart": {"attempt": 1, "reason": "TASK_FAILED"}}, 1, "TASK_FAILED"),
        ({"failures": {"count": 4, "reason": "disk full"}, "restart": {"attempt": 2, "reason": "x"}}, 4, "disk full"),
        ({"restart": "of another version", "failures": {"count": "4"}}, 0, ""),
    ],
)
def test_failures_in_a_row(more: dict[str, object], count: int, reason: str) -> None:
    assert failures(more) == count
    if count:
        assert failure_reason(more) == reason


def test_one_failure_is_no_problem_yet() -> None:
    once, again = ({"restart": {"attempt": number, "reason": "TASK_FAILED"}} for number in (1, 2))
    assert not is_failing(once)
    assert noted(ConnectorTask(), once) == ConnectorTask()
    assert noted(ConnectorTask(), again) == ConnectorTask(failed_attempts=2, last_failure="TASK_FAILED")


def test_what_a_task_waits_for() -> None:
    assert waits_for({}) == ""
    waiting = {"waits_for": "waits for the topic t"}
    assert noted(ConnectorTask(), waiting) == ConnectorTask(waits_for="waits for the topic t")
