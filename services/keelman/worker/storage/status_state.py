"""Folds the status topic into statuses, and decides which writes the generation rule allows. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

from keelman.connect.java.text import json_text
from keelman.model.work import CONNECTOR_TASK, Work
from keelman.worker.storage.config_records import NO_KEY, object_of, work_in
from keelman.workers.status_notes import STATUS_FIELD, WAITS_FOR

UNASSIGNED, RUNNING, PAUSED, FAILED, RESTARTING, STOPPED = (
    "UNASSIGNED",
    "RUNNING",
    "PAUSED",
    "FAILED",
    "RESTARTING",
    "STOPPED",
)
STATES = (UNASSIGNED, RUNNING, PAUSED, FAILED, RESTARTING, STOPPED)
SAFE = (UNASSIGNED, FAILED)
AT_WORK = (UNASSIGNED, RUNNING, RESTARTING)
CONNECTOR_KEY = "status-connector-"
NO_STATUS = "its value is no status: a JSON object with state, worker_id and generation"
NO_TOPIC = "it names no connector that uses the topic"


@dataclass(frozen=True, slots=True)
class Status:
    """One status record. `more` is beyond Connect's fields: a stalled task, the next attempt after a failure."""

    state: str
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def value(self) -> bytes:
        """Returns the record's value as Connect writes it; `more` goes into one more field, which Connect passes
        over."""
        return json_text(
            {
                "state": self.state,
                "trace": self.trace,
                "worker_id": self.worker_id,
                "generation": self.generation,
                "version": self.version,
                **({STATUS_FIELD: self.more} if self.more else {}),
            }
        ).encode()


@dataclass(slots=True)
class ConnectorStatuses:
    """The statuses of one connector and its tasks; `changes` counts the records that were applied."""

    connector: Status | None = None
    tasks: dict[int, Status] = field(default_factory=dict)
    changes: int = 0


