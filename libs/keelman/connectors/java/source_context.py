"""What a Java source task may ask of its worker: the SourceTaskContext of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connectors.java.configs import string_map
from keelman.connectors.java.jvm import java_class, jpype


class SourceContext:
    """Java calls it, by these names."""

    def __init__(self, config: Mapping[str, str], offsets: Any, transactions: Any, tags: Mapping[str, str]) -> None:
        """`offsets` is Connect's OffsetStorageReader, `transactions` its WorkerTransactionContext, None unless the
        connector defines its boundaries. The task's own metrics have these tags."""
        self._config = string_map(config)
        self._offsets = offsets
        self._transactions = transactions
        metrics = java_class("org.apache.kafka.common.metrics.Metrics")()
        pairs = java_class("java.util.LinkedHashMap")()
        for key, value in tags.items():
            pairs.put(key, value)
        self._metrics = java_class("org.apache.kafka.common.metrics.internals.PluginMetricsImpl")(metrics, pairs)
        self._all_metrics = metrics

    def proxy(self) -> Any:
        """As a Java object."""
        return jpype().JProxy("org.apache.kafka.connect.source.SourceTaskContext", inst=self)

    def configs(self) -> Any:
        """The task's configuration."""
        return self._config

    def offsetStorageReader(self) -> Any:
        """Committed offsets."""
        return self._offsets

    def transactionContext(self) -> Any:
        """What the task ends transactions by; null unless it may."""
        return self._transactions

    def pluginMetrics(self) -> Any:
        """Where the task keeps metrics of its own."""
        return self._metrics

    def close(self) -> None:
        """Drops the metrics."""
        self._metrics.close()
        self._all_metrics.close()
