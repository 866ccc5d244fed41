"""Creates the message `Connector`, alike from a worker's REST answers and from its own state, and decides which
connectors a list shows."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.workers.status_notes import failures, waits_for

TYPES = {"source": pb.CONNECTOR_TYPE_SOURCE, "sink": pb.CONNECTOR_TYPE_SINK}


def add_notes(task: pb.ConnectorTask, more: Mapping[str, object]) -> pb.ConnectorTask:
    """Adds the fields of a task's status beyond Kafka Connect's own."""
    task.waits_for = waits_for(more)
    task.failed_attempts, task.last_failure = failures(more)
    return task


def is_in(connector: pb.Connector, state: pb.ConnectorState.ValueType) -> bool:
    """Returns whether the connector, or a task of it, is in this state; unspecified matches any."""
    return state in (pb.CONNECTOR_STATE_UNSPECIFIED, connector.state, *(t.state for t in connector.tasks))
