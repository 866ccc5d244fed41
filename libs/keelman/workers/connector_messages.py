"""Parts of the message `Connector` that are made alike from a worker's REST answers and from its own state."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.model.connectors.status_notes import failure_reason, failures, is_failing, waits_for

TYPES = {"source": pb.CONNECTOR_TYPE_SOURCE, "sink": pb.CONNECTOR_TYPE_SINK}


def noted(task: pb.ConnectorTask, more: Mapping[str, object]) -> pb.ConnectorTask:
    """The task with what its status says beyond Kafka Connect's own fields."""
    task.waits_for = waits_for(more)
    if is_failing(more):
        task.failed_attempts, task.last_failure = failures(more), failure_reason(more)
    return task
