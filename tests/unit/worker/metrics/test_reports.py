"""What a worker reports of itself: counted when it has other work, and its problems when statuses change."""

import asyncio
from types import SimpleNamespace
from typing import Any

from keelman.api.copy.v1.worker_link_service_pb2 import SlotUsage
from keelman.api.event.v1.report_pb2 import Report
from keelman.model.work import Work
from keelman.worker.metrics.reports import report
from keelman.worker.storage.status_state import StatusState
from keelman.worker.tasks.meters import Meters


async def test_a_change_of_work_is_told_with_its_counts() -> None:
    told: asyncio.Queue[tuple[int, int, int]] = asyncio.Queue()

    def publish(_kind: str, _key: str, value: bytes) -> None:
        membership = Report.FromString(value).worker.membership
        told.put_nowait((membership.connectors, membership.tasks, membership.problem_connectors))

    statuses = StatusState()
    herder: Any = SimpleNamespace(
        place=None,
        membership=SimpleNamespace(healthy=True, generation=3),
        owned=SimpleNamespace(works=frozenset({Work("a"), Work("a", 0), Work("a", 1)}), meters=Meters()),
        store=SimpleNamespace(statuses=statuses),
    )
    link: Any = SimpleNamespace(usage=SlotUsage())
    publisher: Any = SimpleNamespace(publish=publish)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        reporting = group.create_task(report(herder, link, publisher, worker_cluster="w", worker="here"))
        assert await told.get() == (1, 2, 0)
        herder.owned.works = frozenset({Work("a"), Work("b")})
        assert await told.get() == (2, 0, 0)
        statuses.apply("status-connector-b", b'{"state": "FAILED", "worker_id": "here", "generation": 3}')
        assert await told.get() == (2, 0, 1)
        reporting.cancel()
