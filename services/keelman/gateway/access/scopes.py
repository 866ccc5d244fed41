"""Finds the worker clusters that a call concerns, and cuts answers down to those that a caller's role covers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from keelman.gateway.caller import GatewayCaller
from keelman.model.errors import PermissionDenied


class Lookup(Protocol):
    """Looks names up in the state service. Both methods return "" for an unknown name."""

    async def cluster_of_definition(self, name: str) -> str:
        """Returns the worker cluster of a connector definition."""

    async def cluster_of_operation(self, name: str) -> str:
        """Returns the worker cluster of an operation's target; "" also for a topic or plugin."""


Find = Callable[[Any, Lookup], Awaitable[tuple[str, ...]]]
Cut = Callable[[Any, GatewayCaller], None]
_ANY, _OWN, _INSTALLATION, _EACH = "any", "those of its clusters", "installation", "each of its writes"


@dataclass(frozen=True, slots=True)
class CallScope:
    """The scope of a call: the worker clusters that it concerns, or the installation. `text` describes it in the
    matrix. `find` returns the names of worker clusters in a request, "" for the installation; none if the request
    leaves the scope open. `cut` removes hidden items from an answer; a call without `cut` that leaves the
    scope open concerns the installation."""

    text: str
    find: Find | None = None
    cut: Cut | None = None

    @property
    def is_any(self) -> bool:
        """Tells whether a role for any worker cluster is enough, and no answer is cut."""
        return self.text in (_ANY, _EACH)

    @property
    def is_list(self) -> bool:
        """Tells whether the answer is cut to the caller's worker clusters."""
        return self.text == _OWN

    @property
    def is_cluster(self) -> bool:
        """Tells whether the scope is one worker cluster."""
        return not self.is_any and not self.is_list and self.text != _INSTALLATION


def _at(path: str, cluster: Callable[[str], str] = str) -> Find:
    """Finds the worker cluster that a field of a request names; a path with dots names a field of a nested message."""

    async def find(request: Any, lookup: Lookup) -> tuple[str, ...]:
        value = request
        for part in path.split("."):
            value = getattr(value, part)
        return (cluster(value),)

    return find


async def _new_worker_cluster(request: Any, lookup: Lookup) -> tuple[str, ...]:
    """Finds a new worker cluster; the installation for one that would share the user of other clusters."""
    return ("",) if request.spec.tenant else (request.name,)


def _of_worker(name: str) -> str:
    """Returns the worker cluster of a worker such as demo/0; "" for another name."""
    cluster, _, number = name.partition("/")
    return cluster if number.isdigit() else ""


def _of_workload(name: str) -> str:
    """Returns the worker cluster of a workload such as worker/demo/0; "" for a broker or a Spark service."""
    kind, _, rest = name.partition("/")
    return _of_worker(rest) if kind == "worker" else ""


def _open_or(find: Find) -> Find:
    """Returns `find` with empty names removed: a request that names no cluster leaves its scope open."""

    async def found(request: Any, lookup: Lookup) -> tuple[str, ...]:
        return tuple(filter(None, await find(request, lookup)))

    return found


async def _definition(request: Any, lookup: Lookup) -> tuple[str, ...]:
    names = {await lookup.cluster_of_definition(request.name)}
    if "spec" in request.DESCRIPTOR.fields_by_name and request.spec.worker_cluster:
        names.add(request.spec.worker_cluster)
    return tuple(sorted(names))


async def _operation(request: Any, lookup: Lookup) -> tuple[str, ...]:
    return (await lookup.cluster_of_operation(request.name),)


async def _operations(request: Any, lookup: Lookup) -> tuple[str, ...]:
    target = request.target
    if target.noun == "connector_definition":
        return (await lookup.cluster_of_definition(target.name),)
    return (target.name if target.noun == "dedicated_connector" else "",)


async def _none(request: Any, lookup: Lookup) -> tuple[str, ...]:
    return ()


def _only(field: str, cluster: Callable[[Any], str]) -> Cut:
    """Removes from a repeated field of an answer the items whose worker clusters a caller may not see."""

    def cut(answer: Any, caller: GatewayCaller) -> None:
        items = getattr(answer, field)
        seen = [item for item in items if caller.sees(cluster(item))]
        if len(seen) < len(items):
            cut_answer = type(answer)()
            getattr(cut_answer, field).extend(seen)
            answer.ClearField(field)
            getattr(answer, field).extend(getattr(cut_answer, field))

    return cut


