"""Decides how a task's backlog is split into parts, and how the offset topic records that. No I/O.

The plan is a source offset of the connector beside its own ones, under a partition that no connector has:
`["connector",{"keelman.bulk":"<task>"}]` with `{"parts":n}`. While it exists, producers `<task's id>-b1` to `-b<n-1>`
may be about to commit; their successor fences them. Connect's own tasks look up only their own partitions and ignore
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keelman.api.copy.v1.ticket_pb2 import Bulk
from keelman.connect.config.copying_keys import BULK_LEAST, BULK_SLOTS, MAX_SLOTS
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.records import Offset, Partition

PLAN = "keelman.bulk"
_PLAN_BYTES = f'"{PLAN}"'.encode()


def bulk_of(config: Mapping[str, str]) -> Bulk | None:
    """Returns a connector's settings for split backlogs; None when its tasks are never split.

    Raises ConfigValueError for values that are no numbers, or illegal.
    """
    slots, least = BULK_SLOTS.among(config), BULK_LEAST.among(config)
    return Bulk(slots=slots, least=least) if slots > 1 else None


def plan_partition(task: int) -> Partition:
    """Returns the source partition of a task's plan."""
    return {PLAN: str(task)}


def plan_offset(parts: int) -> Offset:
    """Returns the plan of a task with this number of parts, its own included."""
    return {"parts": parts}


def planned_parts(offset: Mapping[str, Any] | None) -> int:
    """Returns the number of parts in a plan, the task's own included; 0 for no plan."""
    parts = None if offset is None else offset.get("parts")
    return parts if isinstance(parts, int) and not isinstance(parts, bool) and 1 < parts <= MAX_SLOTS else 0


def part_id(transactional_id: str, part: int) -> str:
    """Returns the transactional id of a part's producer, from its task's id."""
    return f"{transactional_id}-b{part}"


def part_ids(transactional_id: str, parts: int) -> list[str]:
    """Returns the ids of all producers beside the task's own."""
    return [part_id(transactional_id, part) for part in range(1, parts)]


def plans(connector: str, rows: Iterable[tuple[bytes, bytes | None]]) -> dict[int, int]:
    """Returns the plans among a connector's rows of the offset topic: parts by task."""
    parts_of_tasks: dict[int, int] = {}
    named = ((key, value) for key, value in rows if _PLAN_BYTES in key)  # of thousands of rows only these are parsed
    for partition, offset in CommittedOffsets(connector, named):
        task = partition.get(PLAN)
        if isinstance(task, str) and task.isdigit() and planned_parts(offset):
            parts_of_tasks[int(task)] = planned_parts(offset)
    return parts_of_tasks
