"""Stores the audit's events with a number each, finds them, and forgets the oldest beyond a limit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.api.event.v1.audit_event_service_pb2 import ListAuditEventsRequest
from keelman.model.errors import InvalidArgument
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.times import from_timestamp
from keelman.state.audit.rows import AuditRow
from keelman.state.database.database import Database
from keelman.state.database.tables import CounterRow
from keelman.state.database.times import micros

AT_ONCE = 1000
"""The most events of one request, and the number of rows that are read at once."""
TRIM_EVERY = 100
"""The number of events after which the oldest are looked for."""
MAX_BYTES = 16 << 10
"""The largest event."""
_ID = re.compile(r"[0-9a-f]{32}")
_GAPS = re.compile(r"[ ,/]+")
_COUNTER, _PUBLISHED = (col(CounterRow.name) == name for name in ("audit", "audit_published"))
_NEWEST = sa.select(col(CounterRow.value)).where(_COUNTER)


@dataclass(slots=True)
class AuditTrail:
    """The audit in the database. `kept`: the number of events of writes that are kept, and that of refused calls, so
    that a flood of these does not displace the others."""

    database: Database
    kept: int
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when this process has stored events."""

    async def record(self, events: Sequence[AuditEvent]) -> None:
        """Stores events in their order, except those that are stored already. Raises InvalidArgument."""
        _check(events)
        async with self.database.aside() as connection:
            newest: int = (await connection.execute(_NEWEST.with_for_update())).scalar_one()
            ids = [event.id for event in events]
            known = set(
                (await connection.execute(sa.select(col(AuditRow.id)).where(col(AuditRow.id).in_(ids)))).scalars()
            )
            fresh = [event for event in {event.id: event for event in events}.values() if event.id not in known]
            if not fresh:
                return
            rows = [_row(number, event) for number, event in enumerate(fresh, newest + 1)]
            await connection.execute(sa.insert(AuditRow), rows)
            last = newest + len(rows)
            await connection.execute(sa.update(CounterRow).where(_COUNTER).values(value=last))
            if newest // TRIM_EVERY != last // TRIM_EVERY:
                for refused in (True, False):
                    await connection.execute(_trimmed(refused, self.kept))
        self.grown.set()

    async def page(self, request: ListAuditEventsRequest) -> tuple[list[AuditEvent], str]:
        """Returns a page of events, the newest first, and the token of the next. Raises InvalidArgument."""
        limit, before = page_limit(request.page_size), key_of(request.page_token)
        if before and not before.isdigit():
            raise InvalidArgument.of("page_token", request.page_token, "one from an earlier answer")
        found: list[AuditEvent] = []
        position = int(before) if before else None
        async with self.database.read() as session:
            while len(found) <= limit:
                statement = _chosen(request).order_by(col(AuditRow.number).desc()).limit(AT_ONCE)
                if position is not None:
                    statement = statement.where(col(AuditRow.number) < position)
                rows = (await session.exec(statement)).all()
                events = (AuditEvent.FromString(row.payload) for row in rows)
                found += [event for event in events if not request.resource or is_about(event, request.resource)]
                if len(rows) < AT_ONCE:
                    break
                position = rows[-1].number
        part = found[:limit]
        return part, token_for(str(part[-1].number)) if len(found) > limit else ""

    async def after(self, number: int) -> list[AuditRow]:
        """Returns the next events after a number, in their order."""
        statement = select(AuditRow).where(col(AuditRow.number) > number).order_by(col(AuditRow.number)).limit(AT_ONCE)
        async with self.database.read() as session:
            return list((await session.exec(statement)).all())

    async def published(self) -> int:
        """Returns the number of the last event that the relay has noted as published."""
        async with self.database.read() as session:
            return (await session.exec(select(CounterRow.value).where(_PUBLISHED))).one()

    async def note_published(self, number: int) -> None:
        """Stores the relay's progress."""
        statement = sa.update(CounterRow).where(_PUBLISHED, col(CounterRow.value) < number).values(value=number)
        async with self.database.aside() as connection:
            await connection.execute(statement)


def is_about(event: AuditEvent, name: str) -> bool:
    """Tells whether an event's resource is this one, or whether its call or resource contains the name."""
    parts = _GAPS.sub("/", f"/{event.call}/{event.resource}/")
    return event.resource == name or f"/{name}/" in parts


def _chosen(request: ListAuditEventsRequest) -> Any:
    statement = select(AuditRow)
    if request.caller:
        statement = statement.where(col(AuditRow.caller) == request.caller)
    if request.outcome:
        statement = statement.where(col(AuditRow.outcome) == request.outcome)
    if request.HasField("since"):
        statement = statement.where(col(AuditRow.time) >= micros(from_timestamp(request.since)))
    return statement


def _check(events: Sequence[AuditEvent]) -> None:
    if len(events) > AT_ONCE:
        raise InvalidArgument.of("audit_events", f"{len(events)} events", f"at most {AT_ONCE}")
    for event in events:
        if not _ID.fullmatch(event.id):
            raise InvalidArgument.of("audit_events.id", event.id[:40], "32 hexadecimal digits")
        if event.ByteSize() > MAX_BYTES:
            raise InvalidArgument.of(
                "audit_events", f"{event.ByteSize()} bytes", f"events of at most {MAX_BYTES} bytes"
            )


def _row(number: int, event: AuditEvent) -> dict[str, Any]:
    numbered = AuditEvent()
    numbered.CopyFrom(event)
    numbered.number = number
    return {
        "number": number,
        "id": event.id,
        "time": micros(from_timestamp(event.time)),
        "caller": event.caller,
        "outcome": event.outcome,
        "refused": event.refused,
        "payload": numbered.SerializeToString(deterministic=True),
    }


def _trimmed(refused: bool, kept: int) -> sa.Delete:
    number, of_kind = col(AuditRow.number), col(AuditRow.refused) == refused
    last = sa.select(number).where(of_kind).order_by(number.desc()).offset(kept).limit(1).scalar_subquery()
    return sa.delete(AuditRow).where(of_kind, number <= last)
