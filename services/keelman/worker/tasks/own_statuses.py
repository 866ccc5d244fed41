"""Writes the statuses of the connectors and tasks that this worker has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from keelman.connect.errors import ConnectError
from keelman.connectors.registry import find_connector
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.worker.storage.status_state import Status
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.group_member import GroupMember
from keelman.worker.tasks.meters import Meters

ReportStatus: TypeAlias = Callable[[str, str | None, Mapping[str, object]], None]
"""Has one task's status written soon: state, trace and the fields beyond Connect's."""


class OwnStatuses:
    """Writes statuses in the name of this worker, in its present generation; `meters` count the states."""

    def __init__(self, store: WorkerStore, membership: GroupMember, meters: Meters, worker: str) -> None:
        self._store = store
        self._membership = membership
        self._meters = meters
        self._worker = worker

    def report(self, work: Work, state: str, trace: str | None, more: Mapping[str, object] | None = None) -> None:
        """Has a status written soon; `more` are its fields beyond Connect's."""
        self._meters.count_state(work, state)
        status = Status(state, self._worker, self._membership.generation, trace, self._version(work), more or {})
        self._store.status_topic.writer.put(work, status)

    def _version(self, work: Work) -> str | None:
        try:
            config = self._store.config.connectors[work.connector]
            return find_connector(config["connector.class"], config.get("connector.plugin.version")).version
        except (KeelmanError, ConnectError, KeyError):
            return None
