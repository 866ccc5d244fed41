"""Remembers the newest status of each workload and keeps it until the state service has it."""

from __future__ import annotations

import asyncio

from keelman.api.node.v1.session_service_pb2 import WorkloadReport
from keelman.api.node.v1.workload_pb2 import WorkloadStatus

MEMORY_STEP_BYTES = 4 * 1024 * 1024


class Reporter:
    """The newest status of each workload, and which of them the state service has not received yet."""

    def __init__(self) -> None:
        self._statuses: dict[str, WorkloadStatus] = {}
        self._unheard: dict[str, WorkloadStatus] = {}
        self._sent: dict[str, WorkloadStatus] = {}
        self._number = 0
        self._complete = False
        self._news = asyncio.Event()
        self._received = asyncio.Event()

    def put(self, name: str, status: WorkloadStatus) -> bool:
        """Takes a status; returns whether it is news: more than a later time or a little more memory."""
        old = self._statuses.get(name)
        if old is not None and _same(old, status):
            return False
        self._statuses[name] = self._unheard[name] = status
        self._news.set()
        return True

    def forget(self, name: str) -> None:
        """Forgets a workload that the system no longer knows."""
        self._statuses.pop(name, None)
        self._unheard.pop(name, None)

    def begin(self) -> None:
        """Begins a new session: everything has to be reported again, all of it in the first report."""
        self._unheard = dict(self._statuses)
        self._sent, self._number, self._complete = {}, 0, False
        self._news.set()

    async def next(self) -> WorkloadReport:
        """Returns the next report, as soon as there is news. One is under way at a time: call again after
        `acknowledge`."""
        while self._complete and not self._unheard:
            self._news.clear()
            await self._news.wait()
        self._number += 1
        report = WorkloadReport(number=self._number, statuses=self._unheard, complete=not self._complete)
        self._sent, self._complete = dict(self._unheard), True
        return report

    def acknowledge(self, number: int) -> bool:
        """Takes note that the state service has stored the report; returns whether that was the last one sent."""
        if number < self._number:
            return False
        for name, status in self._sent.items():
            if self._unheard.get(name) is status:
                del self._unheard[name]
        self._sent = {}
        self._received.set()
        return True

    async def all_received(self) -> None:
        """Returns when the state service has all statuses."""
        while self._unheard:
            self._received.clear()
            await self._received.wait()


def _same(old: WorkloadStatus, new: WorkloadStatus) -> bool:
    if abs(old.memory_bytes - new.memory_bytes) >= max(MEMORY_STEP_BYTES, old.memory_bytes // 20):
        return False
    if bool(old.memory_bytes) != bool(new.memory_bytes):
        return False
    return _essence(old) == _essence(new)


def _essence(status: WorkloadStatus) -> WorkloadStatus:
    workload_status = WorkloadStatus()
    workload_status.CopyFrom(status)
    workload_status.ClearField("memory_bytes")
    workload_status.ClearField("observe_time")
    return workload_status
