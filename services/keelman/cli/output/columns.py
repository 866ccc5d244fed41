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
from keelman.cli.kinds import AUDIT, CONNECTORS, COPY_RUNS, DOCUMENTS, PLANS, PLUGINS, Kind
from keelman.cli.output import operations as words
from keelman.cli.output.lines import PlanLine, PluginLine, TopicLine
from keelman.cli.output.words import labels_text, origin_text, owner_text, ports_text, size
from keelman.model.document import document_name
from keelman.model.traces import why_line
from keelman.rpc.enums import state_word, word
from keelman.rpc.times import from_duration


@dataclass(frozen=True, slots=True)
class OutputColumn:
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
    if kind is AUDIT:
        return str(resource.number)
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
    has_own = isinstance(resource, TopicLine) or "labels" in resource.DESCRIPTOR.fields_by_name
    return resource.labels if has_own else resource.spec.labels


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
COLUMNS: dict[str, tuple[OutputColumn, ...]] = {
    "broker-clusters": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("KIND", _brokers),
        OutputColumn("BOOTSTRAP", lambda r: r.status.bootstrap_servers, text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("NODES", lambda r: ",".join(r.spec.managed.nodes), wide=True),
        OutputColumn("KAFKA-CLUSTER", lambda r: r.status.kafka_cluster_id, wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
    "worker-clusters": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("WORKERS", lambda r: f"{r.status.ready_workers}/{r.status.wanted_workers}"),
        OutputColumn("PROBLEMS", lambda r: str(r.status.problem_connectors), number=True),
        OutputColumn("BROKERS", lambda r: r.spec.broker_cluster, text=True),
        OutputColumn("OWNER", lambda r: owner_text(r.spec.origin), text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("GROUP", lambda r: r.status.group_id, wide=True),
        OutputColumn("REST", lambda r: ",".join(r.status.rest_urls), wide=True),
        OutputColumn("PORTS", lambda r: ports_text(r.spec), wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("ROLLOUT", _rollout, wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.status.message or r.status.verdict), wide=True),
    ),
    "spark-clusters": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("REASON", lambda r: r.status.reason, text=True),
        OutputColumn("MASTER", lambda r: r.spec.master, text=True),
        OutputColumn("USERS", lambda r: ",".join(r.users), text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("DRIVERS", lambda r: ",".join(driver.node for driver in r.status.drivers), wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
    "workers": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("NODE", lambda r: r.node, text=True),
        OutputColumn("STATE", lambda r: state_word(r.process)),
        OutputColumn("MEMBER", lambda r: ("leader" if r.membership.leader else "yes") if r.membership.joined else "no"),
        OutputColumn("CONNECTORS", lambda r: str(r.membership.connectors), number=True),
        OutputColumn("TASKS", lambda r: str(r.membership.tasks), number=True),
        OutputColumn("REST", lambda r: r.rest_url, wide=True),
        OutputColumn("PID", lambda r: str(r.process.pid or ""), wide=True, number=True),
        OutputColumn("CPUS", lambda r: f"{r.usage.cpus:.2f}" if r.HasField("usage") else "", wide=True, number=True),
        OutputColumn("MEMORY", lambda r: size(r.usage.memory_bytes or r.process.memory_bytes), wide=True, number=True),
        OutputColumn("SLOTS", lambda r: str(r.usage.slots) if r.HasField("usage") else "", wide=True, number=True),
        OutputColumn("LEFT", _left, wide=True, number=True),
        OutputColumn("RESTARTS", lambda r: str(r.process.restarts), wide=True, number=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.process.message), wide=True),
    ),
    "connectors": (
        OutputColumn("CLUSTER", lambda r: r.worker_cluster, name=True),
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("TYPE", lambda r: word(ConnectorType, r.type)),
        OutputColumn("STATE", state_word),
        OutputColumn("TASKS", words.tasks_text),
        OutputColumn("LEFT", _connector_left, number=True),
        OutputColumn("WORKER", lambda r: r.worker_id, wide=True),
        OutputColumn("CLASS", lambda r: r.config.get("connector.class", ""), wide=True),
        OutputColumn("TRACE", _why, wide=True),
    ),
    "nodes": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("NEW WORK", _new_work),
        OutputColumn("CPUS", lambda r: str(r.status.cpus or ""), number=True),
        OutputColumn("MEMORY", lambda r: size(r.status.memory_bytes) if r.status.memory_bytes else "", number=True),
        OutputColumn("VERSION", lambda r: r.status.version, text=True),
        OutputColumn("AGENT", lambda r: r.status.agent_address, wide=True),
        OutputColumn("CPUS USED", lambda r: _figure(r, lambda f: f"{f.cpus_used:.1f}"), wide=True, number=True),
        OutputColumn(
            "MEMORY FREE", lambda r: _figure(r, lambda f: size(f.memory_available_bytes)), wide=True, number=True
        ),
        OutputColumn("DISK FREE", lambda r: _figure(r, lambda f: size(f.disk_free_bytes)), wide=True, number=True),
        OutputColumn("TENANTS", lambda r: "apart" if r.status.tenant_users else "one user", wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("HEARTBEAT", lambda r: age(r.status.heartbeat_time), wide=True, number=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
    "copy-runs": (
        OutputColumn("ID", lambda r: r.uid[:SHORT_ID]),
        OutputColumn("CONNECTOR", lambda r: f"{r.worker_cluster}/{r.connector}", text=True),
        OutputColumn("TASK", lambda r: f"{r.task}-b{r.part}" if r.part else str(r.task), number=True),
        OutputColumn("STATE", state_word),
        OutputColumn("RECORDS", lambda r: str(r.progress.records), number=True),
        OutputColumn("BYTES", lambda r: size(r.progress.bytes), number=True, wide=True),
        OutputColumn("RATE", lambda r: f"{size(r.progress.bytes_per_second)}/s", number=True),
        OutputColumn("LEFT", _lag, number=True),
        OutputColumn("TIME LEFT", _time_left, number=True, wide=True),
        OutputColumn("REASON", lambda r: r.reason, text=True),
        OutputColumn("UID", lambda r: r.uid, wide=True),
        OutputColumn("RECORDS/S", lambda r: f"{r.progress.records_per_second:,.0f}", wide=True, number=True),
        OutputColumn("ERRORS", lambda r: str(r.progress.errors), wide=True, number=True),
        OutputColumn("SLOT", lambda r: r.slot, wide=True),
        OutputColumn("HOST", lambda r: r.host, wide=True),
        OutputColumn("WORKER", lambda r: r.worker_id, wide=True),
        OutputColumn("AGE", lambda r: age(r.create_time), wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.message), wide=True),
    ),
    "plugins": (
        OutputColumn("PLUGIN", lambda r: r.plugin.name, name=True),
        OutputColumn("VERSION", lambda r: r.plugin.version, name=True),
        OutputColumn("TYPE", lambda r: r.text_of("type")),
        OutputColumn("CLASS", lambda r: r.text_of("class_name").rpartition(".")[2], text=True),
        OutputColumn("CLUSTERS", lambda r: ",".join(r.plugin.worker_clusters), text=True),
        OutputColumn("PROBLEMS", lambda r: str(len(r.plugin.problems)), number=True),
        OutputColumn("FULL CLASS", lambda r: r.text_of("class_name"), wide=True),
        OutputColumn("LANGUAGE", lambda r: r.text_of("language"), wide=True),
        OutputColumn("SIZE", lambda r: size(r.plugin.size_bytes), wide=True, number=True),
        OutputColumn("CLASS VERSION", lambda r: r.text_of("version"), wide=True),
        OutputColumn("FILE", lambda r: r.text_of("path") or r.plugin.file_name, wide=True),
        OutputColumn("AGE", lambda r: age(r.plugin.create_time), wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.plugin.origin), wide=True),
        OutputColumn("LABELS", lambda r: _labels(r.plugin), wide=True),
        OutputColumn("SHA256", lambda r: r.plugin.sha256, wide=True),
        OutputColumn("PROBLEM", lambda r: _first_line("; ".join(r.plugin.problems)), wide=True),
    ),
    "plugin-classes": (
        OutputColumn("TYPE", lambda r: r.type),
        OutputColumn("VERSION", lambda r: r.version, text=True),
        OutputColumn("NAME", lambda r: r.names[1], name=True),
        OutputColumn("WHERE", lambda r: r.where or "keelman", text=True),
        OutputColumn("PROBLEM", lambda r: _first_line(r.problem), text=True),
        OutputColumn("CLASS", lambda r: r.name, wide=True),
    ),
    "topics": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: r.state),
        OutputColumn("PARTITIONS", lambda r: str(r.partitions or ""), number=True),
        OutputColumn("REPLICATION", lambda r: str(r.replication or ""), number=True),
        OutputColumn("OFFSETS", lambda r: f"{r.offsets:,}", number=True),
        OutputColumn("BROKERS", lambda r: r.broker_cluster, text=True),
        OutputColumn("TOPIC", lambda r: r.topic, wide=True),
        OutputColumn("DIFFERENCES", lambda r: str(r.differences or ""), number=True, wide=True),
        OutputColumn("ORIGIN", lambda r: r.origin, wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.message), wide=True),
    ),
    "definitions": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", words.definition_state),
        OutputColumn("GOAL", words.goal_text),
        OutputColumn("CLUSTER", lambda r: r.spec.worker_cluster, text=True),
        OutputColumn("CONNECTOR", lambda r: r.spec.connector, text=True),
        OutputColumn("DRIFTED", lambda r: "yes" if r.status.drifted else ""),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("GENERATION", lambda r: f"{r.status.applied_generation}/{r.generation}", wide=True),
        OutputColumn("CLASS", lambda r: r.spec.config.get("connector.class", ""), wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("OPERATION", lambda r: r.status.operation, wide=True),
        OutputColumn("MESSAGE", lambda r: in_one_line(r.status.message or "; ".join(r.status.drifts)), wide=True),
    ),
    "dedicated-connectors": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("CONNECTOR", lambda r: r.spec.connector, text=True),
        OutputColumn("WORKERS", words.workers_text, number=True),
        OutputColumn("TASKS", lambda r: words.tasks_text(r.status.connector)),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("BROKERS", lambda r: r.status.broker_cluster, wide=True),
        OutputColumn("CLASS", lambda r: r.spec.config.get("connector.class", ""), wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.spec.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("OPERATION", lambda r: r.status.operation, wide=True),
        OutputColumn(
            "MESSAGE", lambda r: in_one_line(": ".join(filter(None, (r.status.code, r.status.message)))), wide=True
        ),
    ),
    "worker-configurations": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("REVISION", lambda r: str(r.revisions[-1].revision), number=True),
        OutputColumn("USERS", lambda r: ",".join(r.users), text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("ORIGIN", lambda r: origin_text(r.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("DESCRIPTION", lambda r: _first_line(r.description), wide=True),
    ),
    "plugin-imports": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("STATE", state_word),
        OutputColumn("CODE", lambda r: r.code, text=True),
        OutputColumn("SIZE", lambda r: size(r.size_bytes) if r.size_bytes else "", number=True),
        OutputColumn("CLUSTERS", lambda r: ",".join(r.users), text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("OBJECT", lambda r: f"{r.source.bucket}/{r.source.key}", wide=True),
        OutputColumn("ORIGIN", lambda r: origin_text(r.origin), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("MESSAGE", lambda r: in_one_line(r.message), wide=True),
    ),
    "documents": (
        OutputColumn("NAME", lambda r: key_of(DOCUMENTS, r), name=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
    ),
    "secrets": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("KEYS", lambda r: ",".join(r.keys), text=True),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("CHANGED", lambda r: age(r.update_time), wide=True),
        OutputColumn("LABELS", _labels, wide=True),
        OutputColumn("DESCRIPTION", lambda r: _first_line(r.description), wide=True),
    ),
    "operations": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("KIND", words.operation_kind),
        OutputColumn("TARGET", lambda r: r.target.name, text=True),
        OutputColumn("STATE", words.operation_state),
        OutputColumn("STEPS", words.steps_done),
        OutputColumn("AGE", lambda r: age(r.create_time)),
        OutputColumn("NOUN", words.target_noun, wide=True),
        OutputColumn("GOAL", lambda r: r.target.goal, wide=True),
        OutputColumn("ACTOR", lambda r: r.actor, wide=True),
        OutputColumn("STEP", words.step_name, wide=True),
        OutputColumn("GENERATION", lambda r: str(r.target.generation or ""), wide=True, number=True),
        OutputColumn("ENDED", lambda r: age(r.end_time), wide=True),
        OutputColumn("MESSAGE", lambda r: in_one_line(r.message), wide=True),
    ),
    "audit": (
        OutputColumn("NUMBER", lambda r: str(r.number), wide=True, number=True),
        OutputColumn("AGE", lambda r: age(r.time)),
        OutputColumn("CALLER", lambda r: r.caller, text=True),
        OutputColumn("CALL", lambda r: r.call, name=True),
        OutputColumn("RESOURCE", lambda r: r.resource, text=True),
        OutputColumn("OUTCOME", lambda r: r.outcome, text=True),
        OutputColumn("ROLE", lambda r: r.role, wide=True),
        OutputColumn("ADDRESS", lambda r: r.address, wide=True),
        OutputColumn("REQUEST", lambda r: r.request_id, wide=True),
        OutputColumn("GATEWAY", lambda r: r.gateway, wide=True),
        OutputColumn("LEFT OUT", lambda r: str(r.left_out or ""), wide=True, number=True),
    ),
    "plans": (
        OutputColumn("PLAN", lambda r: str(r.plan.revision)),
        OutputColumn("AGE", lambda r: age(r.plan.create_time)),
        OutputColumn("WORKLOAD", lambda r: r.change.workload, name=True),
        OutputColumn("ACTION", lambda r: word(PlanAction, r.change.action)),
        OutputColumn("NODE", _moved, text=True),
        OutputColumn("REASON", lambda r: r.change.reason, text=True),
        OutputColumn("GENERATION", lambda r: str(r.change.generation), wide=True, number=True),
    ),
    "workloads": (
        OutputColumn("NAME", lambda r: r.name, name=True),
        OutputColumn("NODE", lambda r: r.node, text=True),
        OutputColumn("STATE", lambda r: state_word(r.status)),
        OutputColumn("MEMORY", lambda r: size(r.status.memory_bytes), number=True),
        OutputColumn("RESTARTS", lambda r: str(r.status.restarts), number=True),
        OutputColumn("AGE", lambda r: age(r.status.start_time)),
        OutputColumn("PID", lambda r: str(r.status.pid or ""), wide=True, number=True),
        OutputColumn("GENERATION", lambda r: str(r.generation), wide=True, number=True),
        OutputColumn("LIMITED BY", lambda r: r.status.limited_by, wide=True),
        OutputColumn("REASON", lambda r: r.status.reason, wide=True),
        OutputColumn("MESSAGE", lambda r: _first_line(r.status.message), wide=True),
    ),
}
