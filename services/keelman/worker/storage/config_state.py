"""Folds the config topic into connectors, task configurations and target states. Pure: records in, state out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.connect.config.copying_keys import LABELS
from keelman.kafka.writer import Record
from keelman.model.work import Work
from keelman.worker.errors import not_found
from keelman.worker.storage.config_records import (
    DELETED_BY,
    LOGGER,
    MAX_TASKS,
    NO_KEY,
    PAUSED,
    STARTED,
    STOPPED,
    WRITTEN_BY,
    ConnectorIdentity,
    RestartRequest,
    connector_of,
    connector_record,
    fencing_record,
    identity_in,
    object_of,
    target_record,
    text_in,
    work_in,
)
from keelman.worker.storage.recent import Recent
from keelman.worker.storage.stored_tasks import StoredTasks

CONFIG, DELETE, RESTART = "config", "delete", "restart"
"""Kinds of requests that clients make under an id of theirs, beside target states."""
NO_NAME = "its key names no connector"
NO_TASK = f"its key names no task of a connector: task-<connector>-<number below {MAX_TASKS}>"
NO_OBJECT = "its value is no JSON object"
NO_PROPERTIES = 'its value has no object "properties"'
InForce = tuple[Mapping[str, str], tuple[Mapping[str, str], ...]]
"""The configurations of a connector and its tasks that were in force together."""


@dataclass(slots=True)
class ConfigState:
    """Built by applying the topic's records in order. `offset` is the last record's offset + 1.

    `unfenced` names connectors whose tasks were put into force since the producers of their former tasks were last
    fenced, each with the offset of the record that did so. A single task that follows a single task is not among them:
    it fences its predecessor by itself. `former` has the sets that those replaced; None for an unknown one, since the
    topic was compacted. `applied` holds each connector's configuration at the time when its tasks were put into force:
    they run with it until the leader has put new ones into force. `session_key`, base64, signs the requests between
    workers. `placements` has the connectors' own placement labels. `shape` changes with the connectors and the numbers
    of tasks. `written`, `deleted` and `restarted` know the newest such records, `answered` those that were written for
    a request with an id of its own: its kind, connector and id. `lapsing` names connectors whose tasks in force differ
    from those in the topic after compaction: their commit record is not the last. `spoilt` has the keys whose newest
    record is ignored, though an earlier one counts.
    """

    offset: int = 0
    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    identities: dict[str, ConnectorIdentity] = field(default_factory=dict)
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
    written: Recent[str] = field(default_factory=Recent)
    deleted: Recent[str] = field(default_factory=Recent)
    restarted: Recent[RestartRequest] = field(default_factory=Recent)
    answered: Recent[tuple[str, str, str]] = field(default_factory=Recent)
    placements: dict[str, str] = field(default_factory=dict)
    lapsing: set[str] = field(default_factory=set)
    spoilt: set[str] = field(default_factory=set)
    _deleting: dict[str, str] = field(default_factory=dict)
    _stored: StoredTasks = field(default_factory=StoredTasks)
    _buffered: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    _work: tuple[int, frozenset[Work]] = (0, frozenset())

    def target(self, connector: str) -> str:
        """Returns STARTED, PAUSED or STOPPED; STARTED when nothing was written."""
        return self.targets.get(connector, STARTED)

    def work(self) -> frozenset[Work]:
        """Returns every configured connector instance and task."""
        shape, work = self._work
        if shape != self.shape:
            all_ = {Work(name) for name in self.connectors}
            all_ |= {Work(name, n) for name in self.connectors for n in range(len(self.tasks.get(name, ())))}
            work = frozenset(all_)
            self._work = self.shape, work
        return work

    def task(self, work: Work) -> dict[str, str] | None:
        """Returns the task's configuration, None when it has none now."""
        configs = self.tasks.get(work.connector, ())
        if work.connector not in self.connectors or not 0 <= work.task < len(configs):
            return None
        return configs[work.task]

    def config_of(self, connector: str) -> dict[str, str]:
        """Returns a connector's configuration as it was given. Raises 404."""
        if (config := self.connectors.get(connector)) is None:
            raise not_found(f"Connector {connector} not found")
        return config

    def apply(self, key: str, value: bytes | None, offset: int) -> str:
        """Applies one record. Returns why it was passed over: an unknown key, or an illegal value; empty for an applied
        one."""
        self.offset = offset + 1
        name = connector_of(key) or ""
        if key.startswith(("connector-", "task-", "commit-")) and self.tasks.get(name):
            self.lapsing.add(name)  # until it has another commit record
        reason = self._apply(key, value)
        if reason and key.startswith(("connector-", "target-state-", "tasks-fencing-")) and name in self.connectors:
            self.spoilt.add(key)
        elif self.spoilt:
            self.spoilt.discard(key)
        return reason

    def _apply(self, key: str, value: bytes | None) -> str:
        data = object_of(value)
        for prefix, handle in (
            ("connector-", self._connector),
            ("target-state-", self._target),
            ("tasks-fencing-", self._fencing),
            ("task-", self._task),
            ("commit-", self._commit),
            ("restart-connector-", self._restart),
            (LOGGER, _logger),
            ("session-key", self._session),
        ):
            if key.startswith(prefix):
                unread = data is None and value is not None
                return NO_OBJECT if unread else handle(key.removeprefix(prefix), data)
        return NO_KEY

    def has_since(self, name: str, config: Mapping[str, str], since: int | None) -> bool:
        """Returns whether the connector has this configuration by a record at this offset or later; never for None."""
        return self.written.since(name, since) and self.connectors.get(name) == config

    def is_answered(self, what: str, name: str, request_id: str) -> bool:
        """Returns whether a request of this id has been done, as far as the topic remembers: CONFIG, DELETE, RESTART,
        or a target state of a connector. Never for an empty id."""
        return bool(request_id) and self.answered.since((what, name, request_id), 0)

    def _answer(self, what: str, name: str, request_id: str) -> None:
        if request_id:
            self.answered.note((what, name, request_id), self.offset - 1)

    def may_have_lingering_target(self, name: str) -> bool:
        """Returns whether the topic may have, perhaps unread, a target state after the deletion of this connector: any
        worker pauses and resumes, even before it has read the deletion."""
        return name not in self.connectors and self.deleted.since(name, 0)

    def _session(self, rest: str, data: Mapping[str, object] | None) -> str:
        if rest:
            return NO_KEY
        if data is None:
            self.session_key, self.session_key_ms = "", 0
            return ""
        key, created_ms = data.get("key"), data.get("creation-timestamp")
        if not (isinstance(key, str) and _is_base64(key) and isinstance(created_ms, int)):
            return 'its value has no "key" in base64, or no "creation-timestamp" in milliseconds'
        self.session_key, self.session_key_ms = key, created_ms
        return ""

    def _connector(self, name: str, data: Mapping[str, object] | None) -> str:
        if not name:
            return NO_NAME
        properties = None if data is None else data.get("properties")
        if data is not None and not isinstance(properties, dict):
            return NO_PROPERTIES
        (self.deleted if data is None else self.written).note(name, self.offset - 1)
        if data is None:
            self._answer(DELETE, name, self._deleting.pop(name, ""))
            self.shape += name in self.connectors
            self.connectors.pop(name, None)
            self.identities.pop(name, None)
            self._stored.compare(name, connector=False)
            self.placements.pop(name, None)
            self._without_tasks(name)
            self.applied.pop(name, None)
            self._buffered.pop(name, None)
            self.inconsistent.discard(name)
            self._fenced(name)
            return ""
        self.shape += name not in self.connectors
        config = self.connectors[name] = _strings(properties)
        self.identities[name] = identity_in(data)
        self._answer(CONFIG, name, text_in(data, WRITTEN_BY))
        self._deleting.pop(name, None)
        if deleted_by := text_in(data, DELETED_BY):
            self._deleting[name] = deleted_by
        self._stored.compare(name, connector=True)
        self.placements.pop(name, None)
        if config.get(LABELS.name):
            self.placements[name] = config[LABELS.name]
        self.targets.setdefault(name, STARTED)
        return ""

    def _target(self, name: str, data: Mapping[str, object] | None) -> str:
        if not name:
            return NO_NAME
        if data is None:
            self.targets.pop(name, None)
            return ""
        state = data.get("state.v2") or data.get("state")
        if state not in (STARTED, PAUSED, STOPPED):
            return f'its value has neither as "state.v2" nor as "state" one of {STARTED}, {PAUSED}, {STOPPED}'
        self.targets[name] = str(state)
        self._answer(str(state), name, text_in(data, WRITTEN_BY))
        return ""

    def _task(self, rest: str, data: Mapping[str, object] | None) -> str:
        work = work_in(rest)
        if work is None:
            return NO_TASK
        name, number = work.connector, work.task
        self._stored.note(name, number + 1, there=data is not None, connector=name in self.connectors)
        properties = None if data is None else data.get("properties")
        if data is None:
            self._buffered.get(name, {}).pop(number, None)
        elif isinstance(properties, dict):
            self._buffered.setdefault(name, {})[number] = _strings(properties)
        else:
            return NO_PROPERTIES
        return ""

    def leftovers(self) -> list[tuple[bytes, None]]:
        """Returns tombstones for the leftovers of deleted connectors in the topic: these would come back with their
        names."""
        return self._stored.leftovers()

    def restored(self) -> list[Record]:
        """Returns records that repeat values in force, which the topic would lose once it is compacted: others have
        overwritten them with meaningless ones."""
        records = (self._restored(key) for key in sorted(self.spoilt))
        return [record for record in records if record is not None]

    def _restored(self, key: str) -> Record | None:
        name = connector_of(key)
        if name is None or name not in self.connectors:
            return None
        if key.startswith("connector-"):
            return connector_record(name, self.connectors[name], self.identities[name])
        if key.startswith("target-state-"):
            return target_record(name, self.target(name))
        count = self.fencing.get(name)
        return None if count is None else fencing_record(name, count)

    def _commit(self, name: str, data: Mapping[str, object] | None) -> str:
        if not name:
            return NO_NAME
        self._stored.note(name, 0, there=data is not None, connector=name in self.connectors)
        if data is None:
            self._without_tasks(name)
            return ""
        count = _count(data.get("tasks"))
        if count is None:
            return f'its value has as "tasks" no number below {MAX_TASKS}'
        if name not in self.connectors:  # it was deleted, or has another configuration since
            return ""
        buffered = self._buffered.pop(name, {})
        present = dict(enumerate(self.tasks.get(name, ())))
        before = (self.applied[name], self.tasks[name]) if name in self.tasks and name in self.applied else None
        merged = {**present, **buffered}
        if any(n not in merged for n in range(count)):
            self.inconsistent.add(name)
            self._without_tasks(name)
            return f"the topic has not the configurations of all {count} tasks: they are made again"
        self.inconsistent.discard(name)
        self.lapsing.discard(name)
        self.shape += count != len(self.tasks.get(name, ()))
        self.tasks[name] = tuple(merged[n] for n in range(count))
        self.applied[name] = self.connectors[name]
        if (self.fencing.get(name), count) == (1, 1):
            self._fenced(name)
        else:
            self.unfenced[name] = self.offset - 1
            self.former.setdefault(name, []).append(before)
        return ""

    def _without_tasks(self, name: str) -> None:
        self.lapsing.discard(name)
        self.shape += bool(self.tasks.pop(name, ()))

    def _fenced(self, name: str) -> None:
        self.unfenced.pop(name, None)
        self.former.pop(name, None)

    def _fencing(self, name: str, data: Mapping[str, object] | None) -> str:
        if not name:
            return NO_NAME
        if data is None:
            self.fencing.pop(name, None)
            return ""
        count = _count(data.get("task-count"))
        if count is None:
            return f'its value has as "task-count" no number below {MAX_TASKS}'
        self.fencing[name] = count
        self._fenced(name)
        return ""

    def _restart(self, name: str, data: Mapping[str, object] | None) -> str:
        if not name:
            return NO_NAME
        if data is not None:
            include, failed = data.get("include-tasks"), data.get("only-failed")
            request = RestartRequest(name, include is True, failed is True)
            self.restarts.append(request)
            self.restarted.note(request, self.offset - 1)
            self._answer(RESTART, name, text_in(data, WRITTEN_BY))
        return ""


def _logger(name: str, data: Mapping[str, object] | None) -> str:
    return "" if name and (data is None or isinstance(data.get("level"), str)) else 'it has no logger, or no "level"'


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < MAX_TASKS else None


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:  # binascii's, or not ASCII
        return False


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(k): v if isinstance(v, str) else "" if v is None else str(v) for k, v in value.items()}
