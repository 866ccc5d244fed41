"""Parts of the message `Connector` that are made alike from a worker's REST answers and from its own state."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.model.connectors.status_notes import failures, waits_for

TYPES = {"source": pb.CONNECTOR_TYPE_SOURCE, "sink": pb.CONNECTOR_TYPE_SINK}


def add_notes(task: pb.ConnectorTask, more: Mapping[str, object]) -> pb.ConnectorTask:
    """Adds to a task what its status says beyond Kafka Connect's own fields."""
    task.waits_for = waits_for(more)
    task.failed_attempts, task.last_failure = failures(more)
    return task
