"""The columns of each kind's table, and the words for states, sizes and times in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.connector_pb2 import ConnectorType
from keelman.api.copy.v1.copy_run_pb2 import LagUnit
from keelman.api.node.v1.node_pb2 import NodeState
from keelman.api.node.v1.plan_pb2 import PlanAction
from keelman.cli.exits import in_one_line
from keelman.cli.kinds import CONNECTORS, COPY_RUNS, DOCUMENTS, PLANS, PLUGINS, Kind
from keelman.cli.output import operations as words
from keelman.cli.output.lines import PlanLine, PluginLine, TopicLine
from keelman.cli.output.words import labels_text, origin_text, owner_text, ports_text, size
from keelman.model.document import document_name
from keelman.model.traces import why_line
from keelman.rpc.enums import state_word, word
from keelman.rpc.times import from_duration


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title and its cell for a resource. `wide` columns are shown by `-o wide` only.

    On a terminal that is too narrow, texts are shortened first and names last; words and numbers stay whole."""

    title: str
    cell: Callable[[Any], str]
    wide: bool = False
    number: bool = False
    text: bool = False
    name: bool = False


def key_of(kind: Kind, resource: Any) -> str:
    """Returns the name of a resource on the command line."""
    if kind is CONNECTORS:
        return f"{resource.worker_cluster}/{resource.name}"
    if kind is PLANS:
        return str(resource.key if isinstance(resource, PlanLine) else resource.revision)
    if kind is PLUGINS:
        plugin = resource.plugin if isinstance(resource, PluginLine) else resource
        return f"{plugin.name}:{plugin.version}"
    parts = (resource.kind, resource.scope, resource.key) if kind is DOCUMENTS else None
    return document_name(*parts) if parts else str(resource.uid if kind is COPY_RUNS else resource.name)


def age(stamp: Timestamp, now: float | None = None) -> str:
    """Returns how long ago a time is, in the largest fitting unit; empty for an unset time."""
    if not stamp.seconds:
        return ""
    seconds = max(0, int((time.time() if now is None else now) - stamp.seconds))
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _lag(run: Any) -> str:
    lag, unit = run.progress.lag, run.progress.lag_unit
    if not run.progress.HasField("lag") or unit == LagUnit.LAG_UNIT_UNSPECIFIED:
        return ""
    return size(lag) if unit == LagUnit.LAG_UNIT_BYTES else f"{lag} records"


def _left(worker: Any) -> str:
    """Returns the lag of a worker's tasks, in each unit with a lag."""
    usage = worker.usage
    parts = [f"{usage.lag_records} records"] if usage.lag_records else []
    return " + ".join(parts + ([size(usage.lag_bytes)] if usage.lag_bytes else []))


def _connector_left(connector: Any) -> str:
    """Returns the lag of a connector, in each unit that it is counted in; empty if it is not counted."""
    parts = [f"{connector.lag_records} records"] if connector.HasField("lag_records") else []
    return " + ".join(parts + ([size(connector.lag_bytes)] if connector.HasField("lag_bytes") else []))


