"""A worker's reports on itself: counts when its work changes, and problems when statuses change."""

import asyncio
from types import SimpleNamespace
from typing import Any

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_BYTES, LAG_UNIT_RECORDS, CopyProgress
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.worker_link_service_pb2 import SlotUsage
from keelman.api.event.v1.report_pb2 import ConnectorLag, Report
from keelman.model.work import Work
from keelman.worker.metrics.reports import lags_of, report
from keelman.worker.storage.status_state import StatusState
from keelman.worker.tasks.meters import Meters


async def test_a_change_of_work_is_told_with_its_counts() -> None:
    sent: asyncio.Queue[tuple[int, int, int]] = asyncio.Queue()

    def publish(_kind: str, _key: str, value: bytes) -> None:
        if Report.FromString(value).WhichOneof("subject") != "worker":
            return
        membership = Report.FromString(value).worker.membership
        sent.put_nowait((membership.connectors, membership.tasks, membership.problem_connectors))

    statuses = StatusState()
    herder: Any = SimpleNamespace(
        place=None,
        membership=SimpleNamespace(healthy=True, generation=3),
        owned=SimpleNamespace(
            works=frozenset({Work("a"), Work("a", 0), Work("a", 1)}), tasks=SimpleNamespace(meters=Meters())
        ),
        store=SimpleNamespace(statuses=statuses),
    )
    link: Any = SimpleNamespace(usage=SlotUsage())
    publisher: Any = SimpleNamespace(publish=publish)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        reporting = group.create_task(report(herder, link, publisher, worker_cluster="w", worker="here"))
        assert await sent.get() == (1, 2, 0)
        herder.owned.works = frozenset({Work("a"), Work("b")})
        assert await sent.get() == (2, 0, 0)
        statuses.apply("status-connector-b", b'{"state": "FAILED", "worker_id": "here", "generation": 3}')
        assert await sent.get() == (2, 0, 1)
        reporting.cancel()


def test_lags_are_those_of_connectors_that_measure_any() -> None:
    meters = Meters()
    for work, progress in {
        Work("lines", 0): CopyProgress(lag_unit=LAG_UNIT_BYTES, lag=7),
        Work("mirror", 0): CopyProgress(lag_unit=LAG_UNIT_RECORDS, lag=3),
        Work("mirror", 1): CopyProgress(lag_unit=LAG_UNIT_RECORDS, lag=4),
        Work("level", 0): CopyProgress(lag_unit=LAG_UNIT_RECORDS, lag=0),
        Work("silent", 0): CopyProgress(records=5),
        Work("unknown", 0): CopyProgress(lag_unit=LAG_UNIT_RECORDS),
    }.items():
        meters.note(work, RunUpdate(run_uid=f"{work}", progress=progress))
    assert lags_of(meters) == [
        ConnectorLag(connector="lines", bytes=7),
        ConnectorLag(connector="mirror", records=7),
        ConnectorLag(connector="level", records=0),
    ]
