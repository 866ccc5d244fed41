"""Makes records of the config topic, and finds which connector each is about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from keelman.connect.java.text import json_text
from keelman.kafka.writer import Record
from keelman.model.work import Work

LOGGER = "logger-cluster-"
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
NO_KEY = "no record of Kafka Connect's has such a key"
MAX_TASKS = 100_000  # of a connector


@dataclass(frozen=True, slots=True)
class ConnectorIdentity:
    """The identity of a connector of its name: stored with its configuration, in fields that Kafka Connect ignores."""

    uid: str = ""
    """The id of this connector alone, until it is deleted; empty where Kafka Connect wrote its configuration last."""
    request_id: str = ""
    """The id of the request that created it; empty for a request without an id."""


NOT_KNOWN = ConnectorIdentity()
UID, REQUEST_ID = "keelman.uid", "keelman.request.id"
WRITTEN_BY, DELETED_BY = "keelman.written.by", "keelman.deleted.by"
"""The client's id of the request which wrote a record; and, in the last one before its tombstone, of the request which
deletes the connector."""


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A restart-connector record."""

    connector: str
    include_tasks: bool
    only_failed: bool


def connector_of(key: str) -> str | None:
    """Returns the connector that a record of this key is about; None for other keys."""
    for prefix in ("connector-", "target-state-", "tasks-fencing-", "commit-", "restart-connector-"):
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key.removeprefix("task-").rpartition("-")[0] if key.startswith("task-") else None


def work_in(text: str) -> Work | None:
    """Returns the task that `<connector>-<number>` names; None for any other text."""
    name, _, number = text.rpartition("-")
    digits = number.isascii() and number.isdigit() and len(number) < len(str(MAX_TASKS))
    return Work(name, int(number)) if name and digits and str(int(number)) == number else None


def connector_record(
    name: str,
    config: Mapping[str, str],
    identity: ConnectorIdentity = NOT_KNOWN,
    *,
    written_by: str = "",
    deleted_by: str = "",
) -> tuple[bytes, bytes]:
    """Returns key and value that store a connector. Kafka Connect reads "properties" alone."""
    facts = {UID: identity.uid, REQUEST_ID: identity.request_id, WRITTEN_BY: written_by, DELETED_BY: deleted_by}
    return f"connector-{name}".encode(), _dump({"properties": dict(config), **_given(facts)})


def identity_in(data: Mapping[str, object]) -> ConnectorIdentity:
    """Returns the identity in a stored connector's value."""
    return ConnectorIdentity(text_in(data, UID), text_in(data, REQUEST_ID))


def text_in(data: Mapping[str, object], key: str) -> str:
    """Returns the text under a key of ours; empty where there is none."""
    return text if isinstance(text := data.get(key), str) else ""


def _given(facts: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in facts.items() if text}


def target_record(name: str, target: str, *, written_by: str = "") -> tuple[bytes, bytes]:
    """Returns key and value that store a target state; older readers know no STOPPED, and see PAUSED."""
    old = PAUSED if target == STOPPED else target
    return f"target-state-{name}".encode(), _dump(
        {"state": old, "state.v2": target, **_given({WRITTEN_BY: written_by})}
    )


def task_records(name: str, configs: Iterable[Mapping[str, str]]) -> list[tuple[bytes, bytes | None]]:
    """Returns keys and values that store task configurations; nothing applies until the commit record."""
    return [(f"task-{name}-{n}".encode(), _dump({"properties": dict(c)})) for n, c in enumerate(configs)]


def commit_record(name: str, count: int) -> tuple[bytes, bytes]:
    """Returns key and value that put the stored task configurations into force."""
    return f"commit-{name}".encode(), _dump({"tasks": count})


def tasks_apart(written: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Returns task configurations, and the rest: the commit may not be in the topic while a task's record is
    missing."""
    parts: tuple[list[Record], list[Record]] = ([], [])
    for key, value in written:
        parts[value is None or not key.startswith(b"task-")].append((key, value))
    return parts


def deletion_records(name: str, tasks: int) -> list[tuple[bytes, bytes | None]]:
    """Returns tombstones for all records of a connector in the topic."""
    keys = [f"connector-{name}", f"target-state-{name}", *(f"task-{name}-{n}" for n in range(tasks)), f"commit-{name}"]
    return [(key.encode(), None) for key in keys]


def fencing_record(name: str, tasks: int) -> tuple[bytes, bytes]:
    """Returns key and value that record for how many tasks the producers were fenced."""
    return f"tasks-fencing-{name}".encode(), _dump({"task-count": tasks})


def session_key_record(key: str, algorithm: str, made_ms: int) -> tuple[bytes, bytes]:
    """Returns key and value that give the workers a new key, base64, to sign with."""
    return b"session-key", _dump({"key": key, "algorithm": algorithm, "creation-timestamp": made_ms})


def restart_record(request: RestartRequest, *, written_by: str = "") -> tuple[bytes, bytes]:
    """Returns key and value that request a restart."""
    options = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return f"restart-connector-{request.connector}".encode(), _dump({**options, **_given({WRITTEN_BY: written_by})})


def logger_record(logger: str, level: str) -> tuple[bytes, bytes]:
    """Returns key and value that have every worker log this logger at a level."""
    return f"{LOGGER}{logger}".encode(), _dump({"level": level})


def logger_level(key: str, value: bytes | None) -> tuple[str, str] | None:
    """Returns logger and level of such a record; None for any other."""
    data = object_of(value) if key.startswith(LOGGER) else None
    level = None if data is None else data.get("level")
    return (key.removeprefix(LOGGER), level) if isinstance(level, str) else None


def _dump(value: object) -> bytes:
    return json_text(value).encode()


def object_of(value: bytes | None) -> Mapping[str, object] | None:
    """Returns a value's JSON object; None for any other value, and for a tombstone."""
    if value is None:
        return None
    try:
        data = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return data if isinstance(data, dict) else None
