"""The worker as a Java source task sees it: the SourceTaskContext of Connect."""

from __future__ import annotations

from typing import Any

from keelman.connect.tasks.source_task import SourceTask
from keelman.connectors.java.configs import string_map, task_state
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_metrics import PluginMetrics

RUNTIME = "org.apache.kafka.connect.runtime"


class SourceContext:
    """The context of one task; `java` is the task's Java object of it."""

    def __init__(self, task: SourceTask, metrics: PluginMetrics, offsets: Any, transactions: Any) -> None:
        """`offsets` is Connect's OffsetStorageReader, `transactions` its WorkerTransactionContext, None unless the
        connector defines its boundaries."""
        whose, state = task_state(task.connector, task.task, string_map(task.config))
        boundaries = jpype().JObject(transactions, java_class(f"{RUNTIME}.WorkerTransactionContext"))
        self.java = java_class(f"{RUNTIME}.WorkerSourceTaskContext")(offsets, whose, state, boundaries, metrics.java)
