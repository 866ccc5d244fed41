"""Builds the lines of tables whose lines are not resources: classes of plugins, changes of plans, topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.cli.output.words import origin_text
from keelman.rpc.enums import word


@dataclass(frozen=True, slots=True)
class PluginLine:
    """A line of a table of plugins: one class of a plugin, or None for a plugin without classes."""

    plugin: Any
    found: Any = None

    def text_of(self, field: str) -> str:
        """Returns a field of the class as text, empty without a class."""
        return "" if self.found is None else str(getattr(self.found, field))


def plugin_lines(plugins: Sequence[Any]) -> list[PluginLine]:
    """Returns a line for each class of these plugins."""
    return [PluginLine(plugin, plugin_class) for plugin in plugins for plugin_class in (*plugin.classes,) or (None,)]


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A line of a table of plans: one change of a plan."""

    plan: Any
    change: Any

    @property
    def key(self) -> str:
        """A key that is unique among the lines of all plans."""
        return f"{self.plan.revision}/{self.change.workload}"


def plan_lines(plans: Sequence[Any], workload: str = "") -> list[PlanLine]:
    """Returns a line for each change of these plans; only of one workload if it is named."""
    return [PlanLine(plan, change) for plan in plans for change in plan.changes if workload in ("", change.workload)]


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A line of a table of topics: a topic resource, or a topic of the brokers without a resource and a state."""

    name: str
    partitions: int
    replication: int
    offsets: int
    topic: str
    broker_cluster: str
    state: str = ""
    message: str = ""
    differences: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""


def topic_line(topic: Any) -> TopicLine:
    """Returns the line of a topic resource; a topic that the brokers do not have is shown as in its spec."""
    spec, brokers = topic.spec, topic.status.brokers
    parts = brokers.partitions
    there = topic.status.HasField("brokers")
    return TopicLine(
        topic.name,
        len(parts) if there else spec.partitions,
        max((len(part.replicas) for part in parts), default=0) if there else spec.replication_factor,
        sum(part.end_offset - part.begin_offset for part in parts),
        spec.topic,
        spec.broker_cluster,
        word(TopicState, topic.status.state),
        topic.status.message,
        len(topic.status.differences),
        dict(spec.labels),
        origin_text(spec.origin),
    )
