"""Which of this worker's connectors and tasks do not do what they should, for reports. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.api.connect.v1.connector_trouble_pb2 import ConnectorTrouble
from keelman.model.traces import why_line
from keelman.model.work import Work
from keelman.worker.storage import status_state as states
from keelman.worker.storage.status_state import Status

MOST = 20
LONGEST = 200
STALLED = "STALLED"


@dataclass(frozen=True, slots=True)
class Troubles:
    """At most 20 of them, by name, and of how many connectors there are any."""

    told: tuple[ConnectorTrouble, ...] = ()
    connectors: int = 0


def troubles_of(works: Iterable[Work], statuses: Mapping[Work, Status], worker: str) -> Troubles:
    """Looks at all works: some milliseconds for 10,000 connectors.

    In trouble is what has failed or is stalled, and what is tried again after it has failed more than once.
    """
    found = []
    for work in works:
        status = statuses.get(work)
        if status is not None and _state(status):
            found.append((work, status))
    found.sort(key=lambda one: one[0])
    told = tuple(_trouble(work, status, worker) for work, status in found[:MOST])
    return Troubles(told, len({work.connector for work, _ in found}))


def _trouble(work: Work, status: Status, worker: str) -> ConnectorTrouble:
    state = _state(status)
    if state == STALLED:
        reason = _stalled(status.more)
    else:
        reason = why_line(status.trace or "") or f"failed {_failures(status.more)} times in a row: {_why(status.more)}"
    return ConnectorTrouble(
        connector=work.connector,
        task=work.task if work.is_task else -1,
        state=state,
        reason=reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 3]}...",
        worker=worker,
    )


def _state(status: Status) -> str:
    """FAILED, STALLED or RESTARTING; empty for what is in no trouble."""
    if status.state == states.FAILED:
        return states.FAILED
    if "stalled" in status.more:
        return STALLED
    return states.RESTARTING if status.more and _failures(status.more) > 1 else ""


def _failures(more: Mapping[str, object]) -> int:
    """How many attempts have failed in a row, as far as the status tells."""
    failures, restart = more.get("failures"), more.get("restart")
    found = (
        failures.get("count") if isinstance(failures, dict) else 0,
        restart.get("attempt") if isinstance(restart, dict) else 0,
    )
    return max((number for number in found if isinstance(number, int)), default=0)


def _why(more: Mapping[str, object]) -> str:
    told = more.get("failures") or more.get("restart")
    return str(told.get("reason")) if isinstance(told, dict) else ""


def _stalled(more: Mapping[str, object]) -> str:
    stalled = more.get("stalled")
    why = stalled.get("reason") if isinstance(stalled, dict) else None
    return f"it has something to copy and copies nothing{f': {why}' if why else ''}"
