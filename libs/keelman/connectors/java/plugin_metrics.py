"""The metrics of its own that a Java connector or task may keep: nobody shows them, but it asks where they go."""

from __future__ import annotations

from keelman.connectors.java.jvm import java_class

METRICS = "org.apache.kafka.common.metrics"


class PluginMetrics:
    """`java` is what Connect gives it. To be closed."""

    def __init__(self, tags: dict[str, str]) -> None:
        """The tags of all that it keeps, in their order."""
        self._all = java_class(f"{METRICS}.Metrics")()
        ordered = java_class("java.util.LinkedHashMap")()
        for key, value in tags.items():
            ordered.put(key, value)
        self.java = java_class(f"{METRICS}.internals.PluginMetricsImpl")(self._all, ordered)

    def close(self) -> None:
        """Drops the metrics."""
        self.java.close()
        self._all.close()
