"""Notes in a status beyond Kafka Connect's own fields, and their fields in the gateway's messages."""

import pytest

from keelman.api.connect.v1.connector_pb2 import ConnectorTask
from keelman.workers.connector_messages import add_notes
from keelman.workers.status_notes import failures, waits_for


@pytest.mark.parametrize(
    ("more", "results"),
    [
        ({}, (0, "")),
        ({"failures": {"count": 1, "reason": "disk full"}}, (0, "")),
        ({"failures": {"count": 4, "reason": "disk full"}}, (4, "disk full")),
        ({"restart": {"attempt": 2, "reason": "TASK_FAILED"}}, (0, "")),  # it has copied since
        ({"failures": "of another version"}, (0, "")),
        ({"failures": {"count": "4"}}, (0, "")),
    ],
)
def test_failures_in_a_row(more: dict[str, object], results: tuple[int, str]) -> None:
    assert failures(more) == results
    assert add_notes(ConnectorTask(), more) == ConnectorTask(failed_attempts=results[0], last_failure=results[1])


def test_what_a_task_waits_for() -> None:
    assert waits_for({}) == ""
    waiting = {"waits_for": "waits for the topic t"}
    assert add_notes(ConnectorTask(), waiting) == ConnectorTask(waits_for="waits for the topic t")
