"""The kinds of requests, and the permitted answers to each: the one table of both. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.operations.history import Operation


@dataclass(frozen=True)
class Kind:
    """`path` has the connector's name for {}; `writes`: it changes the state that the cluster stores of a connector."""

    method: str
    path: str
    statuses: frozenset[int]
    writes: bool = False


def _reads(path: str, *statuses: int) -> Kind:
    return Kind("GET", path, frozenset(statuses or (200, 404)))


def _writes(method: str, path: str, *statuses: int) -> Kind:
    return Kind(method, path, frozenset(statuses), writes=True)


def _does(method: str, path: str, *statuses: int) -> Kind:
    return Kind(method, path, frozenset(statuses))


ONE = "/connectors/{}"
KINDS = {
    "create": _writes("POST", "/connectors", 201, 409),
    "put": _writes("PUT", f"{ONE}/config", 200, 201),
    "patch": _writes("PATCH", f"{ONE}/config", 200, 404),
    "delete": _writes("DELETE", ONE, 204, 404),
    "pause": _writes("PUT", f"{ONE}/pause", 202, 404),
    "resume": _writes("PUT", f"{ONE}/resume", 202, 404),
    "stop": _writes("PUT", f"{ONE}/stop", 204, 404),
    "alter offsets": _writes("PATCH", f"{ONE}/offsets", 200, 400, 404),
    "reset offsets": _writes("DELETE", f"{ONE}/offsets", 200, 400, 404),
    "restart": _does("POST", f"{ONE}/restart", 202, 204, 404),
    "restart task": _does("POST", f"{ONE}/tasks/0/restart", 204, 404),
    "list": _reads("/connectors", 200),
    "expand": _reads("/connectors?expand=info&expand=status", 200),
    "info": _reads(ONE),
    "config": _reads(f"{ONE}/config"),
    "status": _reads(f"{ONE}/status"),
    "tasks": _reads(f"{ONE}/tasks"),
    "task status": _reads(f"{ONE}/tasks/0/status"),
    "offsets": _reads(f"{ONE}/offsets"),
    "topics": _reads(f"{ONE}/topics", 200),
    "reset topics": _does("PUT", f"{ONE}/topics/reset", 202),
    "validate": _does("PUT", "/connector-plugins/FileStreamSink/config/validate", 200),
    "illegal put": _does("PUT", f"{ONE}/config", 400),
    "logger": _does("PUT", "/admin/loggers/org.example", 200, 204),
}
OFFSETS_KEPT = {409: "was changed while", 500: "haven't stopped completely yet"}


def sure(operation: Operation) -> bool:
    """Whether the answer tells the outcome. Otherwise the operation may have happened, or may still happen."""
    if operation.kind == "create" and operation.status == 409:
        return "already exists" in operation.message
    return operation.kind not in KINDS or operation.status in KINDS[operation.kind].statuses


def excused(operation: Operation, *, disturbed: bool) -> bool:
    """Whether an answer that is not sure is excused.

    Its worker was disturbed meanwhile, or it is about offsets whose connector was changed meanwhile, or has tasks of a
    dead worker left in its group.
    """
    if operation.kind in ("alter offsets", "reset offsets") and operation.status in OFFSETS_KEPT:
        return OFFSETS_KEPT[operation.status] in operation.message
    if operation.status in (500, 503):
        return disturbed and any(word in operation.message for word in ("starting", "shutting down"))
    return disturbed and operation.status == 0
