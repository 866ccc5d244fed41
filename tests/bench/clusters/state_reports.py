"""The workers' reports while the state service is measured: the connectors of all clusters, and signs of life."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from bench.measuring.figures import Figure, alone, percentile
from keelman.api.connect.v1 import connector_report_service_pb2 as pb
from keelman.api.connect.v1 import connector_report_service_pb2_grpc as grpc
from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_TYPE_SOURCE,
    Connector,
    ConnectorTask,
)
from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport, Report, WorkerReport, WorkerUsage
from keelman.kafka.feed import CONNECTOR_REPORTS, WORKER_REPORTS, ReportPublisher
from support.eventually import eventually

CONNECTORS = 5
"""The connectors of each cluster."""
REPORT_SECONDS, SLICES = 5.0, 50
"""So often each worker reports, and in how many moments of that time."""
WATCHED_SECONDS = 10.0
PAGE, PAGES = 100, 100
LIST_GOAL = "<= 200"


@contextlib.asynccontextmanager
async def reporting(bootstrap: str, workers: Mapping[str, Sequence[str]]) -> AsyncIterator[None]:
    """Reports as all workers for as long as the block lasts.

    Each cluster's leader has reported its connectors, and each worker reports. `workers` are the addresses of each
    cluster's workers.
    """
    async with ReportPublisher(bootstrap, "bench") as publisher:
        for cluster, addresses in workers.items():
            for connector in _connectors(cluster, addresses[0]):
                _publish(publisher, CONNECTOR_REPORTS, f"{cluster}/{connector.name}",
                         connector=ConnectorReport(connector=connector, round="1"))  # fmt: skip
            closed = ConnectorsReport(worker_cluster=cluster, round="1", connectors=CONNECTORS)
            _publish(publisher, CONNECTOR_REPORTS, cluster, connectors=closed)
        living = asyncio.ensure_future(_live(publisher, workers))
        try:
            yield
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)


async def measured(name: str, value: Any, clusters: int, cpu_seconds: Callable[[], float]) -> list[Figure]:
    """Pages of connectors, and the cost of receiving the workers' reports, while `reporting` runs."""
    stub = grpc.ConnectorReportServiceStub(value)

    async def everything() -> bool:
        answer = await stub.ListConnectorReports(pb.ListConnectorReportsRequest(page_size=1))
        return not answer.unreported

    await eventually(everything, seconds=120, what="all clusters have reported")
    result, token, pages = 0, "", list[float]()
    for _ in range(PAGES):
        begun = time.perf_counter()
        answer = await stub.ListConnectorReports(pb.ListConnectorReportsRequest(page_size=PAGE, page_token=token))
        pages.append((time.perf_counter() - begun) * 1000)
        result, token = result + len(answer.connectors), answer.next_page_token
    assert result >= min(clusters * CONNECTORS, PAGE * PAGES), "each connector is in a page"
    before = cpu_seconds()
    await asyncio.sleep(WATCHED_SECONDS)
    share = 100 * (cpu_seconds() - before) / WATCHED_SECONDS
    return [
        alone(f"{name}-connectors-list", "ms", pages, percentile(pages, 0.99), LIST_GOAL),
        alone(f"{name}-reports-cpu", "% of a core", [share], share, ""),
    ]


def _connectors(cluster: str, worker: str) -> Iterable[Connector]:
    for number in range(CONNECTORS):
        config = {"connector.class": "FileStreamSource", "tasks.max": "1", "topic": f"{cluster}-{number}"}
        config |= {"file": f"/data/{cluster}/{number}", "key.converter": "StringConverter", "errors.tolerance": "all"}
        yield Connector(
            worker_cluster=cluster,
            name=f"connector-{number}",
            type=CONNECTOR_TYPE_SOURCE,
            config=config,
            state=CONNECTOR_STATE_RUNNING,
            worker_id=worker,
            tasks=[ConnectorTask(task=0, state=CONNECTOR_STATE_RUNNING, worker_id=worker)],
        )


async def _live(publisher: ReportPublisher, workers: Mapping[str, Sequence[str]]) -> None:
    every = [(cluster, address) for cluster, addresses in workers.items() for address in addresses]
    turn = 0
    while True:
        for cluster, address in every[turn % SLICES :: SLICES]:
            usage = WorkerUsage(memory_bytes=60 << 20, slots=1, lag_bytes=turn)
            about = WorkerReport(worker_cluster=cluster, worker_id=address, usage=usage)
            about.membership.CopyFrom(WorkerMembership(joined=True, connectors=2, tasks=2))
            _publish(publisher, WORKER_REPORTS, address, worker=about)
        turn += 1
        await asyncio.sleep(REPORT_SECONDS / SLICES)


def _publish(publisher: ReportPublisher, topic: str, key: str, **subject: Any) -> None:
    now = Timestamp()
    now.GetCurrentTime()
    publisher.publish(topic, key, Report(time=now, reporter="bench", name=key, **subject).SerializeToString())
