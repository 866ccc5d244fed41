"""Builds the bodies of REST's answers about connectors, as Connect's, from the worker's tables."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.model.work import Work
from keelman.runtime.coalesced import Coalesced
from keelman.runtime.logs.logging import get_logger
from keelman.worker.connector_facts import UNKNOWN, connector_type
from keelman.worker.errors import not_found
from keelman.worker.storage.config_records import NOT_KNOWN
from keelman.worker.storage.status_state import ConnectorStatuses, Status
from keelman.worker.storage.store import WorkerStore
from keelman.workers.status_notes import STATUS_FIELD

log = get_logger()
FRESH_SECONDS = 5.0  # seconds that brokers may be silent until a read counts them as away
MIN_SECONDS = 1.0  # for a read, however long they have been silent
STALE_SECONDS = 2.0
STATUS_SECONDS = 3.0
LOOK_SECONDS = 0.02
KINDS = ("status", "info")
UID_HEADER = "keelman-uid"
PIECE = 200  # connectors of a list that are sent at a time


@dataclass(slots=True)
class _Rendered:
    """A connector's part of a list as bytes, for each choice of kinds, and the tables that it was made from."""

    config: Mapping[str, str]
    tasks: object
    statuses: ConnectorStatuses | None
    changes: int
    parts: dict[tuple[str, ...], bytes] = field(default_factory=dict)


