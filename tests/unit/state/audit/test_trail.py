"""The audit in the database: numbers, repetitions, filters, pages, the limit, and the relay's progress."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.api.event.v1.audit_event_service_pb2 import ListAuditEventsRequest
from keelman.model.errors import InvalidArgument
from keelman.rpc.times import to_timestamp
from keelman.state.audit.trail import AT_ONCE, TRIM_EVERY, AuditTrail, is_about
from support.state.stores import open_store

KEPT = 30


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[AuditTrail]:
    async with open_store(str(tmp_path / "state.db")) as store:
        yield AuditTrail(store.database, KEPT)


def event(*, second: int = 0, **fields: Any) -> AuditEvent:
    time = to_timestamp(datetime(2027, 1, 1, 12, 0, second, tzinfo=UTC))
    return AuditEvent(**{"id": uuid.uuid4().hex, "time": time, "caller": "ada", "outcome": "OK"} | fields)


async def listed(trail: AuditTrail, **fields: Any) -> list[AuditEvent]:
    return (await trail.page(ListAuditEventsRequest(page_size=1000, **fields)))[0]


async def test_events_have_numbers_and_a_repeated_one_is_stored_once(trail: AuditTrail) -> None:
    one, two, three = event(call="1"), event(call="2"), event(call="3")
    await trail.record([one, two, two])
    await trail.record([one, two, three])
    await trail.record([three])
    assert [(e.number, e.call) for e in await listed(trail)] == [(3, "3"), (2, "2"), (1, "1")]
    assert trail.grown.is_set()


async def test_events_are_chosen_by_caller_outcome_time_and_resource(trail: AuditTrail) -> None:
    await trail.record(
        [
            event(call="TopicService/DeleteTopic", resource="orders", second=1),
            event(call="DELETE /clusters/demo/connectors/orders", caller="eve", outcome="403", second=2),
            event(call="BatchService/WriteBatch", resource="CreateTopic a, CreateTopic b", second=3),
        ]
    )
    for fields, numbers in (
        ({"caller": "ada"}, [3, 1]),
        ({"outcome": "403"}, [2]),
        ({"resource": "orders"}, [2, 1]),
        ({"resource": "demo"}, [2]),
        ({"resource": "b"}, [3]),
        ({"resource": "order"}, []),
        ({"since": to_timestamp(datetime(2027, 1, 1, 12, 0, 2, tzinfo=UTC))}, [3, 2]),
        ({"caller": "ada", "resource": "orders"}, [1]),
    ):
        assert [e.number for e in await listed(trail, **fields)] == numbers, fields


async def test_pages_follow_each_other_from_the_newest(trail: AuditTrail) -> None:
    await trail.record([event(resource=str(number % 2)) for number in range(25)])
    numbers, token = [], ""
    while True:
        part, token = await trail.page(ListAuditEventsRequest(page_size=5, page_token=token, resource="0"))
        assert len(part) <= 5
        numbers += [e.number for e in part]
        if not token:
            break
    assert numbers == list(range(25, 0, -2))


async def test_refused_calls_do_not_displace_writes(trail: AuditTrail) -> None:
    await trail.record([event(call="write")])
    for _ in range(3):
        await trail.record([event(call="refused", refused=True) for _ in range(TRIM_EVERY)])
    left = await listed(trail)
    assert [e.call for e in left] == ["refused"] * KEPT + ["write"]


@pytest.mark.parametrize(
    "wrong",
    [[event(id="x")], [event(call="x" * 20_000)], [event() for _ in range(AT_ONCE + 1)]],
    ids=["id", "size", "number"],
)
async def test_illegal_events_are_refused(trail: AuditTrail, wrong: list[AuditEvent]) -> None:
    with pytest.raises(InvalidArgument, match="audit_events"):
        await trail.record(wrong)
    assert await listed(trail) == []


async def test_the_progress_of_the_relay_never_goes_back(trail: AuditTrail) -> None:
    await trail.record([event(), event()])
    assert [row.number for row in await trail.after(await trail.published())] == [1, 2]
    await trail.note_published(2)
    await trail.note_published(1)
    assert await trail.published() == 2
    assert await trail.after(2) == []


def test_a_resource_with_slashes_is_found_whole() -> None:
    about = AuditEvent(call="ConnectorService/PauseConnector", resource="demo/lines")
    assert is_about(about, "demo/lines")
    assert is_about(about, "lines")
    assert not is_about(about, "emo/lines")
