"""Offset syncs that cannot be written at each commit are logged only now and then."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from keelman.connectors.mirror.syncs import OffsetSyncs


def test_syncs_that_are_lost_at_each_commit_are_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("keelman.connectors.mirror.syncs.time.monotonic", lambda: now)
    lost = OffsetSyncs({"bootstrap.servers": "127.0.0.1:1"}, "syncs", 100)
    with capture_logs() as logs:
        for _ in range(60):
            lost._lost("there is no such topic")
            now += 1.0
    counts = [line["commits"] for line in logs]
    assert len(logs) == 6
    assert counts == [1, 10, 10, 10, 10, 10]
