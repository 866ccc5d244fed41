"""What the config topic says: connectors, task configurations, target states. Pure: records in, state out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from keelman.connect.java.text import json_text
from keelman.kafka.layout import Work
from keelman.kafka.writer import Record
from keelman.worker.group.placement import CONNECTOR_KEY

LOGGER = "logger-cluster-"
MOST_DIGITS = 5  # of a task's number
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"
InForce = tuple[Mapping[str, str], tuple[Mapping[str, str], ...]]
"""A connector's configuration and its tasks', as they were in force together."""


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A restart-connector record."""

    connector: str
    include_tasks: bool
    only_failed: bool


@dataclass(slots=True)
class ConfigState:
    """Built by applying the topic's records in order. `offset` is the last record's offset + 1.

    `unfenced` names connectors whose tasks were put into force since the producers of their former tasks were last
    fenced, each with the offset of the record that did so. A single task that follows a single task is not among them:
    it fences its predecessor by itself. `former` has the sets that those took the place of; None for one that is not
    known, since the topic was compacted. `applied` holds each connector's configuration as it was when its tasks were
    put into force: that is what they run with until the leader has put new ones into force. `session_key`, base64,
    signs what workers ask of each other. `placements` has what connectors say of where they may be. `stored` has, for
    each name, bits for the records of its tasks that the topic holds: bit 0 for the commit, bit n + 1 for task n.
    `shape` is another number once there are other connectors, or other numbers of tasks.
    """

    offset: int = 0
    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, tuple[dict[str, str], ...]] = field(default_factory=dict)
    applied: dict[str, dict[str, str]] = field(default_factory=dict)
    fencing: dict[str, int] = field(default_factory=dict)
    unfenced: dict[str, int] = field(default_factory=dict)
    former: dict[str, list[InForce | None]] = field(default_factory=dict)
    inconsistent: set[str] = field(default_factory=set)
    restarts: list[RestartRequest] = field(default_factory=list)
    session_key: str = ""
    session_key_ms: int = 0
    shape: int = 0
    placements: dict[str, str] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    _buffered: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    _work: tuple[int, frozenset[Work]] = (0, frozenset())

    def target(self, connector: str) -> str:
        """STARTED, PAUSED or STOPPED; STARTED when nothing was written."""
        return self.targets.get(connector, STARTED)

    def work(self) -> frozenset[Work]:
        """Every connector instance and task that is configured."""
        shape, found = self._work
        if shape != self.shape:
            all_ = {Work(name) for name in self.connectors}
            all_ |= {Work(name, n) for name in self.connectors for n in range(len(self.tasks.get(name, ())))}
            found = frozenset(all_)
            self._work = self.shape, found
        return found

    def task(self, work: Work) -> dict[str, str] | None:
        """The task's configuration, None when it has none now."""
        configs = self.tasks.get(work.connector, ())
        if work.connector not in self.connectors or not 0 <= work.task < len(configs):
            return None
        return configs[work.task]

    def apply(self, key: str, value: bytes | None, offset: int) -> None:
        """Applies one record; unknown keys and values that are not what they should be are passed over."""
        self.offset = offset + 1
        data = _object(value)
        if data is None and value is not None:
            return
        for prefix, handle in (
            ("connector-", self._connector),
            ("target-state-", self._target),
            ("tasks-fencing-", self._fencing),
            ("task-", self._task),
            ("commit-", self._commit),
            ("restart-connector-", self._restart),
        ):
            if key.startswith(prefix):
                handle(key.removeprefix(prefix), data)
                return
        if key == "session-key" and data is not None:
            made = data.get("creation-timestamp")
            self.session_key, self.session_key_ms = str(data.get("key", "")), made if isinstance(made, int) else 0

    def _connector(self, name: str, data: Mapping[str, object] | None) -> None:
        if data is None:
            self.shape += name in self.connectors
            self.connectors.pop(name, None)
            self.placements.pop(name, None)
            self.tasks.pop(name, None)
            self.applied.pop(name, None)
            self._buffered.pop(name, None)
            self.inconsistent.discard(name)
            self._fenced(name)
            return
        if not isinstance(properties := data.get("properties"), dict):
            return
        self.shape += name not in self.connectors
        config = self.connectors[name] = _strings(properties)
        self.placements.pop(name, None)
        if config.get(CONNECTOR_KEY):
            self.placements[name] = config[CONNECTOR_KEY]
        self.targets.setdefault(name, STARTED)

    def _target(self, name: str, data: Mapping[str, object] | None) -> None:
        if data is None:
            self.targets.pop(name, None)
            return
        state = data.get("state.v2") or data.get("state")
        if state in (STARTED, PAUSED, STOPPED):
            self.targets[name] = str(state)

    def _task(self, rest: str, data: Mapping[str, object] | None) -> None:
        name, _, number = rest.rpartition("-")
        if not (number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
            return
        self._note(name, int(number) + 1, there=data is not None)
        if data is None:
            self._buffered.get(name, {}).pop(int(number), None)
        elif isinstance(properties := data.get("properties"), dict):
            self._buffered.setdefault(name, {})[int(number)] = _strings(properties)

    def _note(self, name: str, bit: int, *, there: bool) -> None:
        bits = self.stored.get(name, 0)
        bits = bits | 1 << bit if there else bits & ~(1 << bit)
        if bits:
            self.stored[name] = bits
        else:
            self.stored.pop(name, None)

    def leftovers(self) -> list[tuple[bytes, None]]:
        """Tombstones for what deleted connectors have left in the topic: it would come back with their names."""
        gone = self.stored.keys() - self.connectors.keys()
        return [
            (f"task-{name}-{bit - 1}".encode() if bit else f"commit-{name}".encode(), None)
            for name in sorted(gone)
            for bit in range(self.stored[name].bit_length() - 1, -1, -1)
            if self.stored[name] >> bit & 1
        ]

    def _commit(self, name: str, data: Mapping[str, object] | None) -> None:
        count = data.get("tasks") if data is not None else None
        self._note(name, 0, there=data is not None)
        if data is None or not isinstance(count, int):
            if data is None:
                self._without_tasks(name)
            return
        if name not in self.connectors:
            return
        buffered = self._buffered.pop(name, {})
        known = dict(enumerate(self.tasks.get(name, ())))
        before = (self.applied[name], self.tasks[name]) if name in self.tasks and name in self.applied else None
        merged = {**known, **buffered}
        if any(n not in merged for n in range(count)):
            self.inconsistent.add(name)
            self._without_tasks(name)
            return
        self.inconsistent.discard(name)
        self.shape += count != len(self.tasks.get(name, ()))
        self.tasks[name] = tuple(merged[n] for n in range(count))
        self.applied[name] = self.connectors[name]
        if (self.fencing.get(name), count) == (1, 1):
            self._fenced(name)
        else:
            self.unfenced[name] = self.offset - 1
            self.former.setdefault(name, []).append(before)

    def _without_tasks(self, name: str) -> None:
        self.shape += bool(self.tasks.pop(name, ()))

    def _fenced(self, name: str) -> None:
        self.unfenced.pop(name, None)
        self.former.pop(name, None)

    def _fencing(self, name: str, data: Mapping[str, object] | None) -> None:
        count = data.get("task-count") if data is not None else None
        if isinstance(count, int):
            self.fencing[name] = count
            self._fenced(name)
        else:
            self.fencing.pop(name, None)

    def _restart(self, name: str, data: Mapping[str, object] | None) -> None:
        if data is not None:
            self.restarts.append(RestartRequest(name, bool(data.get("include-tasks")), bool(data.get("only-failed"))))


def connector_of(key: str) -> str | None:
    """The connector that a record of this key is about; None for one that is about none."""
    for prefix in ("connector-", "target-state-", "tasks-fencing-", "commit-", "restart-connector-"):
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key.removeprefix("task-").rpartition("-")[0] if key.startswith("task-") else None


def connector_record(name: str, config: Mapping[str, str]) -> tuple[bytes, bytes]:
    """Key and value that store a connector."""
    return f"connector-{name}".encode(), _dump({"properties": dict(config)})


def target_record(name: str, target: str) -> tuple[bytes, bytes]:
    """Key and value that store a target state; older readers know no STOPPED, and see PAUSED."""
    old = PAUSED if target == STOPPED else target
    return f"target-state-{name}".encode(), _dump({"state": old, "state.v2": target})


def task_records(name: str, configs: Iterable[Mapping[str, str]]) -> list[tuple[bytes, bytes | None]]:
    """Keys and values that store task configurations; nothing applies until the commit record."""
    return [(f"task-{name}-{n}".encode(), _dump({"properties": dict(c)})) for n, c in enumerate(configs)]


def commit_record(name: str, count: int) -> tuple[bytes, bytes]:
    """Key and value that put the stored task configurations into force."""
    return f"commit-{name}".encode(), _dump({"tasks": count})


def tasks_apart(written: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Task configurations, and the rest: what puts them into force may not be in the topic without one of them."""
    parts: tuple[list[Record], list[Record]] = ([], [])
    for key, value in written:
        parts[value is None or not key.startswith(b"task-")].append((key, value))
    return parts


def deletion_records(name: str, tasks: int) -> list[tuple[bytes, bytes | None]]:
    """Tombstones for all that a connector has in the topic."""
    keys = [f"connector-{name}", f"target-state-{name}", *(f"task-{name}-{n}" for n in range(tasks)), f"commit-{name}"]
    return [(key.encode(), None) for key in keys]


def fencing_record(name: str, tasks: int) -> tuple[bytes, bytes]:
    """Key and value that say for how many tasks the producers were fenced."""
    return f"tasks-fencing-{name}".encode(), _dump({"task-count": tasks})


def session_key_record(key: str, made_ms: int) -> tuple[bytes, bytes]:
    """Key and value that give the workers a new key, base64, to sign with."""
    return b"session-key", _dump({"key": key, "algorithm": "HmacSHA256", "creation-timestamp": made_ms})


def restart_record(request: RestartRequest) -> tuple[bytes, bytes]:
    """Key and value that ask for a restart."""
    return f"restart-connector-{request.connector}".encode(), _dump(
        {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    )


def logger_record(logger: str, level: str) -> tuple[bytes, bytes]:
    """Key and value that have every worker log this logger at a level."""
    return f"{LOGGER}{logger}".encode(), _dump({"level": level})


def logger_level(key: str, value: bytes | None) -> tuple[str, str] | None:
    """Logger and level of such a record; None for any other."""
    data = _object(value) if key.startswith(LOGGER) else None
    level = None if data is None else data.get("level")
    return (key.removeprefix(LOGGER), level) if isinstance(level, str) else None


def _dump(value: object) -> bytes:
    return json_text(value).encode()


def _object(value: bytes | None) -> Mapping[str, object] | None:
    if value is None:
        return None
    try:
        data = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return data if isinstance(data, dict) else None


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(k): v if isinstance(v, str) else "" if v is None else str(v) for k, v in value.items()}
