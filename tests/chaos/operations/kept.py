"""The stored state of one connector in a worker cluster, and how each operation changes or reads it. Pure.

An operation takes effect at one moment between its begin and its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from chaos.operations.answers import KINDS, sure
from chaos.operations.history import Operation

Config = frozenset[tuple[str, str]]
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
TARGETS = {"pause": PAUSED, "resume": STARTED, "stop": STOPPED}
TRUE_NOW = ("list", "expand", "info", "config", "tasks", "offsets", "restart", "restart task", "status")
"""The answers to these are true when they are given; the topics that a worker has used are reported somewhat later."""
WITHOUT_STATUS = ("restart", "restart task", "status")
"""These are answered with 404, too, for a connector that has no status yet, or not that task."""
END = "end"
"""The final state in the config topic, as an operation: `config`, `target`, `topics`."""


class Kept(NamedTuple):
    """The stored state of one connector; the connector does not exist without `config`."""

    config: Config | None = None
    target: str = ""
    offset: str | None = None
    """The expected report of its offsets; None if unknown, since it runs or ran."""
    topics: frozenset[str] = frozenset()
    """All topics that it may have used since it was created."""

    def __str__(self) -> str:
        if self.config is None:
            return "none"
        present = "" if self.offset is None else f" at {self.offset}"
        return f"{self.target}{present} {dict(sorted(self.config))}"


NONE = Kept()


def tells(operation: Operation, name: str) -> bool:
    """Whether the operation concerns the connector of that name."""
    kind, status, message = operation.kind, operation.status, operation.message
    if operation.connector not in ("", name) or kind == END:
        return kind == END and operation.connector == name
    if not sure(operation):
        return KINDS[kind].writes
    if status == 400:
        return STOPPED in message
    if status == 404 and kind in WITHOUT_STATUS:
        return "Unknown connector" in message
    return KINDS[kind].writes or kind in TRUE_NOW


def after(operation: Operation, stored: Kept, name: str) -> Kept | None:
    """The stored state after the operation.

    None if the operation is impossible in the state before it, or cannot get this answer then. An operation without a
    sure answer may be left out: the caller that orders the operations decides.
    """
    there = stored.config is not None
    if operation.kind == END or not KINDS[operation.kind].writes:
        return stored if _true(operation, stored, name) else None
    if not sure(operation):
        return _done(operation, stored)
    refused = {404: not there, 409: there, 400: there and stored.target != STOPPED}
    if operation.status in refused:
        return stored if refused[operation.status] else None
    done = _done(operation, stored)
    if operation.kind == "put" and (operation.status == 201) == there:
        return None
    if operation.kind == "patch" and done and _config(operation.answer["config"]) != done.config:
        return None
    return done


def _done(operation: Operation, stored: Kept) -> Kept | None:
    kind, body = operation.kind, operation.body
    if stored.config is None:
        return _made(operation)
    if kind == "put":
        return _configured(stored, {**body, "name": operation.connector})
    if kind == "patch":
        changed = {**dict(stored.config), **body}
        return _configured(stored, {key: value for key, value in changed.items() if value is not None})
    if kind in TARGETS:
        still = stored.target == STOPPED == TARGETS[kind]
        return stored._replace(target=TARGETS[kind], offset=stored.offset if still else None)
    if kind in ("alter offsets", "reset offsets") and stored.target == STOPPED:
        return stored._replace(offset=_altered(operation) if sure(operation) else None)
    return NONE if kind == "delete" else None


def _made(operation: Operation) -> Kept | None:
    """The state after an operation on a missing connector."""
    body = operation.body
    if operation.kind == "create":
        target = body.get("initial_state", STARTED).replace("RUNNING", STARTED)
        return _created({**body["config"], "name": body["name"]}, target)
    return _created({**body, "name": operation.connector}, STARTED) if operation.kind == "put" else None


def _true(operation: Operation, stored: Kept, name: str) -> bool:
    """Whether the answer of a read is true."""
    kind, answer, there = operation.kind, operation.answer, stored.config is not None
    if kind == "list":
        return (name in answer) == there
    if kind == "expand":
        told = answer.get(name, {}).get("info")  # absent also for a connector that has no status yet
        return told is None or _config(told["config"]) == stored.config
    if kind == END:
        same = _config(answer["config"]) == stored.config
        return same and (not there or (answer["target"] == stored.target and stored.topics >= {*answer["topics"]}))
    if operation.status == 404 or not there:
        return operation.status == 404 and not there
    if kind in ("config", "info"):
        return _config(answer if kind == "config" else answer["config"]) == stored.config
    return kind != "offsets" or stored.offset in (None, _offset(answer["offsets"]))


def _created(config: Mapping[str, str], target: str) -> Kept:
    return Kept(_config(config), target, None, _topics(config))


def _configured(stored: Kept, config: Mapping[str, str]) -> Kept:
    return stored._replace(config=_config(config), topics=stored.topics | _topics(config))


def _config(config: Mapping[str, str] | None) -> Config | None:
    return None if config is None else frozenset(config.items())


def _topics(config: Mapping[str, str]) -> frozenset[str]:
    return frozenset(config.get("topics", config.get("topic", "")).split(",")) - {""}


def _offset(offsets: list[Any]) -> str:
    return str(offsets[0]["offset"]) if offsets else "no offsets"


def _altered(operation: Operation) -> str | None:
    """The new offset; None for a sink, whose alteration of one partition leaves the first one unknown."""
    if operation.kind == "reset offsets":
        return _offset([])
    rows = operation.body["offsets"]
    return None if "kafka_topic" in rows[0]["partition"] else _offset(rows)