@dataclass(slots=True)
class StatusState:
    """Built by applying the topic's records. `by_connector` has the same as `statuses`, found without a full search.

    `changes` counts the applied statuses. `lost` is shown in place of statuses that are no longer true, and that this
    worker cannot overwrite.
    """

    statuses: dict[Work, Status] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)
    by_connector: dict[str, ConnectorStatuses] = field(default_factory=dict)
    lost: dict[Work, Status] = field(default_factory=dict)
    changes: int = 0

    def apply(self, key: str, value: bytes | None) -> str:
        """Applies one record. Returns why it was passed over; empty for an applied one."""
        if key.startswith("status-topic-"):
            return self._topic(key.removeprefix("status-topic-"), value)
        work = work_of(key)
        if work is None:
            return NO_KEY
        status = None if value is None else status_in(value)
        if status is None and value is not None:
            return NO_STATUS
        self._put(work, status)
        return ""

    def _put(self, work: Work, status: Status | None) -> None:
        of = self.by_connector.setdefault(work.connector, ConnectorStatuses())
        of.changes += 1
        self.changes += 1
        if status is None:
            self.statuses.pop(work, None)
            if work.is_task:
                of.tasks.pop(work.task, None)
            else:
                of.connector = None
            if of.connector is None and not of.tasks:
                del self.by_connector[work.connector]
            return
        self.statuses[work] = status
        if work.is_task:
            of.tasks[work.task] = status
        else:
            of.connector = status

    def _topic(self, rest: str, value: bytes | None) -> str:
        topic, _, connector = rest.partition(":connector-")
        if not (topic and connector) or (value is not None and object_of(value) is None):
            return NO_TOPIC
        if value is None:
            used = self.topics.get(connector, set())
            used.discard(topic)
            if not used:
                self.topics.pop(connector, None)
        else:
            self.topics.setdefault(connector, set()).add(topic)
        return ""

    def allows(self, work: Work, status: Status) -> bool:
        """Returns False for a safe write (UNASSIGNED, FAILED) over another worker's status of a higher generation."""
        present = self.statuses.get(work)
        if present is None or status.state not in SAFE:
            return True
        return present.worker_id == status.worker_id or present.generation <= status.generation

    def lose(self, works: Iterable[Work], worker: str, reason: str) -> None:
        """Shows none of this work as running: the worker, which has it by the topic, has lost it."""
        for work in works:
            now = self.statuses.get(work)
            if now is None or now.worker_id != worker or work in self.lost:
                continue
            self.lost[work] = replace(now, state=UNASSIGNED, trace=reason, more={}) if now.state in AT_WORK else now
            self.by_connector[work.connector].changes += 1

    def shown(self, work: Work) -> Status | None:
        """Returns the status to show of a connector or task."""
        return self.lost.get(work) or self.statuses.get(work)

    def of(self, connector: str) -> tuple[Status | None, list[tuple[int, Status]]]:
        """Returns the connector's status and its tasks', by number, as they are shown."""
        by_connector = self.by_connector.get(connector)
        if by_connector is None:
            return None, []
        lost = self.lost
        tasks = ((number, lost.get(Work(connector, number), status)) for number, status in by_connector.tasks.items())
        return lost.get(Work(connector), by_connector.connector), sorted(tasks, key=itemgetter(0))

    def attempts(self, work: Work) -> int:
        """Returns how much of its restart budget a connector or task has used, by its last status."""
        now = self.statuses.get(work)
        restart = now.more.get("restart") if now is not None else None
        used = restart.get("attempt") if isinstance(restart, dict) else None
        return used if isinstance(used, int) else 0

    def settled(self, work: Work) -> bool:
        """Returns whether by its last status a task has run, here or on another worker, and had no problem of its own.
        Waiting for a file or a topic does not count as a problem."""
        now = self.statuses.get(work)
        return (
            now is not None and now.state in (RUNNING, UNASSIGNED) and not now.trace and now.more.keys() <= {WAITS_FOR}
        )

    def without(self, configured: Container[Work], connector: str) -> list[Work]:
        """Returns the work of this connector that has a status, but is no longer configured."""
        by_connector = self.by_connector.get(connector)
        if by_connector is None:
            return []
        works = [Work(connector)] if by_connector.connector is not None else []
        works += [Work(connector, n) for n in sorted(by_connector.tasks)]
        return [work for work in works if work not in configured]


def topic_key(topic: str, connector: str) -> bytes:
    """Returns the key of the record that a connector uses a topic."""
    return f"status-topic-{topic}:connector-{connector}".encode()


def topic_value(topic: str, work: Work, found_ms: int) -> bytes:
    """Returns that record's value; the task is the first that used the topic."""
    used = {"name": topic, "connector": work.connector, "task": work.task, "discoverTimestamp": found_ms}
    return json_text({"topic": used}).encode()


def key_of(work: Work) -> bytes:
    """Returns the record's key."""
    name = f"status-task-{work.connector}-{work.task}" if work.is_task else f"{CONNECTOR_KEY}{work.connector}"
    return name.encode()


def work_of(key: str) -> Work | None:
    """Returns the connector or task of a key; None for any other key."""
    if key.startswith(CONNECTOR_KEY):
        name = key.removeprefix(CONNECTOR_KEY)
        return Work(name, CONNECTOR_TASK) if name else None
    return work_in(key.removeprefix("status-task-")) if key.startswith("status-task-") else None


def status_in(value: bytes) -> Status | None:
    """Returns the status in a record's value; None for any other value."""
    data = object_of(value) or {}
    state, worker, generation = data.get("state"), data.get("worker_id"), data.get("generation")
    trace, version, more = data.get("trace"), data.get("version"), data.get(STATUS_FIELD)
    if not (state in STATES and isinstance(state, str) and isinstance(worker, str) and isinstance(generation, int)):
        return None
    if not (isinstance(trace, str | None) and isinstance(version, str | None)):
        return None
    return Status(state, worker, generation, trace, version, more if isinstance(more, dict) else {})
