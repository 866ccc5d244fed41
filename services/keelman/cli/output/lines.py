"""Makes the lines of tables where these are not resources: classes of plugins, changes of plans, topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.cli.output.words import origin_text
from keelman.rpc.enums import word


@dataclass(frozen=True, slots=True)
class PluginLine:
    """One class of a plugin, None of one that has none: what a table of plugins has lines of."""

    plugin: Any
    found: Any = None

    def text_of(self, field: str) -> str:
        """What is known of the class."""
        return "" if self.found is None else str(getattr(self.found, field))


def plugin_lines(plugins: Sequence[Any]) -> list[PluginLine]:
    """The classes of these plugins."""
    return [PluginLine(plugin, found) for plugin in plugins for found in (*plugin.classes,) or (None,)]


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One change of a plan: what a table of plans has lines of."""

    plan: Any
    change: Any

    @property
    def key(self) -> str:
        """Unique among the lines of all plans."""
        return f"{self.plan.revision}/{self.change.workload}"


def plan_lines(plans: Sequence[Any], workload: str = "") -> list[PlanLine]:
    """The changes of these plans, of one workload where it is named."""
    return [PlanLine(plan, change) for plan in plans for change in plan.changes if workload in ("", change.workload)]


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in a listing: one with a resource, or one that the brokers have beside these, which has no state."""

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
    """A topic resource in a listing; what the brokers do not have is as it is wanted."""
    spec, brokers = topic.spec, topic.status.brokers
    parts = brokers.partitions
    there = topic.status.HasField("brokers")
    return TopicLine(
        topic.name,
        len(parts) if there else spec.partitions,
        max((len(one.replicas) for one in parts), default=0) if there else spec.replication_factor,
        sum(one.end_offset - one.begin_offset for one in parts),
        spec.topic,
        spec.broker_cluster,
        word(TopicState, topic.status.state),
        topic.status.message,
        len(topic.status.differences),
        dict(spec.labels),
        origin_text(spec.origin),
    )
