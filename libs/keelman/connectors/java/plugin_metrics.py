"""The metrics of its own that a Java plugin keeps: of a connector, of a task, and of the steps of its chain.

Source: `ConnectMetrics` and `PluginMetricsImpl` of Kafka 4.3, whose names and tags these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from keelman.connect.tasks.own_metric import OwnMetric
from keelman.connectors.java.jvm import java_class, jpype

METRICS = "org.apache.kafka.common.metrics"
GROUP = "plugins"


class PluginMetrics:
    """`java` is what Connect gives the connector or task. To be closed."""

    def __init__(self, tags: Mapping[str, str]) -> None:
        """The tags of all that it keeps, in their order."""
        self._tags = tags
        self._all = java_class(f"{METRICS}.Metrics")()
        self._given: list[Any] = []
        self.java = self._with({})

    def give(self, step: Any, **more: str) -> None:
        """Gives a configured converter, transform or predicate its own metrics, if it accepts them; `more` are its
        additional tags."""
        if step is not None and isinstance(step, java_class(f"{METRICS}.Monitorable")):
            step.withPluginMetrics(self._with(more))

    def found(self) -> Iterator[OwnMetric]:
        """Yields the present metrics that are numbers, or true or false, without the tags common to all. Leaves out
        metrics that cannot be measured, as JMX does."""
        for metric in self._all.metrics().values():
            name = metric.metricName()
            if str(name.group()) == GROUP and (value := _value(metric)) is not None:
                tags = {str(tag.getKey()): str(tag.getValue()) for tag in name.tags().entrySet()}
                own = {key: text for key, text in tags.items() if key not in self._tags}
                yield OwnMetric(str(name.name()), value, str(name.description() or ""), own)

    def close(self) -> None:
        """Drops the metrics."""
        for plugin_metrics in self._given:
            plugin_metrics.close()
        self._all.close()

    def _with(self, more: Mapping[str, str]) -> Any:
        ordered = java_class("java.util.LinkedHashMap")()
        for key, value in (*self._tags.items(), *more.items()):
            ordered.put(key, value)
        metrics = java_class(f"{METRICS}.internals.PluginMetricsImpl")(self._all, ordered)
        self._given.append(metrics)
        return metrics


def _value(metric: Any) -> float | None:
    try:
        value = metric.metricValue()
    except jpype().JException:
        return None
    if isinstance(value, java_class("java.lang.Boolean")):
        return float(bool(value.booleanValue()))
    return float(value.doubleValue()) if isinstance(value, java_class("java.lang.Number")) else None
