"""When a leading worker reports its connectors: as soon as one changes, not at the next interval."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from keelman.api.event.v1.report_pb2 import Report
from keelman.runtime.supervise import Siblings
from keelman.worker.metrics import connector_reports
from keelman.worker.metrics.connector_reports import report_connectors
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.status_state import StatusState


async def test_what_changes_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_reports, "LOOK_SECONDS", 3600.0)
    sent: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()
    change_sets: list[ChangeSet] = []
    store: Any = SimpleNamespace(
        config=SimpleNamespace(connectors={}, tasks={}, identities={}),
        statuses=StatusState(),
        change_sets=change_sets,
        status_change_sets=[],
    )
    publisher: Any = SimpleNamespace(publish=lambda _topic, key, value: sent.put_nowait((key, value)))
    async with asyncio.timeout(30), Siblings() as siblings:
        siblings.start(report_connectors(store, lambda: True, publisher, worker_cluster="w", worker="here"))
        key, value = await sent.get()
        assert (key, Report.FromString(value or b"").connectors.connectors) == ("w", 0)
        for names in (["a"], ["b", "c"]):
            for name in names:
                store.config.connectors[name] = {"name": name, "connector.class": "file-source"}
                change_sets[0].add([name])
            assert {(await sent.get())[0] for _ in names} == {f"w/{name}" for name in names}
        del store.config.connectors["a"]
        change_sets[0].add(["a"])
        assert await sent.get() == ("w/a", None)
