"""Finds this worker's connectors and tasks that fail or stall, for its reports. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.api.connect.v1.connector_problem_pb2 import (
    CONNECTOR_PROBLEM_STATE_FAILED,
    CONNECTOR_PROBLEM_STATE_RESTARTING,
    CONNECTOR_PROBLEM_STATE_STALLED,
    ConnectorProblem,
    ConnectorProblemState,
)
from keelman.model.traces import why_line
from keelman.model.work import Work
from keelman.worker.storage import status_state as states
from keelman.worker.storage.status_state import Status
from keelman.workers.status_notes import failures

MOST = 20
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Problems:
    """At most 20 of them, by name, and how many connectors have any."""

    named: tuple[ConnectorProblem, ...] = ()
    connectors: int = 0


def problems_of(works: Iterable[Work], statuses: Mapping[Work, Status], worker: str) -> Problems:
    """Looks at all works: some milliseconds for 10,000 connectors.

    A problem is a failed or stalled connector or task, or a restart after more than one failure.
    """
    entries = []
    for work in works:
        status = statuses.get(work)
        if status is not None and (state := _state(status)):
            entries.append((work, state, status))
    entries.sort(key=lambda entry: entry[0])
    named = tuple(_problem(work, state, status, worker) for work, state, status in entries[:MOST])
    return Problems(named, len({work.connector for work, *_ in entries}))


def _problem(work: Work, state: ConnectorProblemState.ValueType, status: Status, worker: str) -> ConnectorProblem:
    if state == CONNECTOR_PROBLEM_STATE_STALLED:
        reason = _stalled(status.more)
    else:
        count, last = failures(status.more)
        reason = why_line(status.trace or "") or f"failed {count} times in a row: {last}"
    return ConnectorProblem(
        connector=work.connector,
        task=work.task if work.is_task else None,
        state=state,
        reason=reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 3]}...",
        worker_id=worker,
    )


def _state(status: Status) -> ConnectorProblemState.ValueType | None:
    """Returns None without a problem."""
    if status.state == states.FAILED:
        return CONNECTOR_PROBLEM_STATE_FAILED
    if "stalled" in status.more:
        return CONNECTOR_PROBLEM_STATE_STALLED
    return CONNECTOR_PROBLEM_STATE_RESTARTING if failures(status.more)[0] else None


def _stalled(more: Mapping[str, object]) -> str:
    stalled = more.get("stalled")
    reason = stalled.get("reason") if isinstance(stalled, dict) else None
    return f"it has something to copy and copies nothing{f': {reason}' if reason else ''}"
