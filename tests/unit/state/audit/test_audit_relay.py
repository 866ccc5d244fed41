"""The relay of the audit: order, progress, and brokers that are away."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.kafka.feed import AUDIT, Fact
from keelman.model.errors import Unavailable
from keelman.state.audit import relay
from keelman.state.audit.relay import AuditRelay
from keelman.state.audit.trail import AuditTrail
from keelman.state.reports.events_brokers import EventsBrokers
from keelman.state.resources.hub import Hub
from support.eventually import eventually
from support.state.stores import open_store


class Brokers:
    """A publisher that keeps the facts; `away`: the number of publishes that fail after they were stored."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.away = 0

    async def __aenter__(self) -> Brokers:
        return self

    async def __aexit__(self, *exc: type[BaseException] | BaseException | TracebackType | None) -> None:
        return None

    async def publish(self, facts: Sequence[Fact]) -> None:
        self.facts += facts
        if self.away:
            self.away -= 1
            raise Unavailable("no broker answers")


async def test_each_event_is_published_in_order_and_again_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def known(*_: object) -> EventsBrokers:
        return EventsBrokers("127.0.0.1:9")

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(relay, "events_brokers_known", known)
    monkeypatch.setattr(relay, "events_moved", never)
    brokers = Brokers()
    brokers.away = 1

    def connect(servers: str, topics: Sequence[str], properties: Any) -> Brokers:
        assert (servers, topics) == ("127.0.0.1:9", (AUDIT,))
        return brokers

    async with open_store(str(tmp_path / "state.db")) as store:
        trail = AuditTrail(store.database, 100)
        await trail.record([AuditEvent(id=uuid.uuid4().hex, call=str(n)) for n in range(3)])
        running = asyncio.ensure_future(AuditRelay(store, Hub(), "default", trail, connect).run())
        try:
            await eventually(lambda: len(brokers.facts) >= 6)
            await trail.record([AuditEvent(id=uuid.uuid4().hex, call="3")])
            await eventually(lambda: len(brokers.facts) >= 7)

            async def is_noted() -> bool:
                return await trail.published() == 4

            await eventually(is_noted)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert [fact.key for fact in brokers.facts] == ["1", "2", "3", "1", "2", "3", "4"]
    assert [AuditEvent.FromString(fact.value or b"").call for fact in brokers.facts[-4:]] == ["0", "1", "2", "3"]
