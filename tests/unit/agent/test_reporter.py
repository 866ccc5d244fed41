"""The statuses of workloads that a report contains, and when a report is due."""

from __future__ import annotations

import asyncio

from keelman.agent.reporter import Reporter
from keelman.api.node.v1.workload_pb2 import WorkloadState, WorkloadStatus


def status(state: str, memory: int = 0) -> WorkloadStatus:
    return WorkloadStatus(state=WorkloadState.Value(f"WORKLOAD_STATE_{state}"), memory_bytes=memory)


async def test_the_newest_status_of_each_workload_is_sent_until_it_is_heard() -> None:
    reporter = Reporter()
    reporter.put("a", status("STARTING"))
    reporter.put("b", status("STARTING"))
    reporter.begin()
    first = await reporter.next()
    assert first.complete
    assert first.number == 1
    assert sorted(first.statuses) == ["a", "b"]
    reporter.put("a", status("RUNNING"))
    reporter.put("a", status("FAILED"))
    assert not reporter.acknowledge(0)
    assert reporter.acknowledge(1)
    second = await reporter.next()
    assert not second.complete
    assert dict(second.statuses) == {"a": status("FAILED")}
    # Not acknowledged: the next session reports everything again.
    reporter.begin()
    third = await reporter.next()
    assert third.complete
    assert third.number == 1
    assert third.statuses["a"] == status("FAILED")
    reporter.forget("b")
    assert reporter.acknowledge(1)
    waiting = asyncio.ensure_future(reporter.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert not reporter.put("a", status("FAILED"))
    assert reporter.put("a", status("RUNNING"))
    assert dict((await waiting).statuses) == {"a": status("RUNNING")}


async def test_a_report_grows_with_what_changed_and_not_with_what_is_there() -> None:
    reporter = Reporter()
    for number in range(1000):
        reporter.put(f"worker/c/{number}", status("RUNNING", 100_000_000))
    reporter.begin()
    first = await reporter.next()
    assert len(first.statuses) == 1000
    assert reporter.acknowledge(1)
    for number in range(1000):
        reporter.put(f"worker/c/{number}", status("FAILED" if number == 7 else "RUNNING", 100_000_000))
    second = await reporter.next()
    assert list(second.statuses) == ["worker/c/7"]
    assert second.ByteSize() < first.ByteSize() / 500


async def test_an_empty_node_reports_that_it_is_empty() -> None:
    reporter = Reporter()
    reporter.begin()
    assert (await reporter.next()).complete


def test_a_little_more_memory_is_no_news() -> None:
    reporter = Reporter()
    mib = 1024 * 1024
    assert reporter.put("a", status("RUNNING"))
    assert reporter.put("a", status("RUNNING", 100 * mib))
    assert not reporter.put("a", status("RUNNING", 101 * mib))
    assert reporter.put("a", status("RUNNING", 106 * mib))
