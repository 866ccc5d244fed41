"""Shows the connectors' own metrics among a worker's metrics: under the names that jmx_exporter gives the beans of
Kafka Connect's PluginMetrics without rules, `kafka_connect_plugins_` before the connector's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keelman.api.copy.v1.copy_run_pb2 import OwnMetric
from keelman.runtime.exposition import UNTYPED, Exposition, Family, escaped

PREFIX = "kafka_connect_plugins_"
ABOUT = "Counted by the connector itself."
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")


class TaskMetrics:
    """The tasks' own metrics of one scrape."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def add(self, out: Exposition, labels: str, metrics: Iterable[OwnMetric]) -> None:
        """Adds those of one task, with these labels. Of two with equal names and tags, the first stays."""
        there: set[tuple[str, str]] = set()
        for metric in metrics:
            name = PREFIX + _ILLEGAL.sub("_", metric.name)
            tags = {_label(key): escaped(value) for key, value in sorted(metric.tags.items())}
            more = "".join(f',{key}="{value}"' for key, value in tags.items())
            if (name, more) not in there:
                there.add((name, more))
                family = self._families.setdefault(name, Family(name, UNTYPED, metric.description or ABOUT))
                out.add(family, metric.value, labels + more)


def _label(key: str) -> str:
    """Returns a tag's name as a legal label, which is neither the task's nor Prometheus' own."""
    label = _ILLEGAL.sub("_", key)
    return f"tag_{label}" if label in ("", "connector", "task") or label[0].isdigit() or label[0] == "_" else label