def _cut_connectors(answer: Any, caller: GatewayCaller) -> None:
    _only("connectors", lambda connector: str(connector.worker_cluster))(answer, caller)
    for name in [name for name in answer.unreachable if not caller.sees(name)]:
        del answer.unreachable[name]


def _cut_connector_changes(answer: Any, caller: GatewayCaller) -> None:
    changes = answer.changes
    for field in ("connectors", "gone"):
        _only(field, lambda connector: str(connector.worker_cluster))(changes, caller)
    seen = [name for name in changes.worker_clusters if caller.sees(name)]
    del changes.worker_clusters[:]
    changes.worker_clusters.extend(seen)
    for name in [name for name in changes.unreachable.reasons if not caller.sees(name)]:
        del changes.unreachable.reasons[name]


def _cut_copy_run(answer: Any, caller: GatewayCaller) -> None:
    if not caller.sees(answer.copy_run.worker_cluster):
        raise refused_scope(caller, (answer.copy_run.worker_cluster,))


def _of_event(event: Any) -> str:
    """Returns the worker cluster of an event's resource; "" for none."""
    match event.WhichOneof("resource"):
        case "worker_cluster" | "dedicated_connector":
            return str(event.name)
        case "connector_definition":
            return str(event.connector_definition.spec.worker_cluster)
        case "workload":
            return _of_workload(event.name)
    return ""


def refused_scope(caller: GatewayCaller, clusters: tuple[str, ...]) -> PermissionDenied:
    """Returns the error for a caller whose role does not cover a call's scope. It does not reveal
    whether that exists."""
    role = f"{caller.role} of {', '.join(sorted(caller.clusters or ()))}"
    what = (
        ", ".join(f"worker cluster {cluster!r}" for cluster in clusters if cluster)
        or "what belongs to no worker cluster"
    )
    return PermissionDenied(
        f"{caller.name} is {role} alone, and not of {what}", reason="OTHER_CLUSTER", metadata={"caller": caller.name}
    )


ANYWHERE = CallScope(_ANY, _none, lambda answer, caller: None)
"""A role for one worker cluster is enough."""
EACH = CallScope(_EACH, _none)
"""The scope of a request that contains other requests, each of which is judged by itself."""
INSTALLATION = CallScope(_INSTALLATION)
CLUSTER = CallScope("cluster", _at("worker_cluster"))
NAMED = CallScope("cluster", _at("name"))
NEW_WORKER_CLUSTER = CallScope("cluster; the installation where it names a tenant", _new_worker_cluster)
NEW_DEFINITION = CallScope("cluster", _at("spec.worker_cluster"))
DEFINITION = CallScope("cluster of the definition", _definition)
OPERATION = CallScope("cluster of what it is about", _operation)
OPERATIONS = CallScope("cluster of the target", _operations)
WORKER = CallScope("cluster of the worker", _at("name", _of_worker))
WORKLOAD = CallScope("cluster of the workload", _at("workload", _of_workload))
COPY_RUN = CallScope("cluster of the copy run", _none, _cut_copy_run)
WORKER_CLUSTERS = CallScope(_OWN, _none, _only("worker_clusters", lambda cluster: str(cluster.name)))
DEDICATED = CallScope(_OWN, _none, _only("dedicated_connectors", lambda connector: str(connector.name)))
EVENTS = CallScope(_OWN, _none, _only("events", _of_event))
CONNECTOR_CHANGES = CallScope(_OWN, _open_or(_at("worker_cluster")), _cut_connector_changes)
CONNECTORS = CallScope(_OWN, _open_or(_at("worker_cluster")), _cut_connectors)


def listed(field: str) -> CallScope:
    """Returns the scope of a list that a request may narrow to one worker cluster, and whose items
    name their cluster."""
    cut = _only(field, lambda item: str(item.worker_cluster))
    return CallScope(_OWN, _open_or(_at("worker_cluster")), cut)


DEFINITIONS = CallScope(
    _OWN,
    _open_or(_at("worker_cluster")),
    _only("connector_definitions", lambda definition: str(definition.spec.worker_cluster)),
)
WORKLOADS = CallScope(
    _OWN,
    _open_or(_at("worker_cluster")),
    _only("workloads", lambda workload: _of_workload(workload.name)),
)
