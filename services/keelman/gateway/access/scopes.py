"""Finds the worker clusters that a call is about, and cuts answers to what a caller with a role for some sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from keelman.gateway.access.caller import Caller
from keelman.model.errors import PermissionDenied


class Lookup(Protocol):
    """Asks the state service what a name stands for. Both return "" for what there is not."""

    async def cluster_of_definition(self, name: str) -> str:
        """The worker cluster of a connector definition."""

    async def cluster_of_operation(self, name: str) -> str:
        """The worker cluster of what an operation is about; "" for that of a topic or plugin, too."""


Find = Callable[[Any, Lookup], Awaitable[tuple[str, ...]]]
Cut = Callable[[Any, Caller], None]
_ANY, _OWN, _INSTALLATION, _EACH = "any", "those of its clusters", "installation", "each of its writes"


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a call: the worker clusters that it is about, or the installation. `text` says it in the matrix.
    `find`: the names of worker clusters in a request, "" for the installation; none of them where the request leaves
    that open. `cut` takes out of an answer what a caller does not see; without one a call that leaves it open is about
    the installation."""

    text: str
    find: Find | None = None
    cut: Cut | None = None

    @property
    def is_any(self) -> bool:
        """Whether a role for any worker cluster is enough, and no answer is cut."""
        return self.text in (_ANY, _EACH)

    @property
    def is_list(self) -> bool:
        """Whether the answer has what the caller sees."""
        return self.text == _OWN

    @property
    def is_cluster(self) -> bool:
        """Whether one worker cluster is meant."""
        return not self.is_any and not self.is_list and self.text != _INSTALLATION


def _at(path: str, cluster: Callable[[str], str] = str) -> Find:
    """The worker cluster that a field of a request names; of a path with dots that of a message in it."""

    async def find(request: Any, lookup: Lookup) -> tuple[str, ...]:
        value = request
        for part in path.split("."):
            value = getattr(value, part)
        return (cluster(value),)

    return find


def _of_worker(name: str) -> str:
    """The worker cluster of a worker, as demo/0; "" for another name."""
    cluster, _, number = name.partition("/")
    return cluster if number.isdigit() else ""


def _of_workload(name: str) -> str:
    """The worker cluster of a workload, as worker/demo/0; "" for that of a broker or a Spark service."""
    kind, _, rest = name.partition("/")
    return _of_worker(rest) if kind == "worker" else ""


def _open_or(find: Find) -> Find:
    """As `find`, where a request that names nothing leaves open what it is about."""

    async def found(request: Any, lookup: Lookup) -> tuple[str, ...]:
        return tuple(filter(None, await find(request, lookup)))

    return found


async def _definition(request: Any, lookup: Lookup) -> tuple[str, ...]:
    found = {await lookup.cluster_of_definition(request.name)}
    if "spec" in request.DESCRIPTOR.fields_by_name and request.spec.worker_cluster:
        found.add(request.spec.worker_cluster)
    return tuple(sorted(found))


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
    """Takes the items of a repeated field out of an answer whose worker clusters a caller does not see."""

    def cut(answer: Any, caller: Caller) -> None:
        items = getattr(answer, field)
        seen = [one for one in items if caller.sees(cluster(one))]
        if len(seen) < len(items):
            kept = type(answer)()
            getattr(kept, field).extend(seen)
            answer.ClearField(field)
            getattr(answer, field).extend(getattr(kept, field))

    return cut


def _cut_connectors(answer: Any, caller: Caller) -> None:
    _only("connectors", lambda one: str(one.worker_cluster))(answer, caller)
    for name in [name for name in answer.unreachable if not caller.sees(name)]:
        del answer.unreachable[name]


def _cut_connector_changes(answer: Any, caller: Caller) -> None:
    changes = answer.changes
    for field in ("connectors", "gone"):
        _only(field, lambda one: str(one.worker_cluster))(changes, caller)
    seen = [name for name in changes.worker_clusters if caller.sees(name)]
    del changes.worker_clusters[:]
    changes.worker_clusters.extend(seen)
    for name in [name for name in changes.unreachable.reasons if not caller.sees(name)]:
        del changes.unreachable.reasons[name]


def _cut_copy_run(answer: Any, caller: Caller) -> None:
    if not caller.sees(answer.copy_run.worker_cluster):
        raise refused_scope(caller, (answer.copy_run.worker_cluster,))


def _of_event(event: Any) -> str:
    """The worker cluster of the resource that an event is about."""
    match event.WhichOneof("resource"):
        case "worker_cluster" | "dedicated_connector":
            return str(event.name)
        case "connector_definition":
            return str(event.connector_definition.spec.worker_cluster)
        case "workload":
            return _of_workload(event.name)
    return ""


def refused_scope(caller: Caller, clusters: tuple[str, ...]) -> PermissionDenied:
    """The error for a caller whose role is not for what a call is about. It does not say whether that exists."""
    role = f"{caller.role} of {', '.join(sorted(caller.clusters or ()))}"
    what = ", ".join(f"worker cluster {one!r}" for one in clusters if one) or "what belongs to no worker cluster"
    return PermissionDenied(
        f"{caller.name} is {role} alone, and not of {what}", reason="OTHER_CLUSTER", metadata={"caller": caller.name}
    )


ANYWHERE = Scope(_ANY, _none, lambda answer, caller: None)
"""A role for one worker cluster is enough."""
EACH = Scope(_EACH, _none)
"""A request that is made of others, each of which is judged by itself."""
INSTALLATION = Scope(_INSTALLATION)
CLUSTER = Scope("cluster", _at("worker_cluster"))
NAMED = Scope("cluster", _at("name"))
NEW_DEFINITION = Scope("cluster", _at("spec.worker_cluster"))
DEFINITION = Scope("cluster of the definition", _definition)
OPERATION = Scope("cluster of what it is about", _operation)
OPERATIONS = Scope("cluster of the target", _operations)
WORKER = Scope("cluster of the worker", _at("name", _of_worker))
WORKLOAD = Scope("cluster of the workload", _at("workload", _of_workload))
COPY_RUN = Scope("cluster of the copy run", _none, _cut_copy_run)
WORKER_CLUSTERS = Scope(_OWN, _none, _only("worker_clusters", lambda one: str(one.name)))
DEDICATED = Scope(_OWN, _none, _only("dedicated_connectors", lambda one: str(one.name)))
EVENTS = Scope(_OWN, _none, _only("events", _of_event))
CONNECTOR_CHANGES = Scope(_OWN, _open_or(_at("worker_cluster")), _cut_connector_changes)
CONNECTORS = Scope(_OWN, _open_or(_at("worker_cluster")), _cut_connectors)


def listed(field: str) -> Scope:
    """A list that a request may narrow to one worker cluster, whose items name theirs."""
    cut = _only(field, lambda one: str(one.worker_cluster))
    return Scope(_OWN, _open_or(_at("worker_cluster")), cut)


DEFINITIONS = Scope(
    _OWN,
    _open_or(_at("worker_cluster")),
    _only("connector_definitions", lambda one: str(one.spec.worker_cluster)),
)
WORKLOADS = Scope(
    _OWN,
    _open_or(_at("worker_cluster")),
    _only("workloads", lambda one: _of_workload(one.name)),
)
