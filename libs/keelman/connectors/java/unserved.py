"""Java connectors that look inside Kafka Connect for what its own workers alone have: they are refused by name."""

from __future__ import annotations

from collections.abc import Mapping

_CONSUMER = (
    "reads the private field consumer of Kafka Connect's WorkerSinkTaskContext, to commit by the membership of its "
    "group itself, and keelman's engine has no such context"
)
_UNSERVED: Mapping[str, str] = {
    "org.apache.iceberg.connect.IcebergSinkConnector": _CONSUMER,
    "io.tabular.iceberg.connect.IcebergSinkConnector": _CONSUMER,
}


def why_unserved(class_name: str) -> str:
    """Why the class cannot run in keelman's engine, and where it can; empty for one that may be tried."""
    reason = _UNSERVED.get(class_name)
    if reason is None:
        return ""
    return f"{class_name} {reason}: it runs in a worker cluster with engine kafka-connect, on the same plugin"
