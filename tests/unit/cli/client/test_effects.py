"""`--wait` takes a connector for running once new copy runs have shown progress; earlier copy runs do not count."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorTask
from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_ENDED,
    COPY_RUN_STATE_RUNNING,
    COPY_RUN_STATE_STARTING,
    LAG_UNIT_BYTES,
    CopyProgress,
    CopyRun,
)
from keelman.cli.client.effects import copied_text, late_message
from keelman.cli.kinds import CONNECTORS

TASKS = [ConnectorTask(task=number, state="CONNECTOR_STATE_RUNNING") for number in range(2)]


def run(task: int, records: int = 0, lag: int = -1, *, at: int = 1, **more: Any) -> CopyRun:
    present = {"lag": lag, "lag_unit": LAG_UNIT_BYTES} if lag >= 0 else {}
    progress = CopyProgress(records=records, **present)
    fields = {"uid": f"{task}@{at}", "state": COPY_RUN_STATE_RUNNING, "create_time": Timestamp(seconds=at), **more}
    return CopyRun(task=task, progress=progress, **fields)


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ([], None),
        ([run(0, 5)], None),
        ([run(0, 5), run(1)], None),
        ([run(0, 5), run(1, lag=7)], None),
        ([run(0, 5), run(1, lag=0)], "5 records copied"),
        ([run(0, lag=0), run(1, 1)], "1 record copied"),
        ([run(0, lag=0), run(1, lag=0)], "nothing to copy so far"),
        ([run(0, 5), run(1, 5, at=1), run(1, at=2)], None),
        ([run(0, 5), run(1, 5, at=2), run(1, at=1)], "10 records copied"),
        ([run(0, 5), run(1, 5, state=COPY_RUN_STATE_STARTING)], None),
        ([run(0, 5), run(1, 5, part=1)], None),
        ([run(0, 5), run(1, 5, state=COPY_RUN_STATE_ENDED, reason="MOVED")], None),
        ([run(0, 5), run(1, state=COPY_RUN_STATE_ENDED, reason="PARKED")], "5 records copied"),
        ([run(0, 5), run(1, state=COPY_RUN_STATE_ENDED, reason="PARKED"), run(1, at=2)], None),
        ([run(0, 5), run(1, 5, uid="former")], None),
    ],
)
def test_each_task_shows_a_record_or_that_there_is_none(runs: list[CopyRun], line: str | None) -> None:
    assert copied_text(TASKS, runs, {"former"}) == line


def test_what_did_not_come_in_time_says_what_there_is_instead_and_why() -> None:
    trace = "org.acme.Full: [Errno 28] No space left on device\n at Sink.write"
    latest = Connector(
        state="CONNECTOR_STATE_RUNNING", tasks=[ConnectorTask(task=0, state="CONNECTOR_STATE_RESTARTING", trace=trace)]
    )
    assert late_message("start", CONNECTORS, "wc/out", latest, 25.0) == (
        "connector/wc/out is not RUNNING after 25 s, but RESTARTING: org.acme.Full: [Errno 28] No space left on "
        "device; see `keelman describe connector wc/out`"
    )
    assert late_message("stop", CONNECTORS, "wc/out", None, 3.0).startswith(
        "connector/wc/out is not STOPPED after 3 s; see"
    )