class Views:
    """Read by REST alone. Shows everything that was written through any worker before the last call of `fresh`."""

    def __init__(self, store: WorkerStore) -> None:
        self._store = store
        self._read = Coalesced(self._read_config)
        self._failed_at = -math.inf
        self._rendered: dict[str, _Rendered] = {}
        self._types: dict[str, str] = {}

    async def fresh(self) -> None:
        """Reads the config topic to its end: many callers share one read.

        While no broker answers, the last known state is shown, as in Connect, and marked as `stale`: never raises for
        that.
        """
        if not self.stale:
            await self._read()

    @property
    def stale(self) -> bool:
        """Whether the config topic could not be read to its end, and none of its brokers has answered since."""
        heard_at = self._store.config_topic.heard_at
        return heard_at <= self._failed_at or time.monotonic() < self._failed_at + STALE_SECONDS

    @property
    def known_seconds(self) -> float:
        """How long ago the known state was the actual one, as far as this worker knows."""
        return time.monotonic() - self._store.known_at

    async def _read_config(self) -> None:
        if self.stale:  # since it was waited for
            return
        left = self._store.config_topic.heard_at + FRESH_SECONDS - time.monotonic()
        try:
            await self._store.config_topic.read(seconds=max(MIN_SECONDS, left))
        except (Unavailable, DeadlineExceeded) as error:
            log.warning("config_not_read", error=error.message)
            self._failed_at = time.monotonic()

    def names(self) -> list[str]:
        """Returns all connectors."""
        return sorted(self._store.config.connectors)

    def config(self, name: str) -> dict[str, str]:
        """Returns the connector's configuration as it was given. Raises 404."""
        return self._store.config.config_of(name)

    def about(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """Returns headers for an answer about a connector with this configuration: its entity tag, and its uid if it
        has one."""
        uid = self._store.config.identities.get(name, NOT_KNOWN).uid
        return {"etag": etag_of(config), **({UID_HEADER: uid} if uid else {})}

    def info(self, name: str) -> dict[str, Any]:
        """Returns ConnectorInfo. Raises 404."""
        config = self.config(name)
        tasks = range(len(self._store.config.tasks.get(name, ())))
        return {
            "name": name,
            "config": config,
            "tasks": [{"connector": name, "task": n} for n in tasks],
            "type": self._type(config),
        }

    def status(self, name: str) -> dict[str, Any]:
        """Returns ConnectorStateInfo. Raises 404."""
        connector, tasks = self._store.statuses.of(name)
        config = self._store.config.connectors.get(name)
        if connector is None or config is None:
            raise not_found(f"No status found for connector {name}")
        return {
            "name": name,
            "connector": state_body(connector),
            "tasks": [{"id": n, **state_body(status)} for n, status in tasks],
            "type": self._type(config),
        }

    async def awaited_status(self, name: str) -> dict[str, Any]:
        """Returns `status` of a connector that may have been created a moment ago: gives its worker time to write
        it."""
        await self._await_status(lambda: self._store.statuses.of(name)[0] is not None, name)
        return self.status(name)

    async def task_status(self, name: str, task: int) -> dict[str, Any]:
        """Returns one task's state. Raises 404."""
        work = Work(name, task)
        if self._store.config.task(work) is not None:
            await self._await_status(lambda: work in self._store.statuses.statuses, name)
        status = self._store.statuses.shown(work) if task >= 0 else None
        if status is None:
            raise not_found(f"No status found for task {name}-{task}")
        return {"id": task, **state_body(status)}

    async def _await_status(self, there: Callable[[], bool], name: str) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + STATUS_SECONDS
        # Nothing notifies of this one change alone, and it is three seconds at most.
        while not (there() or self.stale) and name in self._store.config.connectors and clock() < until:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """Returns task ids and configurations. Raises 404."""
        self.config(name)
        configs = self._store.config.tasks.get(name, ())
        return [{"id": {"connector": name, "task": n}, "config": config} for n, config in enumerate(configs)]

    def topics(self, name: str) -> dict[str, Any]:
        """Topics that the connector used since it was created or reset."""
        return {name: {"topics": sorted(self._store.statuses.topics.get(name, ()))}}

    def listed(self, kind_names: Iterable[str]) -> list[bytes]:
        """Returns the JSON of all connectors, each with its status and info as far as they are wanted, in pieces of
        some size.

        Tens of thousands must be quick, so a connector's last part is kept until it changes.
        """
        chosen = set(kind_names)
        kinds = tuple(kind for kind in KINDS if kind in chosen)
        config, statuses = self._store.config, self._store.statuses.by_connector
        parts: list[bytes] = []
        for name in self.names():
            rendered, now = self._rendered.get(name), statuses.get(name)
            if (
                rendered is None
                or rendered.config is not config.connectors[name]
                or rendered.tasks is not config.tasks.get(name)
                or rendered.statuses is not now
                or (now is not None and rendered.changes != now.changes)
            ):
                rendered = self._rendered[name] = _Rendered(
                    config.connectors[name], config.tasks.get(name), now, 0 if now is None else now.changes
                )
            part = rendered.parts.get(kinds)
            if part is None:
                part = self._part(name, kinds, now)
                if self._type(rendered.config) != UNKNOWN:  # a plugin's class may become known
                    rendered.parts[kinds] = part
            if part:
                parts.append(part)
        if len(self._rendered) > len(config.connectors):
            for gone in self._rendered.keys() - config.connectors.keys():
                del self._rendered[gone]
        pieces = [b",".join(parts[first : first + PIECE]) for first in range(0, len(parts), PIECE)]
        return [b"{", *(b"," + piece if number else piece for number, piece in enumerate(pieces)), b"}"]

    def _part(self, name: str, kinds: Iterable[str], statuses: ConnectorStatuses | None) -> bytes:
        """Returns a connector's part; empty without a status, where that is wanted: it is left out, as by Connect."""
        if "status" in kinds and (statuses is None or statuses.connector is None):
            return b""
        content = {kind: self.status(name) if kind == "status" else self.info(name) for kind in kinds}
        return b"%b:%b" % (orjson.dumps(name), orjson.dumps(content))

    def _type(self, config: Mapping[str, str]) -> str:
        """Returns the result of `connector_type`, without a search for each of ten thousand connectors."""
        name = config.get("connector.class", "")
        kind = self._types.get(name)
        if kind is None:
            kind = connector_type(config)
            if kind != UNKNOWN:
                self._types[name] = kind
        return kind


def etag_of(config: Mapping[str, str]) -> str:
    """Returns the entity tag of a configuration: the same for equal ones, on every worker."""
    return '"' + hashlib.sha256(orjson.dumps(dict(config), option=orjson.OPT_SORT_KEYS)).hexdigest()[:32] + '"'


def state_body(status: Status) -> dict[str, Any]:
    """Returns a state as it is shown, of a connector or, with an id before it, of a task."""
    shown: dict[str, Any] = {"state": status.state, "worker_id": status.worker_id}
    if status.trace:
        shown["trace"] = status.trace
    if status.version:
        shown["version"] = status.version
    if status.more:
        shown[STATUS_FIELD] = status.more
    return shown
