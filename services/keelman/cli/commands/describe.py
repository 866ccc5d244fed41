"""`keelman describe`: one resource in full, and the things that belong to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.struct_pb2 import Struct

from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition
from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnector
from keelman.api.connect.v1.operation_pb2 import Operation
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.connect.v1.topic_pb2 import Topic
from keelman.api.connect.v1.worker_cluster_pb2 import WORKER_ENGINE_KAFKA_CONNECT, WorkerCluster
from keelman.api.connect.v1.worker_configuration_pb2 import WorkerConfiguration
from keelman.api.copy.v1.copy_run_pb2 import CopyRun
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.client.topics import resource_of
from keelman.cli.exits import plain_plugins
from keelman.cli.kinds import Kind, kind_of
from keelman.cli.options import Cluster, Name, command_group, kind_word
from keelman.cli.output.columns import key_of
from keelman.cli.output.lines import topic_line
from keelman.cli.output.operations import partition_lines, step_lines, task_note
from keelman.cli.output.printing import as_yaml, plain, print_list
from keelman.cli.output.words import (
    capacity_text,
    figures_text,
    limits_text,
    origin_text,
    ports_text,
    rollout_text,
    whole_numbers,
)
from keelman.model.errors import KeelmanError
from keelman.rpc.enums import prefix_of, state_word
from keelman.workers.properties.known_properties import notes, notes_of_kafka_connect

app = command_group()
_SENTENCES: Sequence[tuple[str, str, Callable[[Any], str]]] = (
    ("spec", "limits", lambda limits: f"{limits_text(limits)}, each worker" if limits_text(limits) else ""),
    ("spec", "capacity", capacity_text),
    ("spec", "origin", origin_text),
    ("status", "rollout", rollout_text),
    ("status", "figures", figures_text),
)
"""Messages of the wire that are shown as a sentence."""
_PORTS = ("port", "metrics_port", "admin_port", "reserved_ports")
MAX_OPERATIONS = 5
_LONG = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)  # texts in protobuf's JSON


@app.command()
def describe(
    kind: Annotated[str, kind_word("describe")], name: Name, *, cluster: Cluster = "", target: GatewayTarget
) -> int:
    """Show everything about one thing, and what belongs to it."""
    noun = kind_of(kind, "describe", cluster=cluster)

    async def body(client: Gateway) -> None:
        resource = await resource_of(client, "", name) if noun is kinds.TOPICS else None
        if resource is None:
            resource = await client.get(noun, name, cluster=cluster)
        await print_description(client, noun, resource)

    return target.run(body)


async def print_description(gateway: Gateway, kind: Kind, resource: Any) -> None:
    """Prints the resource as YAML, then tables of its parts."""
    print(f"# {kind.singular} {key_of(kind, resource)}")
    print(as_yaml(in_words(resource)), end="")
    for part, rows in (await _parts(gateway, kind, resource)).items():
        if rows:
            print(f"\n# {part.plural}")
            print_list(part, rows if part is kinds.OPERATIONS else sorted(rows, key=_order), "table")
            if part is kinds.COPY_RUNS:
                print_messages(rows)


def print_messages(runs: Sequence[Any]) -> None:
    """The messages of the newest copy run of each task."""
    newest = {(r.connector, r.task, r.part): r for r in sorted(runs, key=lambda r: r.create_time.ToNanoseconds())}
    for run in newest.values():
        if run.message:
            print(f"{run.connector}, task {run.task}: {state_word(run)}: {' '.join(run.message.split())}")


def in_words(resource: Any) -> dict[str, Any]:
    """A resource for people: states as the tables have them, maps sorted, nothing that is empty, and the tasks of a
    connector that are alike in one line."""
    words = _words(plain(resource), resource.DESCRIPTOR)
    if isinstance(resource, Connector) and resource.tasks:
        words["tasks"] = task_lines(resource.tasks)
    if isinstance(resource, Operation) and resource.steps:
        words["steps"] = step_lines(resource)
    if isinstance(resource, Topic) and resource.status.brokers.partitions:
        words["status"]["brokers"]["partitions"] = partition_lines(resource.status.brokers.partitions)
    if isinstance(resource, (ConnectorDefinition, DedicatedConnector)) and resource.status.HasField("connector"):
        words["status"]["connector"] = connector_words(resource.status.connector)
    words |= _in_lines(resource)
    for part, name, text in _SENTENCES:
        whole = getattr(resource, part, None)
        if whole is not None and name in whole.DESCRIPTOR.fields_by_name and whole.HasField(name) and part in words:
            said = text(getattr(whole, name))
            words[part] = {k: said if k == name else v for k, v in words[part].items() if k != name or said}
    if isinstance(resource, WorkerCluster) and "spec" in words:
        words["spec"] = {key: value for key, value in words["spec"].items() if key not in _PORTS}
        if ports := ports_text(resource.spec):
            words["spec"]["ports"] = ports
        java = resource.spec.engine == WORKER_ENGINE_KAFKA_CONNECT
        if remarks := (notes_of_kafka_connect if java else notes)(resource.spec.properties):
            words["notes"] = remarks
    if not words.get("status", {}).get("stuck", True):
        del words["status"]["stuck"]
    if "spec" in words:
        words["spec"] = _asked_for(words["spec"])
    return words


def _in_lines(resource: Any) -> dict[str, Any]:
    """The classes of a plugin, or the contents of a worker configuration's revisions."""
    if isinstance(resource, Plugin) and resource.classes:
        return {"classes": class_lines(resource.classes)}
    if isinstance(resource, WorkerConfiguration):
        return {
            "revisions": {
                revision.revision: revision.content.decode("utf-8", "replace") for revision in resource.revisions
            }
        }
    return {}