def _time_left(run: Any) -> str:
    if not run.progress.HasField("remaining_time"):
        return ""
    minutes, rest = divmod(round(from_duration(run.progress.remaining_time)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _brokers(cluster: Any) -> str:
    return str(cluster.spec.WhichOneof("kind") or "")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _why(connector: Any) -> str:
    traces = (why_line(task.trace) for task in (connector, *connector.tasks) if task.trace)
    return next(traces, "") or next(filter(None, map(words.task_note, connector.tasks)), "")


def _labels(resource: Any) -> str:
    return labels_text(labels_of(resource))


def labels_of(resource: Any) -> Any:
    """Returns the labels of a resource: of a plugin its own, of other kinds the labels in the spec."""
    if isinstance(resource, TopicLine):
        return resource.labels
    return resource.labels if "labels" in resource.DESCRIPTOR.fields_by_name else resource.spec.labels


def _rollout(cluster: Any) -> str:
    if not cluster.status.HasField("rollout"):
        return ""
    rollout = cluster.status.rollout
    return f"{state_word(rollout)} {rollout.updated_workers}/{rollout.workers}"


def _new_work(node: Any) -> str:
    if node.spec.draining or node.spec.cordoned:
        return "draining" if node.spec.draining else "cordoned"
    return "yes" if node.status.state == NodeState.NODE_STATE_ONLINE else "no"


def _figure(node: Any, of: Callable[[Any], str]) -> str:
    return of(node.status.figures) if node.status.HasField("figures") else ""


def _moved(line: PlanLine) -> str:
    return f"{line.change.from_node} to {line.change.node}" if line.change.from_node else str(line.change.node)


SHORT_ID = 6
"""The length of the shortened uid of a copy run for people; commands accept it too."""
COLUMNS: dict[str, tuple[Column, ...]] = {
    "broker-clusters": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", lambda r: state_word(r.status)),
        Column("KIND", _brokers),
        Column("BOOTSTRAP", lambda r: r.status.bootstrap_servers, text=True),
        Column("AGE", lambda r: age(r.create_time)),
        Column("NODES", lambda r: ",".join(r.spec.managed.nodes), wide=True),
        Column("KAFKA-CLUSTER", lambda r: r.status.kafka_cluster_id, wide=True),
        Column("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
    "worker-clusters": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", lambda r: state_word(r.status)),
        Column("WORKERS", lambda r: f"{r.status.ready_workers}/{r.status.wanted_workers}"),
        Column("PROBLEMS", lambda r: str(r.status.problem_connectors), number=True),
        Column("BROKERS", lambda r: r.spec.broker_cluster, text=True),
        Column("OWNER", lambda r: owner_text(r.spec.origin), text=True),
        Column("AGE", lambda r: age(r.create_time)),
        Column("GROUP", lambda r: r.status.group_id, wide=True),
        Column("REST", lambda r: ",".join(r.status.rest_urls), wide=True),
        Column("PORTS", lambda r: ports_text(r.spec), wide=True),
        Column("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("ROLLOUT", _rollout, wide=True),
        Column("MESSAGE", lambda r: _first_line(r.status.message or r.status.verdict), wide=True),
    ),
    "workers": (
        Column("NAME", lambda r: r.name, name=True),
        Column("NODE", lambda r: r.node, text=True),
        Column("STATE", lambda r: state_word(r.process)),
        Column("MEMBER", lambda r: ("leader" if r.membership.leader else "yes") if r.membership.joined else "no"),
        Column("CONNECTORS", lambda r: str(r.membership.connectors), number=True),
        Column("TASKS", lambda r: str(r.membership.tasks), number=True),
        Column("REST", lambda r: r.rest_url, wide=True),
        Column("PID", lambda r: str(r.process.pid or ""), wide=True, number=True),
        Column("CPUS", lambda r: f"{r.usage.cpus:.2f}" if r.HasField("usage") else "", wide=True, number=True),
        Column("MEMORY", lambda r: size(r.usage.memory_bytes or r.process.memory_bytes), wide=True, number=True),
        Column("SLOTS", lambda r: str(r.usage.slots) if r.HasField("usage") else "", wide=True, number=True),
        Column("LEFT", _left, wide=True, number=True),
        Column("RESTARTS", lambda r: str(r.process.restarts), wide=True, number=True),
        Column("MESSAGE", lambda r: _first_line(r.process.message), wide=True),
    ),
    "connectors": (
        Column("CLUSTER", lambda r: r.worker_cluster, name=True),
        Column("NAME", lambda r: r.name, name=True),
        Column("TYPE", lambda r: word(ConnectorType, r.type)),
        Column("STATE", state_word),
        Column("TASKS", words.tasks_text),
        Column("LEFT", _connector_left, number=True),
        Column("WORKER", lambda r: r.worker_id, wide=True),
        Column("CLASS", lambda r: r.config.get("connector.class", ""), wide=True),
        Column("TRACE", _why, wide=True),
    ),
    "nodes": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", lambda r: state_word(r.status)),
        Column("NEW WORK", _new_work),
        Column("CPUS", lambda r: str(r.status.cpus or ""), number=True),
        Column("MEMORY", lambda r: size(r.status.memory_bytes) if r.status.memory_bytes else "", number=True),
        Column("VERSION", lambda r: r.status.version, text=True),
        Column("AGENT", lambda r: r.status.agent_address, wide=True),
        Column("CPUS USED", lambda r: _figure(r, lambda f: f"{f.cpus_used:.1f}"), wide=True, number=True),
        Column("MEMORY FREE", lambda r: _figure(r, lambda f: size(f.memory_available_bytes)), wide=True, number=True),
        Column("DISK FREE", lambda r: _figure(r, lambda f: size(f.disk_free_bytes)), wide=True, number=True),
        Column("LABELS", _labels, wide=True),
        Column("HEARTBEAT", lambda r: age(r.status.heartbeat_time), wide=True, number=True),
        Column("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
    "copy-runs": (
        Column("ID", lambda r: r.uid[:SHORT_ID]),
        Column("CONNECTOR", lambda r: f"{r.worker_cluster}/{r.connector}", text=True),
        Column("TASK", lambda r: f"{r.task}-b{r.part}" if r.part else str(r.task), number=True),
        Column("STATE", state_word),
        Column("RECORDS", lambda r: str(r.progress.records), number=True),
        Column("BYTES", lambda r: size(r.progress.bytes), number=True, wide=True),
        Column("RATE", lambda r: f"{size(r.progress.bytes_per_second)}/s", number=True),
        Column("LEFT", _lag, number=True),
        Column("TIME LEFT", _time_left, number=True, wide=True),
        Column("REASON", lambda r: r.reason, text=True),
        Column("UID", lambda r: r.uid, wide=True),
        Column("RECORDS/S", lambda r: f"{r.progress.records_per_second:,.0f}", wide=True, number=True),
        Column("ERRORS", lambda r: str(r.progress.errors), wide=True, number=True),
        Column("SLOT", lambda r: r.slot, wide=True),
        Column("WORKER", lambda r: r.worker_id, wide=True),
        Column("AGE", lambda r: age(r.create_time), wide=True),
        Column("MESSAGE", lambda r: _first_line(r.message), wide=True),
    ),
    "plugins": (
        Column("PLUGIN", lambda r: r.plugin.name, name=True),
        Column("VERSION", lambda r: r.plugin.version, name=True),
        Column("TYPE", lambda r: r.text_of("type")),
        Column("CLASS", lambda r: r.text_of("class_name").rpartition(".")[2], text=True),
        Column("CLUSTERS", lambda r: ",".join(r.plugin.worker_clusters), text=True),
        Column("PROBLEMS", lambda r: str(len(r.plugin.problems)), number=True),
        Column("FULL CLASS", lambda r: r.text_of("class_name"), wide=True),
        Column("LANGUAGE", lambda r: r.text_of("language"), wide=True),
        Column("SIZE", lambda r: size(r.plugin.size_bytes), wide=True, number=True),
        Column("CLASS VERSION", lambda r: r.text_of("version"), wide=True),
        Column("FILE", lambda r: r.text_of("path") or r.plugin.file_name, wide=True),
        Column("AGE", lambda r: age(r.plugin.create_time), wide=True),
        Column("ORIGIN", lambda r: origin_text(r.plugin.origin), wide=True),
        Column("LABELS", lambda r: _labels(r.plugin), wide=True),
        Column("SHA256", lambda r: r.plugin.sha256, wide=True),
        Column("PROBLEM", lambda r: _first_line("; ".join(r.plugin.problems)), wide=True),
    ),
    "plugin-classes": (
        Column("TYPE", lambda r: r.type),
        Column("VERSION", lambda r: r.version, text=True),
        Column("NAME", lambda r: r.names[1], name=True),
        Column("WHERE", lambda r: r.where or "keelman", text=True),
        Column("PROBLEM", lambda r: _first_line(r.problem), text=True),
        Column("CLASS", lambda r: r.name, wide=True),
    ),
    "topics": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", lambda r: r.state),
        Column("PARTITIONS", lambda r: str(r.partitions or ""), number=True),
        Column("REPLICATION", lambda r: str(r.replication or ""), number=True),
        Column("OFFSETS", lambda r: f"{r.offsets:,}", number=True),
        Column("BROKERS", lambda r: r.broker_cluster, text=True),
        Column("TOPIC", lambda r: r.topic, wide=True),
        Column("DIFFERENCES", lambda r: str(r.differences or ""), number=True, wide=True),
        Column("ORIGIN", lambda r: r.origin, wide=True),
        Column("LABELS", _labels, wide=True),
        Column("MESSAGE", lambda r: _first_line(r.message), wide=True),
    ),
    "definitions": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", words.definition_state),
        Column("GOAL", words.goal_text),
        Column("CLUSTER", lambda r: r.spec.worker_cluster, text=True),
        Column("CONNECTOR", lambda r: r.spec.connector, text=True),
        Column("DRIFTED", lambda r: "yes" if r.status.drifted else ""),
        Column("AGE", lambda r: age(r.create_time)),
        Column("GENERATION", lambda r: f"{r.status.applied_generation}/{r.generation}", wide=True),
        Column("CLASS", lambda r: r.spec.config.get("connector.class", ""), wide=True),
        Column("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("OPERATION", lambda r: r.status.operation, wide=True),
        Column("MESSAGE", lambda r: in_one_line(r.status.message or "; ".join(r.status.drifts)), wide=True),
    ),
    "dedicated-connectors": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", lambda r: state_word(r.status)),
        Column("CONNECTOR", lambda r: r.spec.connector, text=True),
        Column("WORKERS", words.workers_text, number=True),
        Column("TASKS", lambda r: words.tasks_text(r.status.connector)),
        Column("AGE", lambda r: age(r.create_time)),
        Column("BROKERS", lambda r: r.status.broker_cluster, wide=True),
        Column("CLASS", lambda r: r.spec.config.get("connector.class", ""), wide=True),
        Column("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("OPERATION", lambda r: r.status.operation, wide=True),
        Column("MESSAGE", lambda r: in_one_line(": ".join(filter(None, (r.status.code, r.status.message)))), wide=True),
    ),
    "worker-configurations": (
        Column("NAME", lambda r: r.name, name=True),
        Column("REVISION", lambda r: str(r.revisions[-1].revision), number=True),
        Column("USERS", lambda r: ",".join(r.users), text=True),
        Column("AGE", lambda r: age(r.create_time)),
        Column("ORIGIN", lambda r: origin_text(r.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("DESCRIPTION", lambda r: _first_line(r.description), wide=True),
    ),
    "plugin-imports": (
        Column("NAME", lambda r: r.name, name=True),
        Column("STATE", state_word),
        Column("CODE", lambda r: r.code, text=True),
        Column("SIZE", lambda r: size(r.size_bytes) if r.size_bytes else "", number=True),
        Column("CLUSTERS", lambda r: ",".join(r.users), text=True),
        Column("AGE", lambda r: age(r.create_time)),
        Column("OBJECT", lambda r: f"{r.source.bucket}/{r.source.key}", wide=True),
        Column("ORIGIN", lambda r: origin_text(r.origin), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("MESSAGE", lambda r: in_one_line(r.message), wide=True),
    ),
    "documents": (
        Column("NAME", lambda r: key_of(DOCUMENTS, r), name=True),
        Column("AGE", lambda r: age(r.create_time)),
    ),
    "secrets": (
        Column("NAME", lambda r: r.name, name=True),
        Column("KEYS", lambda r: ",".join(r.keys), text=True),
        Column("AGE", lambda r: age(r.create_time)),
        Column("CHANGED", lambda r: age(r.update_time), wide=True),
        Column("LABELS", _labels, wide=True),
        Column("DESCRIPTION", lambda r: _first_line(r.description), wide=True),
    ),
    "operations": (
        Column("NAME", lambda r: r.name, name=True),
        Column("KIND", words.operation_kind),
        Column("TARGET", lambda r: r.target.name, text=True),
        Column("STATE", words.operation_state),
        Column("STEPS", words.steps_done),
        Column("AGE", lambda r: age(r.create_time)),
        Column("NOUN", words.target_noun, wide=True),
        Column("GOAL", lambda r: r.target.goal, wide=True),
        Column("STEP", words.step_name, wide=True),
        Column("GENERATION", lambda r: str(r.target.generation or ""), wide=True, number=True),
        Column("ENDED", lambda r: age(r.end_time), wide=True),
        Column("MESSAGE", lambda r: in_one_line(r.message), wide=True),
    ),
    "plans": (
        Column("PLAN", lambda r: str(r.plan.revision)),
        Column("AGE", lambda r: age(r.plan.create_time)),
        Column("WORKLOAD", lambda r: r.change.workload, name=True),
        Column("ACTION", lambda r: word(PlanAction, r.change.action)),
        Column("NODE", _moved, text=True),
        Column("REASON", lambda r: r.change.reason, text=True),
        Column("GENERATION", lambda r: str(r.change.generation), wide=True, number=True),
    ),
    "workloads": (
        Column("NAME", lambda r: r.name, name=True),
        Column("NODE", lambda r: r.node, text=True),
        Column("STATE", lambda r: state_word(r.status)),
        Column("MEMORY", lambda r: size(r.status.memory_bytes), number=True),
        Column("RESTARTS", lambda r: str(r.status.restarts), number=True),
        Column("AGE", lambda r: age(r.status.start_time)),
        Column("PID", lambda r: str(r.status.pid or ""), wide=True, number=True),
        Column("GENERATION", lambda r: str(r.generation), wide=True, number=True),
        Column("LIMITED BY", lambda r: r.status.limited_by, wide=True),
        Column("REASON", lambda r: r.status.reason, wide=True),
        Column("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
}
