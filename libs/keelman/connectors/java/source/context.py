"""The worker as a Java source task sees it: the SourceTaskContext of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connectors.java.configs import string_map
from keelman.connectors.java.jvm import jpype
from keelman.connectors.java.plugin_metrics import PluginMetrics


class SourceContext:
    """Java calls it, by these names."""

    def __init__(self, config: Mapping[str, str], offsets: Any, transactions: Any, tags: dict[str, str]) -> None:
        """`offsets` is Connect's OffsetStorageReader, `transactions` its WorkerTransactionContext, None unless the
        connector defines its boundaries. The task's own metrics have these tags."""
        self._config = string_map(config)
        self._offsets = offsets
        self._transactions = transactions
        self._metrics = PluginMetrics(tags)

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
        return self._metrics.java

    def close(self) -> None:
        """Drops the metrics."""
        self._metrics.close()