def connector_words(connector: Connector) -> dict[str, Any]:
    """The state of a definition's connector; the definition has its other fields."""
    return {"state": state_word(connector), "worker": connector.worker_id} | (
        {"tasks": task_lines(connector.tasks)} if connector.tasks else {}
    )


def _asked_for(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec without zeros and false values, which mean the same as missing ones."""
    return {
        key: _asked_for(value) if key == "managed" else value for key, value in spec.items() if value not in (0, "")
    }


def task_lines(tasks: Sequence[Any]) -> list[Any]:
    """One line for all equal tasks, such as `tasks 0-7 RUNNING on worker h:8083`, with the reason why they wait, or the
    trace."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for task in sorted(tasks, key=lambda task: task.task):
        alike.setdefault((state_word(task), task.worker_id, task.trace or task_note(task)), []).append(task.task)
    lines: list[Any] = []
    for (state, worker, reason), numbers in alike.items():
        line = f"{'task' if len(numbers) == 1 else 'tasks'} {_ranges(numbers)} {state}"
        line += f" on worker {worker}" if worker else ""
        lines.append({line: reason.expandtabs(4)} if reason else line)
    return lines


def class_lines(classes: Sequence[Any]) -> dict[str, list[str]]:
    """The classes of a plugin by the jar or wheel that has them, each in a line with its type and version."""
    lines: dict[str, list[str]] = {}
    for plugin_class in classes:
        lines.setdefault(plugin_class.path, []).append(
            " ".join(filter(None, (plugin_class.type, plugin_class.class_name, plugin_class.version)))
        )
    return lines


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in few words: 0-3, 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _words(values: Mapping[str, Any], descriptor: Any) -> dict[str, Any]:
    fields = descriptor.fields_by_name
    words = {name: _word(value, fields[name]) for name, value in values.items()}
    return {name: value for name, value in words.items() if value not in ("", [], {})}


def _word(value: Any, field: Any) -> Any:
    inner = field.message_type
    if field.enum_type is not None and isinstance(value, str):
        return "" if value.endswith("_UNSPECIFIED") else value.removeprefix(prefix_of(field.enum_type.name))
    if field.cpp_type in _LONG and isinstance(value, str):
        return int(value)
    if inner is not None and inner.GetOptions().map_entry:
        return {key: _plainly(value[key]) for key in sorted(value)}
    if inner is not None and isinstance(value, dict):
        return whole_numbers(value) if inner.full_name == Struct.DESCRIPTOR.full_name else _words(value, inner)
    if inner is not None and isinstance(value, list):
        return [_words(item, inner) if isinstance(item, dict) else item for item in value]
    return _plainly(value)


def _plainly(value: Any) -> Any:
    """YAML shows no text with tabs, as traces have, in lines; plugins are named by their classes alone."""
    return plain_plugins(value).expandtabs(4) if isinstance(value, str) else value


def _order(resource: Any) -> Any:
    """By name; copy runs by task and part, the newest first."""
    if isinstance(resource, CopyRun):
        return (resource.connector, resource.task, resource.part, -resource.create_time.ToNanoseconds())
    return resource.name


async def _parts(gateway: Gateway, kind: Kind, resource: Any) -> dict[Kind, list[Any]]:
    if kind in (*kinds.APPLIED, kinds.DEDICATED_CONNECTORS):
        operations = await gateway.list(kinds.OPERATIONS, target=(kind.field, resource.name))
        return {kinds.OPERATIONS: list(operations)[:MAX_OPERATIONS]}
    if kind in (kinds.NODES, kinds.WORKERS):
        of, everything = resource.name, await gateway.list(kinds.WORKLOADS)
        return {kinds.WORKLOADS: [w for w in everything if of == w.node or f"worker/{of}" == w.name]}
    return await _parts_of_others(gateway, kind, resource)


async def _parts_of_others(gateway: Gateway, kind: Kind, resource: Any) -> dict[Kind, list[Any]]:
    if kind is kinds.WORKER_CLUSTERS:
        of = resource.name
        parts: dict[Kind, list[Any]] = {}
        for part in (kinds.WORKERS, kinds.CONNECTORS, kinds.COPY_RUNS):
            try:
                parts[part] = list(await gateway.list(part, cluster=of))
            except KeelmanError as error:  # a resource with a problem is described too, as far as it is known
                print(f"no {part.plural}: {error.message}", file=sys.stderr)
        return parts
    if kind is kinds.CONNECTORS:
        runs = await gateway.list(kinds.COPY_RUNS, cluster=resource.worker_cluster, ended=True)
        return {kinds.COPY_RUNS: [r for r in runs if r.connector == resource.name]}
    if kind is kinds.BROKER_CLUSTERS:
        prefix = f"broker/{resource.name}/"
        workloads = [w for w in await gateway.list(kinds.WORKLOADS) if w.name.startswith(prefix)]
        users = [c for c in await gateway.list(kinds.WORKER_CLUSTERS) if c.spec.broker_cluster == resource.name]
        topics = [topic_line(topic) for topic in await gateway.list(kinds.TOPICS, brokers=resource.name)]
        return {kinds.WORKLOADS: workloads, kinds.WORKER_CLUSTERS: users, kinds.TOPICS: topics}
    if kind is kinds.SPARK_CLUSTERS:
        prefix = f"spark/@{resource.name}/"
        drivers = [w for w in await gateway.list(kinds.WORKLOADS) if w.name.startswith(prefix)]
        named = [c for c in await gateway.list(kinds.WORKER_CLUSTERS) if c.name in resource.users]
        return {kinds.WORKLOADS: drivers, kinds.WORKER_CLUSTERS: named}
    if kind is kinds.PLUGINS:
        clusters = [c for c in await gateway.list(kinds.WORKER_CLUSTERS) if c.name in resource.worker_clusters]
        return {kinds.WORKER_CLUSTERS: clusters}
    return {}
